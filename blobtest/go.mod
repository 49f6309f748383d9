module github.com/fencedlease/lease/blobtest

go 1.26

replace github.com/fencedlease/lease => ..

require (
	github.com/fencedlease/lease v0.0.0
	github.com/google/uuid v1.6.0
)
