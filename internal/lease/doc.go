// Package lease knows how long something that was granted may be trusted.
package lease
