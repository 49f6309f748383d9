// Package azuretest tests package azlease against blobtest, a test double of the Blob service, and
// against the emulator Azurite. It is a separate module, so users of azlease depend on neither of them.
package azuretest
