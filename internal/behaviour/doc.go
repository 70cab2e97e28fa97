// Package behaviour tests the calls of the client, in one file for each verb. It also tests
// the requests and the costs of these calls. A claim that concerns one internal package is
// tested in that package.
package behaviour
