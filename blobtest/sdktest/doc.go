// Package sdktest tests blobtest with the Azure SDK for Go, the JavaScript SDK and the Azurite
// emulator. This package is a separate module, so programs that import blobtest do not depend on the
// Azure SDK. It contains only tests.
package sdktest
