// Package sdktest tries blobtest against clients and a peer that were not written here:
// the Azure SDK for Go, the JavaScript SDK, and the Azurite emulator. It is a module of its
// own, so that users of blobtest do not inherit them. All of it is tests.
package sdktest
