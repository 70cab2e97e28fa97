// Package behaviour tests the methods of leasehold.Client and leasehold.Lock, in one file for
// each verb, such as acquire. It also tests the number and cost of the requests that the
// methods send. Tests of a single internal package are in that package.
package behaviour
