// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/sink"
)

const structured = "application/cloudevents+json; charset=UTF-8"

func start(t *testing.T) (*sink.Server, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "receiver.log")
	r, err := sink.New(log)
	if err == nil {
		err = r.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r, log
}

// send sends a request and returns the status of the response.
func send(t *testing.T, r *sink.Server, method, contentType, body string) (int, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.URL(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	request.Close = true // a reused connection may predate a stop
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func event(source, id string) string {
	return `{"specversion":"1.0","type":"something.happened","source":"` + source + `","id":"` + id + `"}`
}

func post(t *testing.T, r *sink.Server, body string) {
	t.Helper()
	if code, err := send(t, r, http.MethodPost, structured, body); err != nil || code != http.StatusAccepted {
		t.Fatalf("got %d, %v, want 202", code, err)
	}
}

func receivedIDs(r *sink.Server) []string {
	var ids []string
	for _, one := range r.Events() {
		ids = append(ids, one.Source()+" "+one.ID())
	}
	return ids
}

func TestSink_keeps_each_event_once_in_order(t *testing.T) {
	t.Parallel()
	r, log := start(t)
	for _, body := range []string{event("here", "2"), event("here", "1"), event("here", "2"), event("there", "2")} {
		post(t, r, body)
	}
	want := []string{"here 2", "here 1", "there 2"}
	if diff := cmp.Diff(want, receivedIDs(r)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	written, err := os.ReadFile(log)
	if err != nil || strings.Count(string(written), "\n") != len(want) {
		t.Errorf("the log is %q, %v, want a line for each", written, err)
	}
}

func TestSink_rejects_invalid_events(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ method, contentType, body, want string }{
		"another method":       {http.MethodPut, structured, event("here", "1"), "the method is PUT"},
		"another content type": {http.MethodPost, "application/json", event("here", "1"), `the content type is "application/json"`},
		"no JSON":              {http.MethodPost, structured, "once upon a time", "reading the event: "},
		"no ID":                {http.MethodPost, structured, event("here", ""), "id: "},
		"too long":             {http.MethodPost, structured, strings.Repeat(" ", 65<<10), "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := start(t)
			code, err := send(t, r, tc.method, tc.contentType, tc.body)
			if err != nil || code != http.StatusBadRequest {
				t.Errorf("got %d, %v, want 400", code, err)
			}
			if refused := r.Refused(); len(refused) != 1 || !strings.Contains(refused[0], tc.want) {
				t.Errorf("refused: %q, want %q", refused, tc.want)
			}
			if got := receivedIDs(r); len(got) > 0 {
				t.Errorf("kept: %v", got)
			}
		})
	}
}

func TestSink_keeps_address_and_events_across_restarts(t *testing.T) {
	t.Parallel()
	r, _ := start(t)
	post(t, r, event("here", "1"))
	for range 2 {
		if err := r.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := send(t, r, http.MethodPost, structured, event("here", "2")); !errors.Is(err, syscall.ECONNREFUSED) || r.Running() {
		t.Errorf("got %v, want it refused", err)
	}
	for range 2 {
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
	}
	post(t, r, event("here", "3"))
	if diff := cmp.Diff([]string{"here 1", "here 3"}, receivedIDs(r)); diff != "" || !r.Running() {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestSink_answers_GET(t *testing.T) {
	t.Parallel()
	r, _ := start(t)
	if code, err := send(t, r, http.MethodGet, "", ""); err != nil || code != http.StatusNoContent || len(r.Refused()) > 0 {
		t.Errorf("got %d, %v, want 204", code, err)
	}
}
