module github.com/fencedlease/lease/blobtest/sdktest

go 1.26

require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.22.0
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.8.0
	github.com/fencedlease/lease v0.0.0
	github.com/fencedlease/lease/blobtest v0.0.0
)

require (
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.12.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/text v0.38.0 // indirect
)

replace (
	github.com/fencedlease/lease => ../..
	github.com/fencedlease/lease/blobtest => ..
)
