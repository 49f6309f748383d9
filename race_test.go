//go:build race

package lease_test

func init() { raced = true }
