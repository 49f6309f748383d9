// Package incidents re-enacts what has happened to the users of other lease libraries and
// lock services. Every test is named after the public thread that tells of it, says in a
// sentence what happened there, and shows that here it does not. It has no code but tests.
package incidents
