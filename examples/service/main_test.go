package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// The service refuses a token that is older than the newest token that the service has seen.
func TestService(t *testing.T) {
	h, err := newHandler()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	defer s.Close()
	for _, c := range []struct {
		token lease.Token
		want  int
	}{{lease.TokenOf(2), 200}, {lease.TokenOf(1), 412}, {lease.TokenOf(2), 200}, {lease.TokenOf(3), 200}} {
		client := &http.Client{Transport: &fencing.Transport{Token: c.token}}
		resp, err := client.Post(s.URL, "", nil)
		if err != nil {
			t.Errorf("token %q: %v", c.token, err)
			continue
		}
		if resp.Body.Close(); resp.StatusCode != c.want {
			t.Errorf("token %q: status %d, want %d", c.token, resp.StatusCode, c.want)
		}
	}
}
