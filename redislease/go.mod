module github.com/fencedlease/lease/redislease

go 1.26.0

replace github.com/fencedlease/lease => ../

require (
	github.com/fencedlease/lease v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
)

require github.com/anishathalye/porcupine v1.3.1 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fencedlease/lease/leasetest/linearize v0.0.0
	github.com/google/uuid v1.6.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/fencedlease/lease/leasetest/linearize => ../leasetest/linearize
