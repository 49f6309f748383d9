package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// clockPath is no path of the protocol: no account's name has such a letter.
const clockPath = "/_clock"

// A clockHandler shows and moves the clock. GET answers {"now":"..."}; POST with the
// parameter advance, a duration such as 15s or 1m, moves it forward first, and answers 400 if
// that is beyond its end, where it stands then. It asks for no signature.
type clockHandler struct{ clock *blobtest.Clock }

func (h clockHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		d, err := time.ParseDuration(r.URL.Query().Get("advance"))
		if err != nil || d < 0 {
			http.Error(w, "advance must be a duration such as 15s, and not negative", http.StatusBadRequest)
			return
		}
		until := h.clock.Now().Add(d)
		h.clock.Advance(d)
		if now := h.clock.Now(); now.Before(until) {
			http.Error(w, "the clock ends at "+now.Format(time.RFC3339), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "the clock knows GET and POST", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct {
		Now time.Time `json:"now"`
	}{h.clock.Now()}) // a client that is gone cannot be told
}
