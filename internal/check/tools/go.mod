module github.com/fencedlease/lease/internal/check/tools

go 1.26.0

require (
	github.com/fencedlease/lease v0.0.0
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.0
)

require golang.org/x/sync v0.24.0 // indirect

replace github.com/fencedlease/lease => ../../..
