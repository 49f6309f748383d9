module github.com/fencedlease/lease

go 1.26

require (
	github.com/benbjohnson/clock v1.3.5
	github.com/google/uuid v1.6.0
	pgregory.net/rapid v1.3.0
)
