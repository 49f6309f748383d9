// Package incidents re-enacts incidents that users of other lease libraries and lock services have
// reported. The name of each test names the public report. Each test logs in one sentence what
// happened, and checks that the same cannot happen with this library. The package has only tests.
package incidents
