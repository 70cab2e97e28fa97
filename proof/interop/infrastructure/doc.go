// Package infrastructure tests the CloudFormation and Terraform templates that package
// table writes. The tests parse the templates as YAML and HCL.
package infrastructure
