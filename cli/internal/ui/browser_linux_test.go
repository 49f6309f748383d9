package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// serve serves a handler until the test ends.
func serve(t *testing.T, h http.Handler) *httptest.Server {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// A person looks at the page, uses it with the keyboard, and breaks a lease, while the store goes away and comes back.
func TestInBrowser(t *testing.T) {
	w := newWorld(t, true)
	w.config.Interval = 50 * time.Millisecond
	for i := range 9 {
		w.hold(fmt.Sprint("x/job-", i), fmt.Sprint("holder-", i%3), 10*time.Minute)
	}
	w.hold("x/<img src=1 onerror=alert()>\u202e", "<b>\nholder", lease.Infinite)
	w.hold("x/shards/7", "worker/1#5", 10*time.Minute)
	go w.Run(t.Context())
	server := serve(t, w)
	b := openTab(t, server.URL+w.Path())
	b.until(`$("rows").children.length === 11 && !document.querySelector("#rows img, #rows b")`)
	b.until(`/x\/<img src=1 onerror=alert\(\)>\ufffd\s+leased\s+no end\s+<b>\ufffdholder/.test($("rows").innerText)`)
	const scale = `new DOMMatrix(getComputedStyle($("rows").lastChild.querySelector("i")).transform).a`
	b.eval(`before = ` + scale)
	b.until(scale + ` < before`)
	w.hold("x/new", "holder-0", 10*time.Minute)
	b.until(`$("changes").innerText.includes("x/new was taken by holder-0 (token 1)")`)
	b.look("leases")
	b.press("2")
	b.until(`/holder-0\s+4 leases\s+x\/job-0\s+x\/job-3\s+x\/job-6\s+x\/new\s+holder-1\s+3 leases/.test($("processes").innerText)`)
	b.until(`/worker\/1\s+1 shard\s+7$/.test($("processes").innerText)`)
	b.look("processes")
	b.press("3")
	b.until(`document.querySelector("#timeline img").naturalHeight > 100`)
	b.look("timeline")

	b.press("1", "/", "j", "o", "b", "-", "8")
	b.until(`$("rows").children.length === 1`)
	b.press("ArrowDown", "Enter")
	b.until(`$("one").open && $("one-text").innerText.startsWith("leased by holder-2, token 1") && document.querySelector("#one-picture img")`)
	b.eval(`$("ask").click()`)
	b.until(`document.activeElement === $("leave") && $("means").innerText.startsWith("holder-2 is told to stop its work on x/job-8. In at most 30 seconds")`)
	b.press("Enter")
	b.until(`$("confirm").hidden && !$("ask").hidden`)
	b.eval(`$("ask").click(), $("grace").value = 20, $("grace").oninput()`)
	b.until(`$("short").innerText.includes("may take 25 seconds")`)
	b.look("break")
	if state := w.state("x/job-8"); state != lease.Leased {
		t.Errorf("before the confirmation, the lease is %v", state)
	}
	b.eval(`$("break").click()`)
	b.until(`$("outcome").innerText === "Broken. The lease is free in at most 20s." && $("one-text").innerText.startsWith("breaking by holder-2")`)
	b.press("Escape")

	w.gone.Store(true)
	b.until(`/^The store cannot be read. Read \d+ seconds ago.*\nconnection <b>refused/.test($("alarm").innerText) && document.body.className === "stale"`)
	b.until(`!$("one").open && document.querySelector("#rows .state").innerText === "breaking"`)
	b.eval(`$("filter").value = "", show()`)
	b.until(`$("rows").innerText.includes(" min, unless renewed")`)
	b.look("gone")
	w.gone.Store(false)
	b.until(`$("alarm").hidden && !document.body.className && $("age").innerText === "Read just now" && $("changes").innerText.includes("The store could not be read.")`)

	for i := range 5000 {
		w.hold(fmt.Sprint("x/many/", i), fmt.Sprint("process-", i%40), time.Hour)
	}
	b.until(`$("states").innerText.includes("5,012 not free") && $("rows").children.length === 200 && $("more").innerText.includes("4,812 are")`)
	b.look("many")
	for _, v := range []string{"processes", "timeline", "leases"} {
		t.Logf("with 5,000 leases, %s are shown in %s ms", v, b.eval(`(() => { const t = performance.now(); $("view-`+v+`").click(); return performance.now() - t; })()`))
	}
	b.eval(`$("filter").value = "many/4999", $("filter").oninput()`)
	b.until(`$("rows").children.length === 1 && $("rows").innerText.includes("process-39")`)
	if len(b.faults) > 0 {
		t.Errorf("the page reports %s", b.faults)
	}
	server.Close()
	b.until(`$("alarm").innerText.startsWith("The program “lease ui” does not answer")`)
}

// A page of another origin that knows the secret can neither read the page nor act through it, not even under a name
// that it points at this machine.
func TestOtherPages(t *testing.T) {
	w := newWorld(t, true)
	_ = w.Read(t.Context())
	tok := w.hold("x/1", "alice", time.Hour)
	url := serve(t, w).URL + w.Path()
	b := openTab(t, serve(t, http.NotFoundHandler()).URL)
	b.until(`document.body.innerText.includes("404")`)
	for _, script := range []string{
		`fetch(url + "leases.json")`,
		`fetch(url + "break.json", { method: "POST", body })`,
		`fetch(url + "break.json", { method: "POST", mode: "no-cors", body })`,
		`new Promise((ok, no) => Object.assign(new Image(), { onload: ok, onerror: no, src: url + "timeline.svg" }))`,
		`new Promise((ok, no) => document.head.append(Object.assign(document.createElement("script"), { onload: ok, onerror: no, src: url + "page.js" })))`,
	} {
		call := fmt.Sprintf(`((url, body) => %s.then(() => "open", () => "refused"))(%q, '{"name":"x/1","token":"%s","grace":1}')`, script, url, tok)
		if got := b.eval(call); got != `"refused"` {
			t.Errorf("%s is %s", script, got)
		}
	}
	b.call("Page.navigate", params{"url": strings.Replace(url, "127.0.0.1", "evil.example", 1)}, nil)
	b.until(`document.body.innerText.startsWith("This page answers only at localhost")`)
	if state := w.state("x/1"); state != lease.Leased {
		t.Errorf("the lease is %v", state)
	}
	b.call("Page.navigate", params{"url": url}, nil) // as a person who enters it
	b.until(`document.title === "Leases x/" && $("none").innerText === "There is no lease here."`)
}
