package engine

import "context"

// CheckOnce returns a function that a store calls before its requests, to make sure that its server is
// suitable, for example that a bucket exists. The returned function calls the function check until check has
// succeeded once. After that, it returns nil. If check fails, the returned function returns the error, and
// the next call of it calls check again. The same is true if check panics.
//
// The returned function is safe for concurrent use. It runs only one check at a time. While one call runs the
// check, all other calls wait for the result or until their ctx ends. If the check fails, each of the waiting
// calls checks the server itself, one after the other.
func CheckOnce(check func(ctx context.Context) error) func(ctx context.Context) error {
	passed := make(chan bool, 1) // holds whether a check has succeeded, except during a check
	passed <- false
	return func(ctx context.Context) error {
		select {
		case is := <-passed:
			defer func() { passed <- is }() // even if check panics
			if is {
				return nil
			}
			err := check(ctx)
			is = err == nil
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
