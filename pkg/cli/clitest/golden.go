// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// Now is the current time in all tests.
var Now = time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)

// Ago returns a time before Now.
func Ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: Now.Add(-d)} }

// In returns a time after Now.
func In(d time.Duration) *metav1.Time { return &metav1.Time{Time: Now.Add(d)} }

// At parses a time such as 2026-11-23 01:00.
func At(value string) metav1.Time {
	parsed, err := time.Parse("2006-01-02 15:04", value)
	if err != nil {
		panic(err)
	}
	return metav1.NewTime(parsed)
}

// CheckWidth fails if a line is too wide. Commands may be wider because they are never wrapped.
func CheckWidth(tb testing.TB, printed string, width int) {
	tb.Helper()
	for line := range strings.Lines(printed) {
		if line = strings.TrimSuffix(line, "\n"); screen.Columns(line) > width && !strings.HasPrefix(line, screen.Blank(screen.LabelWidth+screen.ColumnGap)+"oc ") {
			tb.Errorf("%d columns are wider than %d: %q", screen.Columns(line), width, line)
		}
	}
}

// Golden compares a text with a golden file. It does not update files that the design specifies.
func Golden(t *testing.T, name, got string, mayUpdate bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *golden.Update && mayUpdate {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), renew it with -update:\n%s", path, diff)
	}
}
