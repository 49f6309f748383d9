module github.com/fencedlease/lease/mysqllease

go 1.26

replace github.com/fencedlease/lease => ../

replace github.com/fencedlease/lease/leasetest/linearize => ../leasetest/linearize

require (
	github.com/fencedlease/lease v0.0.0
	github.com/fencedlease/lease/leasetest/linearize v0.0.0-00010101000000-000000000000
	github.com/go-sql-driver/mysql v1.10.1
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
)
