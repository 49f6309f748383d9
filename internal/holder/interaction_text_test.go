package holder

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A script writes down what happens, as an interaction file.
type script struct {
	file  strings.Builder
	lines []string
	until [2]time.Time // the time U that was written last
}

func (s *script) command(text string) { s.file.WriteString(text + "\n----\n") }

// result writes what has happened since the last command.
func (s *script) result(problem string) {
	for _, l := range s.lines {
		s.file.WriteString(l + "\n")
	}
	if problem != "" {
		s.file.WriteString("PROBLEM " + problem + "\n")
	} else if len(s.lines) == 0 {
		s.file.WriteString("ok\n")
	}
	s.lines = nil
	s.file.WriteString("\n")
}

// step lets an event happen, and writes the event down if there is a script.
func (w *world) step(e event) {
	if w.script == nil {
		w.do(e)
		return
	}
	was := w.problem
	w.script.command(w.text(e))
	defer func() {
		problem := ""
		if r := recover(); r != nil {
			problem = fmt.Sprint("panic: ", r)
			defer panic(r)
		} else if w.problem != was {
			problem = w.problem.property + ": " + w.problem.text
		}
		w.script.result(problem)
	}()
	w.do(e)
}

// heading writes a comment.
func (w *world) heading(text string) {
	if w.script != nil {
		w.script.file.WriteString("# " + text + "\n\n")
	}
}

func (w *world) note(format string, args ...any) {
	if w.script != nil {
		w.script.lines = append(w.script.lines, fmt.Sprintf(format, args...))
	}
}

func (w *world) noteRecord() {
	if w.script != nil {
		w.note("the record is %s", w.recordText(w.rec))
	}
}

func name(who int) string { return string(rune('a' + who)) }

func idName(id lease.ID) string {
	switch id[0] {
	case 0:
		return "no ID"
	case rivalsIDs:
		return fmt.Sprintf("r%d", id[1])
	}
	return fmt.Sprintf("%s%d", name(int(id[0])-1), id[1])
}

func orError(s string, err error) string {
	if err != nil {
		return errorText(err)
	}
	return s
}

// errorText returns one line. For an error of this package, the line is the text of the error. For
// every other error, the line is the Code.
func errorText(err error) string {
	var lost *lease.LostError
	if errors.As(err, &lost) {
		return lost.Reason.String()
	}
	if code, ok := err.(lease.Code); ok {
		return code.String()
	}
	return err.Error()
}

// timeText returns the time from the beginning of the world to t.
func (w *world) timeText(t time.Time) string {
	if t.IsZero() {
		return "forever"
	}
	return t.Sub(beginning).String()
}

func (w *world) recordText(r lease.Record) string {
	s := r.State.String()
	if !r.ID.IsZero() {
		s += " " + idName(r.ID)
	}
	if r.State.Locked() {
		s += " until " + w.timeText(r.Until)
	}
	return s
}

func (w *world) requestText(r lease.Request) string {
	switch r.Action {
	case lease.ActionAcquire:
		return "acquire " + idName(r.Proposed)
	case lease.ActionChange:
		return "change " + idName(r.ID) + " to " + idName(r.Proposed)
	}
	return r.Action.String() + " " + idName(r.ID)
}

var aims = map[Aim]string{AimTakeOver: " (a take-over)", AimProbe: " (to release it)", AimHandOver: " (a hand-over)"}

var ops = map[Op]string{OpAcquire: "acquire", OpRelease: "release", OpHandOver: "hand-over", OpReleaseUncertain: "release-uncertain", OpWait: "wait"}

// noteEffects writes down what the machine of a holder asks its shell to do.
func (w *world) noteEffects(who int, out Effects) {
	if w.script == nil {
		return
	}
	h := &w.h[who]
	if out.Stop != nil {
		w.note("%s: contexts end: %s", name(who), errorText(out.Stop))
	}
	if out.Ended != nil {
		w.note("%s: no longer holds: %s", name(who), errorText(out.Ended))
	}
	if b := h.m.term.belief; out.Began && b != nil {
		w.note("%s: holds %s until %s, with token %s", name(who), idName(b.ID), w.timeText(b.Until()), tokenText(b.Token))
	} else if b != nil && !b.Until().Equal(w.script.until[who]) {
		w.note("%s: holds until %s", name(who), w.timeText(b.Until()))
	}
	if b := h.m.term.belief; b != nil {
		w.script.until[who] = b.Until()
	}
	for _, r := range out.Report {
		switch r := r.(type) {
		case *lease.LostError:
			w.note("%s: OnLost: %s", name(who), errorText(r))
		case Breaking:
			w.note("%s: OnBreaking: until %s", name(who), w.timeText(r.Until))
		case Released:
			w.note("%s: reports a release of %s: %s", name(who), idName(r.ID), orError("done", r.Err))
		case Failure:
			w.note("%s: %s failed %d times: %s", name(who), r.What, r.Count, errorText(r.Err))
		}
	}
	for i, r := range out.Send {
		w.note("%s: sends #%d: %s%s", name(who), int(w.serial)+1+i, w.requestText(r.Request), aims[r.Aim])
	}
	for _, a := range out.Answers {
		result := "done"
		switch {
		case a.Err == ErrNotGranted:
			result = "false"
		case a.Err != nil:
			result = "error: " + errorText(a.Err)
		case a.Op == OpAcquire:
			result = "true, with token " + tokenText(a.Token)
		}
		w.note("%s: call %d (%s): %s", name(who), a.Call, ops[a.Op], result)
	}
}

func tokenText(t lease.Token) string { return strings.TrimLeft(string(t), "0") }
