package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A person looks at the page, uses it with the keyboard, and breaks a lease, while the store goes away and comes back.
func TestInBrowser(t *testing.T) {
	w := newWorld(t, true)
	w.interval = 50 * time.Millisecond
	for i := range 9 {
		w.hold(fmt.Sprint("x/job-", i), fmt.Sprint("holder-", i%3), 10*time.Minute)
	}
	w.hold("x/<img src=1 onerror=alert()>\u202e", "<b>\nholder", lease.Infinite)
	w.hold("x/shards/7", "worker/1#5", 10*time.Minute)
	_ = w.read(t.Context())
	go w.run(t.Context())
	server := httptest.NewServer(w)
	defer server.Close()
	b := openTab(t, server.URL+w.path())
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
	b.until(`(last.break = false, details(), $("ask").hidden)`) // as without -break
	b.eval(`$("ask").click()`)
	b.until(`document.activeElement === $("leave") && $("means").innerText.startsWith("holder-2 is told to stop its work on x/job-8. In at most 3 minutes")`)
	b.press("Enter")
	b.until(`$("confirm").hidden && !$("ask").hidden`)
	b.eval(`$("ask").click(), $("grace").value = 20, $("grace").oninput()`)
	b.until(`$("short").innerText.includes("may take 3 minutes")`)
	b.look("break")
	w.is("x/job-8", lease.Leased) // before the confirmation
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
	b.until(`$("states").innerText.includes("5,012 in all") && $("rows").children.length === 200 && $("more").innerText.includes("4,812 are")`)
	b.look("many")
	b.press("2")
	b.until(`/process-0\s+125 leases[^]*and 65 more/.test($("processes").innerText)`)
	b.press("1")
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
	tok := w.hold("x/1", "alice", time.Hour)
	server, other := httptest.NewServer(w), httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	defer other.Close()
	url, b := server.URL+w.path(), openTab(t, other.URL)
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
	w.is("x/1", lease.Leased)
}

type params map[string]any

// A tab is a page in Chromium, driven by the DevTools protocol over a pipe. Only one goroutine may use it.
type tab struct {
	*testing.T
	to, from *os.File
	read     *bufio.Reader
	id       int
	session  string
	faults   []string // exceptions and log messages of the page
}

// openTab starts Chromium, which ends with the test, and opens a page.
func openTab(t *testing.T, url string) *tab {
	t.Helper()
	theirIn, to, err1 := os.Pipe()
	from, theirOut, err2 := os.Pipe()
	cmd := exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--host-resolver-rules=MAP evil.example 127.0.0.1", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil || err1 != nil || err2 != nil {
		t.Fatalf("this test needs Debian's package chromium: %v, %v, %v", err, err1, err2)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &tab{T: t, to: to, from: from, read: bufio.NewReader(from)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil, nil)
		_, _, _ = cmd.Wait(), to.Close(), from.Close()
	})
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", params{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Page.navigate", params{"url": url}, nil)
	return b
}

// call sends a command and waits for its result.
func (b *tab) call(method string, p params, result any) {
	b.Helper()
	b.id++
	request := params{"id": b.id, "method": method, "params": p}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, _ := json.Marshal(request)
	_, err := b.to.Write(append(text, 0))
	_ = b.from.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for done := false; err == nil && !done; {
		var reply struct {
			ID             int
			Method         string
			Result, Params json.RawMessage
			Error          any
		}
		if text, err = b.read.ReadBytes(0); err == nil {
			err = json.Unmarshal(text[:len(text)-1], &reply)
		}
		switch done = reply.ID == b.id; {
		case reply.Method == "Runtime.exceptionThrown" || reply.Method == "Log.entryAdded":
			b.faults = append(b.faults, string(reply.Params))
		case done && reply.Error != nil:
			err = fmt.Errorf("%v", reply.Error)
		case done && result != nil:
			err = json.Unmarshal(reply.Result, result)
		}
	}
	if err != nil {
		b.Fatalf("%s: %v", method, err)
	}
}

// eval returns the value of an expression as JSON, after its promise if it is one.
func (b *tab) eval(expression string) string {
	b.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", params{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		b.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	return string(got.Result.Value)
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string) {
	b.Helper()
	const look = `new Promise(done => setTimeout(() => { let ok = false; try { ok = Boolean(%s); } catch (e) {} done(ok); }, 20))`
	for began := time.Now(); b.eval(fmt.Sprintf(look, expression)) != "true"; {
		if time.Since(began) > time.Minute {
			b.Fatalf("not within a minute: %s\nThe page is\n%s\n%s", expression, b.eval("document.body.innerText"), b.faults)
		}
	}
}

// press types keys: those with a name, and otherwise the letters of a text.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		code := map[string]int{"Enter": 13, "Escape": 27, "ArrowDown": 40}[key]
		p := params{"type": "keyDown", "key": key, "text": map[int]string{0: key, 13: "\r"}[code], "windowsVirtualKeyCode": code}
		b.call("Input.dispatchKeyEvent", p, nil)
		p["type"] = "keyUp"
		b.call("Input.dispatchKeyEvent", p, nil)
	}
}

// look takes pictures on a phone and in a window, in the light and in the dark, into the artifacts of the test. It
// fails if the page is wider than the screen, or has not the brightness.
func (b *tab) look(name string) {
	b.Helper()
	for i, scheme := range []string{"light", "dark", "light", "dark"} {
		width := []int{390, 1280}[i/2]
		b.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 400}, nil)
		b.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
		got := b.eval(`[Math.max(innerWidth, document.documentElement.scrollWidth), getComputedStyle(document.documentElement).backgroundColor < "rgb(2"]`)
		if want := fmt.Sprintf("[%d,%v]", width, scheme == "dark"); got != want {
			b.Errorf("%s in the %s: width and darkness are %s, want %s", name, scheme, got, want)
		}
		var shot struct{ Data []byte }
		b.call("Page.captureScreenshot", nil, &shot)
		if err := os.WriteFile(filepath.Join(b.ArtifactDir(), fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot.Data, 0o644); err != nil {
			b.Error(err)
		}
	}
}
