package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedlease/lease"
)

// enter blocks until the Gate lets a call of the Backend begin. The caller must then call leave with the result
// of the call. An error of a server that cannot serve now counts as no answer, so that the server gets fewer
// requests.
func (s *Store) enter(ctx context.Context, r Request) (leave func(error), err error) {
	if s.gate == nil {
		return func(error) {}, nil
	}
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("not sent while other requests of this store are under way: %w", err)
	}
	return func(err error) {
		conflict := errors.Is(err, lease.ErrConflict)
		if conflict {
			pass = pass.Renewed(0)
		}
		pass.Leave(err == nil || conflict || lease.CodeOf(err) == lease.ErrCorrupt)
	}, nil
}

// enterSwap is like enter, for a Swap of old to next. It returns an error at once if next is a grant for which
// there is no room. Unless a Swap is a grant, it renews or ends a lease that is held, and is therefore urgent.
func (s *Store) enterSwap(ctx context.Context, name string, old, next lease.Record) (func(error), error) {
	grants := next.Epoch > old.Epoch
	r := Request{Urgent: !grants}
	switch {
	case s.gate == nil:
	case grants:
		if err := s.gate.Admit(name, next.Duration); err != nil {
			return nil, err
		}
	case next.State == lease.Leased:
		r.Name, r.Renewals = name, 1
	}
	leave, err := s.enter(ctx, r)
	if s.gate == nil || err != nil {
		return leave, err
	}
	return func(err error) {
		leave(err)
		switch {
		case err == nil:
			s.gate.Note(name, next)
		case errors.Is(err, lease.ErrConflict):
			s.gate.Note(name, lease.Record{})
		}
	}, nil
}
