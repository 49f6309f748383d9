// Package sdktest tests blobtest with the Azure SDK for Go, the JavaScript SDK and the Azurite
// emulator. This package is a separate module, so users of blobtest do not depend on this software. It
// contains only tests.
package sdktest
