module github.com/fencedlease/lease/cli

go 1.26.0

replace github.com/fencedlease/lease => ../

require (
	github.com/fencedlease/lease v0.0.0
	golang.org/x/sys v0.49.0
)

require github.com/google/uuid v1.6.0 // indirect
