// Package incidents re-enacts incidents that users of other lease libraries and lock services have
// reported. Every test is named after the public report. Its comment says in a sentence what
// happened, and the test checks that it cannot happen here. The package has only tests.
package incidents
