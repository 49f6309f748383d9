package pglease

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fencedlease/lease/engine"
)

// notifyChannel is the name of the PostgreSQL channel for notifications. A payload has the time of a change
// in microseconds, a space, and the name of the lease.
const notifyChannel = "lease"

// notifySQL sends notifications of changes that have been committed. A transaction that sends a notification
// locks the whole database until its commit is on the disk. This statement does not wait for the disk,
// because it changes no table.
const notifySQL = `select count(pg_notify('` + notifyChannel + `', p))::text from json_array_elements_text($1::json) p`

const (
	notifyTimeout = 5 * time.Second // of one notification, after which each [listener] finds the change at its next sweep
	notifyMost    = 1000            // notifications in one statement
)

// notify sends a notification of a changed lease, and returns after the attempt. If ctx is done before that,
// notify returns at once, but the notification is still sent. While one statement with notifications is
// running, the others wait, and are then sent together.
func (s *rows) notify(ctx context.Context, name string, changed time.Time) {
	s.tasks.Begin()
	_, _ = engine.Call(ctx, func() (none struct{}, err error) {
		defer s.tasks.End()
		bounded, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		defer cancel()
		return s.notifications.Do(bounded, name, fmt.Sprint(changed.UnixMicro(), " ", name))
	})
}

func (s *rows) notifyMany(ctx context.Context, pass engine.Pass, payloads []string) ([]struct{}, error) {
	text, _ := json.Marshal(payloads) // cannot fail for strings
	return make([]struct{}, len(payloads)), s.send(ctx, pass, statement{notifySQL, []any{string(text)}, new(int), true})
}
