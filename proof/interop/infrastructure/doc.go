// Package infrastructure tests the texts that package table writes for CloudFormation and
// Terraform. It reads them with parsers of YAML and HCL.
package infrastructure
