package session

import (
	"slices"

	"github.com/fencedlease/lease"
)

// A debt is an ID whose release has no certain outcome.
type debt struct {
	id       lease.ID
	doubtful bool // nor has its Acquire: it may yet arrive
	shown    bool // somebody may yet hand the lease over to it
	waived   bool // it is not in force, so that it is of interest only if it comes to be
}

// mostUnsettled bounds the memory of a Session that can never reach its authority. What is waived
// is forgotten first, the oldest of it or, if nothing else is, what is to be added; if all must be
// released, the oldest.
const mostUnsettled = 256

// owes returns the debt of that ID, or nil.
func (h *holder) owes(id lease.ID) *debt {
	i := slices.IndexFunc(h.unsettled, func(d debt) bool { return d.id == id })
	if i < 0 {
		return nil
	}
	return &h.unsettled[i]
}

// owe remembers an ID that must be released.
func (h *holder) owe(id lease.ID, doubtful bool) {
	if d := h.owes(id); d != nil {
		d.waived = false
		d.doubtful = d.doubtful || doubtful
		return
	}
	h.remember(debt{id: id, doubtful: doubtful})
}

func (h *holder) remember(d debt) {
	if len(h.unsettled) == mostUnsettled {
		i := slices.IndexFunc(h.unsettled, func(d debt) bool { return d.waived })
		switch {
		case i < 0 && d.waived:
			return
		case i < 0:
			i = 0
		}
		h.unsettled = slices.Delete(h.unsettled, i, i+1)
	}
	h.unsettled = append(h.unsettled, d)
}

// due returns the newest debt that is to be settled, or nil.
func (h *holder) due() *debt {
	for i := range slices.Backward(h.unsettled) {
		if d := &h.unsettled[i]; !d.waived && d.id != h.handing {
			return d
		}
	}
	return nil
}

// recall makes an ID due that was waived or given away, since it turns out to be in force.
func (h *holder) recall(id lease.ID) {
	h.owes(id).waived = false
	if h.handing == id {
		h.handing = lease.ID{}
	}
}

// discharge ends the releasing of an ID that is certainly not in force. It is forgotten, unless
// it may come to be.
func (h *holder) discharge(id lease.ID) {
	if d := h.owes(id); d != nil {
		d.waived = true
	}
	h.unsettled = slices.DeleteFunc(h.unsettled, func(d debt) bool { return d.id == id && !d.doubtful && !d.shown })
}
