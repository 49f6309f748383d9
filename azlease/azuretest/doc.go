// Package azuretest tests package azlease against blobtest, a double of the Blob service, and against
// the emulator Azurite. It is a module of its own so that users of azlease do not depend on either.
package azuretest
