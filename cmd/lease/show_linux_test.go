package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencedlease/lease/cmd/lease/internal/servers"
)

// A row is what docs/command.md promises for -json.
type row struct {
	Name, State, Owner, Token, Error string
	Duration                         float64 `json:"duration_s"`
	Left                             float64 `json:"left_s"`
	Time                             time.Time
}

// rows decodes what -json printed. A key that the documentation does not list fails the test, such as an
// ID, with which a program could act as the holder.
func rows(t *testing.T, out string) (all []row) {
	t.Helper()
	if long := regexp.MustCompile(`\.\d{4,}`).FindString(out); long != "" {
		t.Errorf("more than milliseconds: %s in %s", long, out)
	}
	d := json.NewDecoder(strings.NewReader(out))
	for d.DisallowUnknownFields(); d.More(); {
		var r row
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		all = append(all, r)
	}
	return all
}

func TestShow(t *testing.T) {
	show := func(name string) row {
		t.Helper()
		out, stderr, code := run(t, url, "show", "-json", name)
		all := rows(t, out)
		if code != 0 || len(all) != 1 || all[0].Name != name {
			t.Fatalf("show: %d, %q, %s", code, out, stderr)
		}
		return all[0]
	}
	before := show("show/x")
	if before.State != "available" || before.Owner != "" || before.Left != 0 {
		t.Errorf("before: %+v", before)
	}
	holder := holding(t, "show/x")
	r := show("show/x")
	if want := (row{Name: "show/x", State: "leased", Owner: r.Owner, Token: r.Token, Duration: 3, Left: r.Left}); r != want {
		t.Errorf("held: %+v", r)
	}
	if r.Token <= before.Token || r.Owner == "" || r.Left <= 0 || r.Left > 3 {
		t.Errorf("held: %+v, and before %+v", r, before)
	}
	table, _, _ := run(t, url, "show", "show/x")
	lines := strings.Split(table, "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[0]), " ") != "NAME STATE LEFT TOKEN OWNER" || !strings.Contains(lines[1], r.Owner) {
		t.Errorf("the table is\n%s", table)
	}
	_ = holder.Process.Signal(syscall.SIGTERM)
	_ = holder.Wait()
	if r := show("show/x"); r != (row{Name: "show/x", State: "available", Token: r.Token}) {
		t.Errorf("after: %+v", r)
	}
}

// The owner of a lease that has ended without a release answers the question who has crashed.
func TestLastOwner(t *testing.T) {
	for state, end := range map[string]func(holder *os.Process){
		"expired": func(holder *os.Process) { _ = holder.Kill() },
		"broken":  func(*os.Process) { run(t, url, "break", "owner/broken", "-grace", "0s", "-yes") },
	} {
		name := "owner/" + state
		holder := holding(t, name)
		out, _, _ := run(t, url, "show", "-json", name)
		held := rows(t, out)[0]
		supervisor, err := supervisor(holder.Process)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(supervisor, syscall.SIGSTOP) // so that the holder does not release what was broken
		_ = holder.Process.Signal(syscall.SIGSTOP)
		end(holder.Process)
		t.Cleanup(func() { _ = syscall.Kill(supervisor, syscall.SIGKILL) })
		want := row{Name: name, State: state, Owner: held.Owner, Token: held.Token}
		for _, args := range []string{"show -json " + name, "ls -json " + name} {
			var got []row
			eventually(t, state, 10*time.Second, func() bool {
				out, _, _ := run(t, url, strings.Fields(args)...)
				got = rows(t, out)
				return len(got) == 1 && got[0].State == state
			})
			if got[0] != want || held.Owner == "" {
				t.Errorf("%s: %+v, want %+v", args, got, want)
			}
		}
		if table, _, _ := run(t, url, "ls", name); !strings.Contains(table, held.Owner) {
			t.Errorf("the table names no owner:\n%s", table)
		}
	}
}

// A list is sorted and has only names with the prefix. An unreadable record is a row, and makes the exit code
// 1.
func TestList(t *testing.T) {
	dir := t.TempDir()
	store, _, stop, err := servers.Redis(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, name := range []string{"l/b", "l/a", "m/c"} {
		if _, stderr, code := run(t, store, "run", name, "--", "true"); code != 0 {
			t.Fatal(stderr)
		}
	}
	for prefix, want := range map[string]string{"l/": "2 leases are available and not shown", "m/": "1 lease is available and not shown", "none/": ""} {
		if out, stderr, code := run(t, store, "ls", prefix); code != 0 || out != "" || !strings.Contains(stderr, want) || (stderr == "") != (want == "") {
			t.Errorf("a list without a row: %d, %q %q, want %q", code, out, stderr, want)
		}
	}
	out, _, code := run(t, store, "ls", "-json", "l/")
	if all := rows(t, out); code != 0 || len(all) != 2 || all[0].Name != "l/a" || all[1].Name != "l/b" {
		t.Errorf("%d: %s", code, out)
	}
	port := store[strings.LastIndex(store, ":")+1:]
	spoil := `for k in $(redis-cli -p "$0" --scan --pattern '*l/a*'); do redis-cli -p "$0" hset "$k" state nonsense; done`
	if out, err := exec.Command("sh", "-c", spoil, port).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, stderr, code := run(t, store, "ls", "-json", "l/")
	if code != 1 || !strings.Contains(stderr, "1 record cannot be read") {
		t.Errorf("%d, %s", code, stderr)
	}
	if all := rows(t, out); len(all) != 2 || all[0].Error == "" || all[1].Error != "" {
		t.Errorf("%d, %s: %s", code, stderr, out)
	}
}

// A watcher is a lease watch and the lines that it prints.
type watcher struct {
	*testing.T
	cmd    *exec.Cmd
	lines  chan string
	stderr strings.Builder
}

func watch(t *testing.T, store string, args ...string) *watcher {
	t.Helper()
	w := &watcher{T: t, cmd: exec.Command(binary, append([]string{"watch", "-interval", "100ms", "-store", store}, args...)...), lines: make(chan string)}
	w.cmd.Stderr = &w.stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(w.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			w.lines <- in.Text()
		}
	}()
	t.Cleanup(w.end)
	return w
}

func (w *watcher) end() {
	_ = w.cmd.Process.Kill()
	for range w.lines {
	}
	_ = w.cmd.Wait()
}

func (w *watcher) next() string {
	w.Helper()
	select {
	case l := <-w.lines:
		return l
	case <-time.After(10 * time.Second):
		w.Fatal("no line within 10s")
	}
	return ""
}

// lease watch prints the state at first, and then each change, but no renewal. It survives its store.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	store, server, stop, err := servers.Redis(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	picture := filepath.Join(dir, "timeline.svg")
	one := watch(t, store, "-o", picture, "-json", "w/1")
	began := time.Now()
	state := func(want string) (token string) {
		t.Helper()
		line := one.next()
		r := rows(t, line)[0]
		if r.Name != "w/1" || r.State != want || (r.Owner != "") != (want == "leased") || r.Time.Sub(began).Abs() > time.Minute {
			t.Errorf("%s, want it to be %s", line, want)
		}
		return r.Token
	}
	first := state("available")
	run(t, store, "run", "w/1", "--", "sleep", "3.5") // 3 renewals and more
	if second, third := state("leased"), state("available"); second <= first || third != second {
		t.Errorf("tokens %q, %q, %q", first, second, third)
	}

	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>leases w/1</title>", `class="leased `, ">holder "} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the timeline has no %s:\n%s", want, svg)
		}
	}

	group := filepath.Join(dir, "group.svg")
	all := watch(t, store, "-o", group, "w/")
	if l := all.next(); !strings.Contains(l, "  w/1  available  -  ") {
		t.Errorf("the first line is %q", l)
	}
	run(t, store, "run", "w/2", "--", "sleep", "0.5")
	for _, state := range []string{"leased", "available"} {
		if l := all.next(); !strings.Contains(l, "  w/2  "+state+"  ") {
			t.Errorf("%q, want w/2 %s", l, state)
		}
	}
	svg, err = os.ReadFile(group)
	if owner := regexp.MustCompile(`<text x="36" y="\d+">1</text>\n<text x="64" y="\d+">[^<]+</text>`); err != nil || !owner.Match(svg) {
		t.Errorf("the timeline names no owner: %v\n%s", err, svg)
	}
	_ = server.Kill()
	time.Sleep(time.Second)
	all.end()
	if text := all.stderr.String(); strings.Count(text, "no answer, trying again") != 1 {
		t.Errorf("without a store: %q", text)
	}
	if _, stderr, code := run(t, store, "watch", "w/1"); code != 69 {
		t.Errorf("a watch without a store: %d, %s", code, stderr)
	}
}

// lease bench measures each request, and leaves no lease held. It refuses to run twice at a time.
func TestBench(t *testing.T) {
	out, stderr, code := run(t, url, "bench", "-time", "300ms", "-parallel", "4")
	for _, want := range []string{"acquire ", "renew ", "release ", "\n        4 ", "load average", "leases of 3s fit, each renewed every 1s."} {
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, " 0 renewals") {
			t.Errorf("%d, without %q: %s%s", code, want, out, stderr)
		}
	}
	out, stderr, code = run(t, url, "bench", "-leases", "40", "-duration", "1s", url)
	if code != 0 || !strings.Contains(out, "\n| 1s | 40 | 40 | 0 | ") || strings.Contains(out, " 0 MB") || !strings.Contains(out, "load average") {
		t.Errorf("%d: %s%s", code, out, stderr)
	}
	out, _, _ = run(t, url, "ls", "-json", "lease-bench/")
	for _, r := range rows(t, out) {
		if r.State != "available" {
			t.Errorf("left behind: %+v", r)
		}
	}
	holding(t, "lease-bench/one")
	if _, stderr, code := run(t, url, "bench", "-time", "100ms"); code != 75 || !strings.Contains(stderr, "another runs") {
		t.Errorf("beside another: %d, %s", code, stderr)
	}
}

// lease ui prints the address of a page, which shows the leases and may break them only with -break.
func TestUI(t *testing.T) {
	holding(t, "ui/x")
	for breaks, args := range map[string]string{`"break":false`: "ui ui/", `"break":true`: "ui -break -port 0 ui/"} {
		cmd := exec.CommandContext(t.Context(), binary, append(strings.Fields(args), "-store", url)...)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal(err)
		}
		address, _ := bufio.NewReader(out).ReadString('\n')
		page, err := exec.Command("curl", "-sS", strings.TrimSpace(address)+"leases.json").CombinedOutput()
		for _, want := range []string{breaks, `"name":"ui/x","state":"leased"`, `"store":"redis"`} {
			if err != nil || !strings.Contains(string(page), want) {
				t.Errorf("%s: no %s in %s, %v", args, want, page, err)
			}
		}
		_, _ = cmd.Process.Kill(), cmd.Wait()
	}
}
