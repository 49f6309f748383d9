package pglease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
)

// A oneRow driver answers every query with one row, which holds the number 7.
type oneRow struct{ driver.Conn }

func (o oneRow) Connect(context.Context) (driver.Conn, error) { return o, nil }
func (o oneRow) Driver() driver.Driver                        { return nil }
func (o oneRow) Close() error                                 { return nil }

func (o oneRow) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return new(sevenOnce), nil
}

type sevenOnce struct{ read bool }

func (*sevenOnce) Columns() []string { return []string{"n"} }
func (*sevenOnce) Close() error      { return nil }

func (r *sevenOnce) Next(dest []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, dest[0] = true, int64(7)
	return nil
}

// A slowNumber blocks its scan until the test lets it continue.
type slowNumber struct{ n int64 }

var slowScan struct{ began, finish chan struct{} }

func (s *slowNumber) Scan(v any) error {
	close(slowScan.began)
	<-slowScan.finish
	s.n = v.(int64)
	return nil
}

// After a request has returned because its context ended, nothing writes to the variables of the caller,
// even if database/sql is still scanning the row.
func TestSQLScansNothingAfterTheContextEnds(t *testing.T) {
	db := sql.OpenDB(oneRow{})
	defer db.Close()
	for canceled, want := range map[bool]int64{true: 0, false: 7} {
		slowScan.began, slowScan.finish = make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		done, returned := make(chan struct{}), make(chan error, 1)
		var number slowNumber
		go func() {
			returned <- sqlDatabase{db}.queryRow(ctx, func() { close(done) }, "select 7", nil, []any{&number})
		}()
		<-slowScan.began
		var err error
		if canceled {
			cancel()
			err = <-returned
		}
		close(slowScan.finish)
		<-done
		if !canceled {
			err = <-returned
		}
		if errors.Is(err, context.Canceled) != canceled || number.n != want {
			t.Errorf("canceled %v: %v, and the variable of the caller holds %d, want %d", canceled, err, number.n, want)
		}
		cancel()
	}
}
