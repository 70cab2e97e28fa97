// Package infrastructure tests the CloudFormation and Terraform templates that the Go package table
// generates. The tests parse the templates as YAML and HCL.
package infrastructure
