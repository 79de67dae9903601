// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	// program serves the pages.
	program = "../../bin/kubectl-update"

	// limit bounds each wait for the browser and for the program.
	limit = time.Minute
)

// widths are the widths of a phone and of a laptop, in pixels.
var widths = []int64{390, 1280}

// browse starts Chromium until the end of the test.
func browse(t *testing.T) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		t.Fatal("CHROMIUM is not set: see make e2e-ui")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(limit))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	browser, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(closeBrowser)
	if err := chromedp.Do(browser); err != nil {
		t.Fatal(err)
	}
	return browser
}

// serve starts the program with --serve on a dump, and returns the address of the page.
func serve(t *testing.T, dump string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, program, append(args, "--serve", "--replay", dump, "--now", judged.Format(time.RFC3339))...) //nolint:gosec // our own program
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(line)
	if err != nil || address == "" {
		t.Fatalf("the program printed %q, %v", line, err)
	}
	return address + "/"
}

// tab is a page at a width.
type tab struct {
	t       *testing.T
	browser context.Context
	width   int64
}

// run runs an action of the browser, and returns its value.
func run[T any](b tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.browser, limit)
	defer stop()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// open opens a page, and checks it.
func (b tab) open(address string) {
	b.t.Helper()
	run(b, chromedp.EmulateViewport(b.width, 900))
	run(b, chromedp.Navigate(address))
	b.check(address)
}

// click clicks the visible link with a text, and checks that the page it leads to has the heading.
func (b tab) click(text, heading string) {
	b.t.Helper()
	before := run(b, chromedp.Evaluate[string]("location.href"))
	if !run(b, chromedp.Evaluate[bool](fmt.Sprintf(`(() => {
  const link = [...document.querySelectorAll("a")].find(a => a.textContent === %q && a.getClientRects().length);
  if (link) link.click();
  return !!link;
})()`, text))) {
		b.t.Fatalf("at %d pixels: %s has no link %q", b.width, before, text)
	}
	b.await(before)
	if got := b.visible("h1"); len(got) != 1 || got[0] != heading {
		b.t.Errorf("at %d pixels: the link %q leads to %q, want %q", b.width, text, got, heading)
	}
	b.check(text)
}

// await waits until another page than the one at an address is complete. The browser has no answer while it changes pages.
func (b tab) await(before string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.browser, limit)
	defer stop()
	for {
		address, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.readyState === "complete" ? location.href : ""`))
		if err == nil && address != "" && address != before {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("the browser still shows %s: %v", before, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// checks find what is wrong with a page: what is wider than it, names that take several lines, and images without a
// name.
const checks = `(() => {
  const wrong = [], page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) wrong.push("the page is " + page.scrollWidth + " pixels wide, not " + page.clientWidth);
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (box.width && (box.right > page.clientWidth + 1 || box.left < -1)) wrong.push(e.tagName + " " + e.className + " ends at " + box.right + ": " + e.textContent.slice(0, 60));
  }
  for (const e of document.querySelectorAll(".row > .name")) {
    const range = document.createRange();
    range.selectNodeContents(e);
    const track = e.nextElementSibling.getBoundingClientRect(), name = range.getBoundingClientRect();
    if (range.getClientRects().length > 1) wrong.push(e.textContent + " is broken");
    if (name.right > track.left && name.bottom > track.top + 1 && name.top < track.bottom - 1) wrong.push(e.textContent + " covers its bar");
  }
  for (const e of document.querySelectorAll("[role=img]")) if (!e.getAttribute("aria-label")) wrong.push("a bar has no name");
  return wrong;
})()`

func (b tab) check(page string) {
	b.t.Helper()
	for _, w := range run(b, chromedp.Evaluate[[]string](checks)) {
		b.t.Errorf("%s at %d pixels: %s", page, b.width, w)
	}
}

// visible returns the texts of the visible elements of a selector.
func (b tab) visible(selector string) []string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[[]string](fmt.Sprintf(
		`[...document.querySelectorAll(%q)].filter(e => e.getClientRects().length).map(e => e.innerText.replace(/\s+/g, " ").trim())`, selector)))
}

// expect checks the number of visible rows of the table and their state, unless the state is empty.
func (b tab) expect(rows int, state string) {
	b.t.Helper()
	shown := b.visible("tbody tr")
	if len(shown) != rows {
		b.t.Errorf("at %d pixels: %d rows, want %d: %.300q", b.width, len(shown), rows, shown)
	}
	for _, row := range shown {
		if !strings.Contains(row, state) {
			b.t.Errorf("at %d pixels: the row %q has not the state %s", b.width, row, state)
		}
	}
}

// draw writes the picture of the upper part of the page into the folder PICTURES.
func (b tab) draw(name string, height int64) {
	b.t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		folder = b.t.TempDir()
	}
	run(b, chromedp.EmulateViewport(b.width, height))
	picture := run(b, chromedp.CaptureScreenshot())
	if len(picture) == 0 {
		b.t.Error("the picture is empty")
	}
	if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d.png", name, b.width)), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func TestReport(t *testing.T) {
	address := serve(t, clusterDump(t), "report", "upgrade/cluster", "-n", "managed-upgrade-operator")
	browser := browse(t)
	for _, width := range widths {
		b := tab{t, browser, width}
		b.open(address)
		if got := b.visible("h1"); len(got) != 1 || got[0] != "store-0388: 4.20.5 to 4.20.6" {
			t.Errorf("heading %q", got)
		}
		if got := strings.Join(b.visible(".legend"), "; "); got != "done failed; cordoned rebooting not ready" {
			t.Errorf("legends %q", got)
		}
		if got := b.visible("main section:first-child li"); len(got) != 1 || !strings.Contains(got[0], "worker-3 is not ready") {
			t.Errorf("causes %q", got)
		}
		b.draw("report", map[int64]int64{390: 1700, 1280: 1160}[width])
	}
}

func TestFleetReport(t *testing.T) {
	address := serve(t, fleetDump(t), "fleet", "report", "stores", "-n", "fleet")
	browser := browse(t)
	for _, width := range widths {
		b := tab{t, browser, width}
		b.open(address)
		b.expect(100, "")
		b.draw("fleet-report", map[int64]int64{390: 1300, 1280: 900}[width])
		b.click("Next", "stores: upgrade to 4.20.6")
		if got := b.visible("[aria-label=Pages] span"); len(got) != 1 || got[0] != "Page 2 of 13" {
			t.Errorf("pages %q", got)
		}
		b.click("Failed 2", "stores: upgrade to 4.20.6")
		b.expect(2, "Failed")
		b.click("store-0187", "store-0187: 4.20.5 to 4.20.6")
		if got := b.visible(".row .name"); len(got) != 3 || got[2] != "ClusterUpgraded" {
			t.Errorf("steps %q", got)
		}
		b.click("All clusters", "stores: upgrade to 4.20.6")
		b.expect(100, "")
	}
}

// The links and the filter of a file work without a server.
func TestFleetReport_file(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stores.html")
	cmd := exec.CommandContext(t.Context(), program, "fleet", "report", "stores", file, "-n", "fleet", "--replay", fleetDump(t), "--now", judged.Format(time.RFC3339)) //nolint:gosec // our own program
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	browser := browse(t)
	for _, width := range widths {
		b := tab{t, browser, width}
		b.open("file://" + file)
		b.expect(stores, "")
		b.click("Failed 2", "stores: upgrade to 4.20.6")
		b.expect(2, "Failed")
		b.click("store-0187", "store-0187: 4.20.5 to 4.20.6")
		if got := b.visible("main"); len(got) != 0 {
			t.Error("the table is visible beside the page of a cluster")
		}
		b.click("All clusters", "stores: upgrade to 4.20.6")
		b.expect(stores, "")
	}
}
