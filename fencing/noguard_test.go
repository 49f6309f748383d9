package fencing_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// SPEC G1: a request that no guard is found for is not let through.
func TestNoGuardLetsNothingThrough(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let through") })
	h, err := fencing.Handler(next, &fencing.Options{Guard: func(*http.Request) (*fencing.Guard, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPut, "/", nil)
	r.Header.Set(string(fencing.DefaultHeader), string(lease.TokenOf(1)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d, want %d", w.Code, http.StatusInternalServerError)
	}
}
