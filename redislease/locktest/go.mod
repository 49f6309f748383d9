module github.com/fencedlease/lease/redislease/locktest

go 1.26.0

replace (
	github.com/fencedlease/lease => ../../
	github.com/fencedlease/lease/redislease => ../
)

require (
	github.com/bsm/redislock v0.9.4
	github.com/fencedlease/lease v0.0.0
	github.com/fencedlease/lease/redislease v0.0.0
	github.com/go-redsync/redsync/v4 v4.15.0
	github.com/google/uuid v1.6.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/fencedlease/lease/leasetest/linearize => ../../leasetest/linearize
