// Package behaviour tests what users do with the client, a file for each verb, and what that
// sends and costs. A claim that belongs to one room inside the lock is tested in that room.
package behaviour
