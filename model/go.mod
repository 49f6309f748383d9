module github.com/fencedlease/lease/model

go 1.26

require github.com/fencedlease/lease v0.0.0

replace github.com/fencedlease/lease => ..
