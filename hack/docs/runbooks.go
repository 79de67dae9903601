// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks/fleet"
)

// upgrader is a way to upgrade.
type upgrader interface {
	Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook
}

func runbook(name string, newUpgrader func(runbooks.Deps) upgrader) func() (string, error) {
	return func() (string, error) {
		deps := runbooks.Deps{Config: config.Default()}
		book := newUpgrader(deps).Runbook(&v1alpha1.UpgradeConfig{})
		return runbookPage(name, fmt.Sprintf("an UpgradeConfig of type `%s`", name), book)
	}
}

// jobRunbook returns the page of UpgradeJobs.
func jobRunbook() (string, error) {
	job := &v1beta1.UpgradeJob{Spec: v1beta1.UpgradeJobSpec{
		StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6"},
	}}
	acquire := func(context.Context, engine.Run) (engine.Result, error) { return engine.Result{}, nil }
	upgrader := runbooks.Job{Deps: runbooks.Deps{Config: config.Default()}}
	return runbookPage("UpgradeJob", "an `UpgradeJob`", upgrader.Runbook(job, history.Record{}, acquire))
}

// fleetRunbook returns the page of ClusterUpgradeRuns. Their upgrades have no window.
func fleetRunbook() (string, error) {
	book := fleet.Upgrader{}.Runbook(&fleetv1alpha1.ClusterUpgradeRun{}, history.Record{}, time.Time{})
	page, err := runbookPage("ClusterUpgradeRun", "a `ClusterUpgradeRun`", book)
	if err != nil {
		return "", err
	}
	return strings.NewReplacer(
		"Times are those of the [default configuration](../reference/configuration.md).", "Times are the defaults of `upgradeStrategy`.",
		"when the window closes, or ", "", "when the window closes", "–",
	).Replace(page), nil
}

// runbookPage returns the page of a runbook.
func runbookPage(name, of string, book engine.Runbook) (string, error) {
	if err := book.Validate(); err != nil {
		return "", err
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Runbook %s\n\nThe steps of %s, in order. Each is a condition in the status history.\n"+
		"Times are those of the [default configuration](../reference/configuration.md).\n\n", name, of)
	page.WriteString("All gates of a step must pass in the pass in which it acts. Keep-alives are renewed while it waits.\n\n")
	table(&page, book.Steps, commitIndex(book))
	page.WriteString("\n## Cleanup\n\nThese steps run instead of the remaining ones once a step has failed.\n\n")
	table(&page, book.Cleanup, -1)
	if len(book.Finally) > 0 {
		page.WriteString("\n## Finally\n\nThese steps run last, whatever the outcome.\n\n")
		table(&page, book.Finally, -1)
	}
	if len(book.SkipReasons) > 0 {
		fmt.Fprintf(&page, "\n## Outcome\n\nA step that fails before the point of no return for one of these reasons skips the upgrade: %s.\n"+
			"Any other failure fails it.\n", strings.Join(book.SkipReasons, ", "))
	}
	if len(book.PauseReasons) > 0 {
		fmt.Fprintf(&page, "\nWhile a step waits for one of these reasons, the upgrade is paused: %s.\n", strings.Join(book.PauseReasons, ", "))
	}
	return page.String(), nil
}

func commitIndex(book engine.Runbook) int {
	for i, step := range book.Steps {
		if step.Commits {
			return i
		}
	}
	return -1
}

func table(page *strings.Builder, steps []engine.Step, commit int) {
	page.WriteString("| step | what it does | gates | keep-alives | slow after | fails |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, step := range steps {
		doc := step.Doc
		if step.Commits {
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
