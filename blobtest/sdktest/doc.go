// Package sdktest tests blobtest with clients and a server of others: the Azure SDK for Go, the
// JavaScript SDK, and the Azurite emulator. It is a module of its own, so users of blobtest do not
// require them. It has tests only.
package sdktest
