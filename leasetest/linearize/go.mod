module github.com/fencedlease/lease/leasetest/linearize

go 1.26

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/fencedlease/lease v0.0.0
)

require github.com/google/uuid v1.6.0 // indirect

replace github.com/fencedlease/lease => ../..
