package jitter_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/jitter"
)

func over(r io.Reader) jitter.Source { return jitter.Source{Reader: &r} }

// full is a source whose bytes are all equal.
type full byte

func (f full) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

// Float64 returns at least 0 and less than 1. Shorten shortens a duration by the product of this number, the
// part and the duration.
func TestShorten(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		bits full
		part float64
		want time.Duration
	}{
		{0, 0.5, day}, {0, 1, day}, {0x80, 0.5, day * 191 / 256}, {0xff, 0, day}, {0xff, 0.5, day / 2}, {0xff, 0.1, day * 9 / 10},
	} {
		d := over(c.bits)
		if n := d.Float64(); n < 0 || n >= 1 {
			t.Errorf("%x: the number is %v", byte(c.bits), n)
		}
		if got := d.Shorten(day, c.part); (got-c.want).Abs() > day/256 || got > day || got < day-time.Duration(c.part*float64(day)) {
			t.Errorf("%x: shortened by up to %v it is %v, want about %v", byte(c.bits), c.part, got, c.want)
		}
	}
}

// Equal random bytes result in equal IDs, and different ones in different IDs.
func TestID(t *testing.T) {
	a, b := over(full(1)), over(full(2))
	first, again, other := a.ID(), a.ID(), b.ID()
	if first != again || first == other || first == (lease.ID{}) {
		t.Errorf("%v, %v, %v", first, again, other)
	}
}

// If the reader fails, there is no jitter, but all IDs are still different.
func TestReaderThatFails(t *testing.T) {
	for _, d := range []jitter.Source{
		over(iotest.ErrReader(errors.New("bad"))), over(bytes.NewReader([]byte{1, 2, 3})),
	} {
		if n := d.Float64(); n != 0.5 {
			t.Errorf("the number is %v", n)
		}
		if a, b := d.ID(), d.ID(); a == b || a == (lease.ID{}) {
			t.Errorf("%v, %v", a, b)
		}
	}
}

// A Steady makes different IDs, and shortens nothing.
func TestSteady(t *testing.T) {
	d := over(jitter.Steady{IDs: rand.Reader})
	if a, b := d.ID(), d.ID(); a == b {
		t.Errorf("two IDs are %v", a)
	}
	if got := d.Shorten(time.Hour, 0.9); got != time.Hour {
		t.Errorf("an hour is %v", got)
	}
}
