// Package redislease keeps leases in Redis, version 7 or newer, or Valkey.
package redislease
