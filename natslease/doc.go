// Package natslease keeps leases in a key-value bucket of NATS JetStream.
package natslease
