// Package azuretest tests package azlease against blobtest, a test double of the Blob service, and
// against the emulator Azurite. Package azuretest is a separate module, so users of azlease depend
// on neither blobtest nor Azurite.
package azuretest
