// Package gateway has no code. Its go.mod names the version of the S3 gateway that the tests of package s3lease start.
package gateway
