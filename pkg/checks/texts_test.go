// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var compared sync.Map // names of cases

// checkTexts compares all user-visible texts of a test's findings with the golden file.
func checkTexts(tb testing.TB, what string, found []checks.Finding) {
	tb.Helper()
	if _, again := compared.LoadOrStore(tb.Name()+" "+what, true); again { // a test may check more than once
		return
	}
	lines := make([]string, len(found))
	for i := range found {
		lines[i] = describeFinding(&found[i])
	}
	golden.Texts(tb, what, lines...)
}

func describeFinding(f *checks.Finding) string {
	since := ""
	if !f.Since.IsZero() {
		since = f.Since.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s %s %s (%s, %s) %s; %s; since %s; %s; %s; because of %v",
		levels[f.Level], f.UID(), f.Reason, f.Scope, f.Type, f.Summary, f.Description, since, f.Remedy, f.Reference, f.CausedBy)
}
