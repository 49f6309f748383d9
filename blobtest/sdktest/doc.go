// Package sdktest tests blobtest with the Azure SDK for Go, the JavaScript SDK and the Azurite
// emulator. Package sdktest is a separate module, so programs that import blobtest do not depend on
// the Azure SDK. Package sdktest contains only tests.
package sdktest
