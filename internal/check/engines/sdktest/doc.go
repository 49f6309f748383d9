// Package sdktest tests blobtest with the Azure SDK for Go, the JavaScript SDK and the Azurite emulator. It
// is a separate module of tests, so that programs that import blobtest do not depend on the Azure SDK.
package sdktest
