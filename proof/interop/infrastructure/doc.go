// Package infrastructure holds what package table writes for CloudFormation and
// Terraform to the parsers of YAML and HCL.
package infrastructure
