module github.com/fencedlease/lease/azlease/azuretest

go 1.26

replace (
	github.com/fencedlease/lease => ../../
	github.com/fencedlease/lease/azlease => ../
	github.com/fencedlease/lease/blobtest => ../../blobtest
	github.com/fencedlease/lease/leasetest/linearize => ../../leasetest/linearize
)

require (
	github.com/Azure/azure-sdk-for-go/sdk/azcore v1.23.1
	github.com/Azure/azure-sdk-for-go/sdk/storage/azblob v1.8.1
	github.com/fencedlease/lease v0.0.0
	github.com/fencedlease/lease/azlease v0.0.0
	github.com/fencedlease/lease/blobtest v0.0.0
	github.com/fencedlease/lease/leasetest/linearize v0.0.0-00010101000000-000000000000
)

require (
	github.com/Azure/azure-sdk-for-go/sdk/internal v1.12.0 // indirect
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/apache/arrow-go/v18 v18.7.0 // indirect
	github.com/goccy/go-json v0.10.6 // indirect
	github.com/google/flatbuffers v25.12.19+incompatible // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.28 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/exp v0.0.0-20260813180055-c1d0aacb2297 // indirect
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
