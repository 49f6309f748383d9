//go:build !linux

package kubeserver

import "errors"

func lock(string) (func(), error) { return nil, errors.ErrUnsupported }
