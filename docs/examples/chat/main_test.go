// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

// receive posts events to the program. It returns the program's posts to the chat and its
// responses.
func receive(t *testing.T, teams bool, token string, answer int, events ...string) (posted []string, codes []int) {
	t.Helper()
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted = append(posted, string(body))
		w.WriteHeader(answer)
	}))
	defer chat.Close()
	h := handler(chat.URL, "secret", "https://console.example.com", teams)
	for _, event := range events {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(event))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		codes = append(codes, w.Code)
	}
	return posted, codes
}

// The events are the examples in the reference.
func TestHandler(t *testing.T) {
	page, err := os.ReadFile("../../reference/cloudevents.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	messages := 0
	for _, event := range all {
		posted, codes := receive(t, false, "secret", 200, event[1], event[1])
		if codes[0] != 200 || codes[1] != 200 || len(posted) > 1 {
			t.Errorf("%s: it answers %v, and posts %q", event[1], codes, posted)
		}
		messages += len(posted)
	}
	if len(all) != 14 || messages != 11 { // without steps that are waiting, done, or skipped
		t.Errorf("%d messages of %d events", messages, len(all))
	}
	fleet := `{"id": "1", "source": "urn:uuid:1", "type": "io.openshift.managed.upgrade.completed", "data": {"version": "4.20.6", "object": {"kind": "ManagedClustersUpgrade", "namespace": "fleet", "name": "stores"}}}`
	if posted, _ := receive(t, false, "secret", 200, fleet); len(posted) != 1 || !strings.Contains(posted[0], `"fleet stores: upgrade to 4.20.6 completed`) {
		t.Errorf("the message about a fleet is %s", posted)
	}
	for _, teams := range []bool{false, true} {
		posted, _ := receive(t, teams, "secret", 200, all[6][1])
		for _, want := range []string{"shop-x7k2p", "CommenceUpgrade", "4.4.6", "https://console.example.com/k8s/ns/managed-upgrade-operator/upgrade.managed.openshift.io~v1alpha1~UpgradeConfig/example-upgrade-config"} {
			if len(posted) != 1 || !strings.Contains(posted[0], want) || strings.Contains(posted[0], "AdaptiveCard") != teams {
				t.Errorf("the message lacks %s: %s", want, posted)
			}
		}
	}
	event := all[0][1]
	for name, tc := range map[string]struct {
		token, event string
		answer, want int
	}{
		"another client": {"x", event, 200, 401}, "no event": {"secret", "{", 200, 400}, "the chat is down": {"secret", event, 500, 502},
	} {
		if _, codes := receive(t, false, tc.token, tc.answer, tc.event); codes[0] != tc.want {
			t.Errorf("%s: it answers %v, want %d", name, codes, tc.want)
		}
	}
}
