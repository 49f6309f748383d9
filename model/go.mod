module github.com/fencedlease/lease/model

go 1.26

require github.com/fencedlease/lease v0.0.0

require github.com/google/uuid v1.6.0 // indirect

replace github.com/fencedlease/lease => ..
