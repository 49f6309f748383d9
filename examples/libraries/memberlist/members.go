package main

import (
	"maps"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/fencedlease/lease/majority"
)

// members contains the members that this process knows. It is the EventDelegate of memberlist.
type members struct {
	mu        sync.Mutex
	reachable map[string]bool // by name; false if the member has failed
	changed   chan struct{}   // closed at the next change
}

func newMembers() *members {
	return &members{reachable: map[string]bool{}, changed: make(chan struct{})}
}

func (m *members) NotifyJoin(n *memberlist.Node) {
	m.change(func() { m.reachable[n.Name] = true })
}

// NotifyLeave is called when a member fails, and also when a member leaves in an orderly way.
func (m *members) NotifyLeave(n *memberlist.Node) {
	m.change(func() {
		if m.reachable[n.Name] = false; n.State == memberlist.StateLeft {
			delete(m.reachable, n.Name)
		}
	})
}

func (m *members) NotifyUpdate(*memberlist.Node) {}

// remove deletes members after a decision.
func (m *members) remove(names []string) {
	m.change(func() {
		maps.DeleteFunc(m.reachable, func(name string, _ bool) bool { return slices.Contains(names, name) })
	})
}

func (m *members) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	close(m.changed)
	m.changed = make(chan struct{})
}

// view returns the current members, and a channel that is closed when they change.
func (m *members) view() (v majority.View, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.reachable)) {
		if m.reachable[name] {
			v.Reachable = append(v.Reachable, name)
		} else {
			v.Unreachable = append(v.Unreachable, name)
		}
	}
	return v, m.changed
}
