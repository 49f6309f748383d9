package ui

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

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
	text, err := json.Marshal(request)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	_ = b.from.SetReadDeadline(time.Now().Add(2 * time.Minute))
	for err == nil {
		var reply struct {
			ID             int
			Method         string
			Result, Params json.RawMessage
			Error          any
		}
		if text, err = b.read.ReadBytes(0); err == nil {
			err = json.Unmarshal(text[:len(text)-1], &reply)
		}
		if reply.Method == "Runtime.exceptionThrown" || reply.Method == "Log.entryAdded" {
			b.faults = append(b.faults, string(reply.Params))
		}
		if err != nil || reply.ID != b.id {
			continue
		}
		if reply.Error != nil {
			b.Fatalf("%s: %v", method, reply.Error)
		}
		if result != nil {
			err = json.Unmarshal(reply.Result, result)
		}
		break
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
	const wait = `new Promise(done => { const end = Date.now() + 60000; (function look() {
		let ok = false; try { ok = Boolean(%s); } catch (e) {}
		if (ok || Date.now() > end) done(ok); else setTimeout(look, 20);
	})(); })`
	if b.eval(fmt.Sprintf(wait, expression)) != "true" {
		b.Fatalf("not within a minute: %s\nThe page is\n%s\n%s", expression, b.eval("document.body.innerText"), b.faults)
	}
}

// press types keys: those with a name, and otherwise the letters of a text.
func (b *tab) press(keys ...string) {
	b.Helper()
	for _, key := range keys {
		code := map[string]int{"Enter": 13, "Escape": 27, "ArrowDown": 40}[key]
		text := map[int]string{0: key, 13: "\r"}[code]
		b.call("Input.dispatchKeyEvent", params{"type": "keyDown", "key": key, "text": text, "windowsVirtualKeyCode": code}, nil)
		b.call("Input.dispatchKeyEvent", params{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code}, nil)
	}
}

// look takes pictures on a phone and in a window, in the light and in the dark, into the artifacts of the test. It
// fails if the page is wider than the screen.
func (b *tab) look(name string) {
	b.Helper()
	for _, width := range []int{390, 1280} {
		b.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 400}, nil)
		if wide := b.eval("Math.max(innerWidth, document.documentElement.scrollWidth)"); wide != fmt.Sprint(width) {
			b.Errorf("%s: on a screen of %d pixels, the page is %s wide", name, width, wide)
		}
		for _, scheme := range []string{"light", "dark"} {
			b.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
			var shot struct{ Data []byte }
			b.call("Page.captureScreenshot", nil, &shot)
			if err := os.WriteFile(filepath.Join(b.ArtifactDir(), fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot.Data, 0o644); err != nil {
				b.Error(err)
			}
		}
	}
}
