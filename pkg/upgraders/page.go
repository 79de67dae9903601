// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// Page returns the page of a runbook: its steps, gates, and deadlines. of names the objects of the runbook, and
// times describes the source of the deadlines.
func Page(name, of, times string, book engine.Runbook) (string, error) {
	if err := book.Validate(); err != nil {
		return "", err
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Runbook %s\n\nThe steps of %s, in order. Each is a condition in the status history.\n"+
		"%s\n\n", name, of, times)
	if len(book.Admission) > 0 {
		var gates []string
		for _, gate := range book.Admission {
			gates = append(gates, gate.Name)
		}
		before := "the first step"
		if commit := book.CommitStep(); commit != nil && commit.Commit.After != "" {
			before = "step " + commit.Commit.After + " is done"
		}
		fmt.Fprintf(&page, "Before %s, the time must have come, nothing may hold the upgrade, and these gates must pass: %s.\n"+
			"They are evaluated in each pass, also ahead of time, and are not recorded.\n\n", before, strings.Join(gates, ", "))
	}
	page.WriteString("A step acts only while all of its gates pass. While a step waits, its keep-alives are renewed.\n\n")
	commit := slices.IndexFunc(book.Steps, func(s engine.Step) bool { return s.Commit != nil })
	writeTable(&page, book.Steps, max(commit, 0)) // without a commit, the window counts for the first step
	page.WriteString("\n## Cleanup\n\nThese steps run instead of the remaining ones once a step has failed.\n\n")
	writeTable(&page, book.Cleanup, -1)
	if len(book.Finally) > 0 {
		page.WriteString("\n## Finally\n\nThese steps run last, whatever the outcome.\n\n")
		writeTable(&page, book.Finally, -1)
	}
	if len(book.SkipReasons) > 0 {
		fmt.Fprintf(&page, "\n## Outcome\n\nIf a step fails before the point of no return for one of these reasons, the upgrade is skipped: %s.\n"+
			"Otherwise, the upgrade fails.\n", strings.Join(book.SkipReasons, ", "))
	}
	if len(book.PauseReasons) > 0 {
		fmt.Fprintf(&page, "\nWhile a step waits for one of these reasons, the upgrade is paused: %s.\n", strings.Join(book.PauseReasons, ", "))
	}
	return page.String(), nil
}

// writeTable adds the steps to the page. The steps up to commit end when the window closes.
func writeTable(page *strings.Builder, steps []engine.Step, commit int) {
	page.WriteString("| step | what it does | gates | keep-alives | slow after | fails |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, step := range steps {
		doc := step.Doc
		if step.Commit != nil {
			doc += " **The point of no return.**"
		}
		var ends []string
		if i <= commit {
			ends = append(ends, "when the window closes")
		}
		if step.FailAfter > 0 {
			ends = append(ends, "after "+formatDuration(step.FailAfter)+reasonText(step.FailReason))
		}
		if !step.FailBy.IsZero() {
			ends = append(ends, "at the timeout of the spec"+reasonText(step.FailReason))
		}
		var gates, keepAlives []string
		for _, gate := range step.Gates {
			gates = append(gates, gate.Name)
		}
		for _, keepAlive := range step.KeepAlive {
			keepAlives = append(keepAlives, keepAlive.Name)
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s |\n", step.Name, doc, orDash(strings.Join(gates, ", ")), orDash(strings.Join(keepAlives, ", ")),
			orDash(formatDuration(step.SlowAfter)), orDash(strings.Join(ends, ", or ")))
	}
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return " as " + reason
}

func formatDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return config.Duration{Duration: d}.String()
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
