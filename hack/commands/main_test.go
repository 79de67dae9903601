// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1772485200")
	for _, tc := range []struct {
		args []string // FOLDER is inserted after the first one
		file string
		want []string
	}{
		{[]string{"man", "v0.1.0"}, "oc-update-status.1", []string{`.TH "OC-UPDATE-STATUS" "1" "Mar 2026" "kubectl-update v0.1.0"`, "\\fB--node\\fP=[]"}},
		{[]string{"markdown"}, "oc_update_fleet_status.md", []string{"## oc update fleet status\n", "[oc update fleet](oc_update_fleet.md)", `(default "~/.kube/cache")`}},
	} {
		folder := t.TempDir()
		if err := run(append([]string{tc.args[0], folder}, tc.args[1:]...)); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(folder, tc.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(string(content), want) {
				t.Errorf("%s lacks %q:\n%s", tc.file, want, content)
			}
		}
	}
	if err := run([]string{"html", t.TempDir()}); err == nil {
		t.Error("an unknown format is accepted")
	}
}
