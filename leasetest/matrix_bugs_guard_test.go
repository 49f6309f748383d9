package leasetest

import (
	"errors"
	"testing"

	"github.com/fencedlease/lease"
)

// A guardBug changes a call of a guard. The token seen is the mark, or empty.
type guardBug func(g *plainGuard, seen, tok lease.Token, do func() error) error

// A wrappedGuard is a plainGuard with a bug in one method.
type wrappedGuard struct {
	*plainGuard
	advance, do guardBug
}

func (g *wrappedGuard) Advance(tok lease.Token) error {
	if g.advance == nil {
		return g.plainGuard.Advance(tok)
	}
	return g.advance(g.plainGuard, g.seen(), tok, func() error { return g.plainGuard.Advance(tok) })
}

func (g *wrappedGuard) Do(tok lease.Token, f func() error) error {
	if g.do == nil {
		return g.plainGuard.Do(tok, f)
	}
	return g.do(g.plainGuard, g.seen(), tok, func() error { return g.plainGuard.Do(tok, f) })
}

func wrappedGuards(wrap func(g *wrappedGuard)) *suite {
	s := plainGuards("")
	inner := s.newGuard
	s.newGuard = func(t testing.TB) Guard {
		g := &wrappedGuard{plainGuard: inner(t).(*plainGuard)}
		if wrap != nil {
			wrap(g)
		}
		return g
	}
	return s
}

// guardCellBugs are a bug for each method, each relation of the token to the mark, and each fault.
func guardCellBugs() (all []cellBug) {
	relations := map[string]func(seen, tok lease.Token) bool{
		"no mark":   func(seen, tok lease.Token) bool { return seen == "" && tok.Validate() == nil },
		"older":     func(seen, tok lease.Token) bool { return seen != "" && tok.Validate() == nil && tok.Compare(seen) < 0 },
		"equal":     func(seen, tok lease.Token) bool { return seen != "" && tok == seen },
		"newer":     func(seen, tok lease.Token) bool { return seen != "" && tok.Compare(seen) > 0 },
		"malformed": func(_, tok lease.Token) bool { return tok != "" && tok.Validate() != nil },
		"empty":     func(_, tok lease.Token) bool { return tok == "" },
	}
	refuse := func(_ *plainGuard, seen, tok lease.Token, _ func() error) error {
		return errors.New("token " + string(tok) + " is older than " + string(seen))
	}
	accept := func(*plainGuard, lease.Token, lease.Token, func() error) error { return nil }
	lower := func(g *plainGuard, seen, _ lease.Token, do func() error) error {
		err := do()
		g.mark.Store(seen)
		return err
	}
	silent := func(_ *plainGuard, _, _ lease.Token, do func() error) error {
		if do() != nil {
			return errors.New("stale")
		}
		return nil
	}
	for relation, is := range relations {
		for what, bug := range map[string]guardBug{"is refused": refuse, "is accepted and not run": accept, "leaves the mark as it was": lower, "is refused without both tokens": silent} {
			var withoutEffect bool
			switch what {
			case "is refused":
				withoutEffect = relation == "older" || relation == "malformed" || relation == "empty"
			case "leaves the mark as it was":
				withoutEffect = relation != "newer" && relation != "no mark"
			case "is refused without both tokens":
				withoutEffect = relation != "older"
			}
			if withoutEffect {
				continue
			}
			bug := func(g *plainGuard, seen, tok lease.Token, do func() error) error {
				if !is(seen, tok) {
					return do()
				}
				return bug(g, seen, tok, do)
			}
			all = append(all, cellBug{"guard", "advance, " + relation, what, func() *suite { return wrappedGuards(func(g *wrappedGuard) { g.advance = bug }) }},
				cellBug{"guard", "do, " + relation, what, func() *suite { return wrappedGuards(func(g *wrappedGuard) { g.do = bug }) }})
		}
	}
	return all
}
