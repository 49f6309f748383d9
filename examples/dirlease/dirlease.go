//go:build linux

// Package dirlease keeps leases in a directory, for the processes of one Linux machine. It is the example of
// docs/write-a-store.md. The URL of a store is dir:PATH.
//
// Changes are signalled within 100 ms, even if the process that made the change has crashed. Files are never
// deleted. To clean up, remove the whole directory while no process uses it. The store uses the wall clock,
// but its time never goes back. If the clock is set back, leases last longer, and if it is set forward, they
// end early. While a process that has locked a file is suspended, other processes get no answer about the
// lease in that file.
package dirlease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/open"
	"github.com/fencedlease/lease/session"
)

func init() {
	open.Register("dir", "dir:PATH", func(_ context.Context, url string) (open.Leases, error) {
		return Open(strings.TrimPrefix(url, "dir:"))
	})
}

// A Store keeps leases in a directory. It is safe for concurrent use by several goroutines.
type Store struct {
	dir  string
	poll engine.Poller
	now  func() time.Time
	step func(ctx context.Context, do func() error) error // calls do, which reads or writes files; a test can delay this call
}

// Open opens the leases in a directory. If the directory does not exist, Open creates it.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, now: time.Now, step: func(_ context.Context, do func() error) error { return do() }}
	s.poll = engine.Poller{Every: 100 * time.Millisecond, Read: s.signals}
	return s, os.MkdirAll(dir, 0o777)
}

// Lease returns a holder of the lease with the given name.
func (s *Store) Lease(name string, o *session.Options) (*session.Session, error) {
	return session.New(s.Authority(), name, o)
}

// Authority returns an authority over the leases in the directory.
func (s *Store) Authority() lease.Authority { return lease.NewAuthority(s) }

// Close ends all watches.
func (s *Store) Close() error { s.poll.Close(); return nil }

// The type file contains the data of a file in the directory. The first line of such a file contains two
// numbers, which are in the fields named writes and signals. The second line contains the record.
type file struct {
	writes, signals uint64       // how often the file was written, and how many of these writes had to be signalled
	record          lease.Record // the record that was written last
	now             time.Time    // when the file was read; not part of the file
}

func (f file) snapshot() lease.Snapshot {
	return lease.Snapshot{Record: f.record, Version: fmt.Sprint(f.writes), Now: f.now}
}

// path returns the file of a name. Different names have different files, because the escaping is reversible.
func (s *Store) path(name string) string { return filepath.Join(s.dir, url.PathEscape(name)+".lease") }

// read returns the zero file if there is no file. A file that cannot be read is an error, not a free lease.
func (s *Store) read(name string) (f file, err error) {
	data, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil
	} else if err != nil {
		return file{}, err
	}
	numbers, record, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	if _, err = fmt.Sscanf(numbers, "%d %d", &f.writes, &f.signals); err == nil {
		err = f.record.UnmarshalText([]byte(record))
	}
	if err != nil {
		return file{}, fmt.Errorf("%w: lease %q: %w", lease.ErrCorrupt, name, err)
	}
	return f, nil
}

// Load implements lease.Store.
func (s *Store) Load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	err = s.locked(ctx, name, func(f file) error { snap = f.snapshot(); return nil })
	return snap, err
}

// Swap implements lease.Store.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	if err := engine.CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	err = s.locked(ctx, name, func(f file) error {
		if snap = f.snapshot(); snap.Version != old.Version || old.Ended(f.now) {
			return lease.ErrConflict
		}
		if engine.NeedsSignal(f.record, next) {
			f.signals++
		}
		f.writes, f.record = f.writes+1, next
		snap = f.snapshot()
		text, err := next.MarshalText()
		if err == nil {
			err = s.step(ctx, func() error { return write(s.path(name), fmt.Sprintf("%d %d\n%s\n", f.writes, f.signals, text)) })
		}
		if err == nil {
			s.poll.Changed(name, version(f, nil))
		}
		return err
	})
	return snap, err
}

// The method locked takes the lock of a name. While it has the lock, it reads the file of the name and then
// the clock, and calls the given function.
func (s *Store) locked(ctx context.Context, name string, do func(file) error) error {
	if err := lease.CheckName(name); err != nil {
		return err
	}
	return flock(ctx, s.path(name)+".lock", func(*os.File) error {
		var f file
		if err := s.step(ctx, func() (err error) {
			f, err = s.read(name)
			return errors.Join(err, s.clock(ctx, &f.now))
		}); err != nil {
			return err
		}
		return do(f)
	})
}

// flock calls f while it has the lock of a file. If a process dies, the kernel releases its locks.
func flock(ctx context.Context, path string, f func(lock *os.File) error) error {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("%w: %w", lease.ErrUnsent, err)
	}
	defer lock.Close() // unlocks
	try := func() error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	for err := try(); err != nil; err = try() { // without LOCK_NB, Flock would not return when ctx ends
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", lease.ErrUnsent, ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
	return f(lock)
}

// clock returns the current time or, if the clock has been set back, the latest time that was ever returned.
func (s *Store) clock(ctx context.Context, now *time.Time) error {
	return flock(ctx, filepath.Join(s.dir, "clock"), func(f *os.File) error {
		var last int64
		if _, err := fmt.Fscanf(f, "%d", &last); err != nil && err != io.EOF {
			return err
		}
		*now = time.Unix(0, max(last, s.now().UnixNano())).UTC()
		_, err := f.WriteAt(fmt.Appendf(nil, "%020d", now.UnixNano()), 0)
		return err
	})
}

// write replaces a file in one step. After that, neither a crash nor a power failure can undo the write, and
// neither can ever leave the file half written.
func write(path, text string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(path+".new", path), dir.Sync())
}

// Watch implements lease.Watcher.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return s.poll.Watch(ctx, name)
}

// signals polls. It needs no lock, because each file is replaced in one step.
func (s *Store) signals(ctx context.Context, names []string, seen func(name, version string)) error {
	for _, name := range names {
		seen(name, version(s.read(name)))
	}
	return ctx.Err()
}

// A watch compares the results of the function version to detect changes of a file. The result is different
// after each change that must be signalled. It is also different after an error, because waiting processes
// must see the error.
func version(f file, err error) string { return fmt.Sprint(f.signals, err) }

// List implements lease.Lister.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		files, err := os.ReadDir(s.dir)
		for _, f := range files {
			escaped, is := strings.CutSuffix(f.Name(), ".lease")
			name, malformed := url.PathUnescape(escaped)
			if !is || malformed != nil || !strings.HasPrefix(name, prefix) {
				continue
			}
			snap, err := s.Load(ctx, name)
			if ctx.Err() != nil || !yield(engine.ListEntry(name, snap), err) {
				return ctx.Err()
			}
		}
		return err
	})
}
