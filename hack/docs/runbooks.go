// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// upgrader is a way to upgrade.
type upgrader interface {
	Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook
}

func runbook(name string, newUpgrader func(runbooks.Deps) upgrader) func() (string, error) {
	return func() (string, error) {
		deps := runbooks.Deps{Config: config.Default()}
		book := newUpgrader(deps).Runbook(&v1alpha1.UpgradeConfig{})
		if err := book.Validate(); err != nil {
			return "", err
		}
		var page strings.Builder
		fmt.Fprintf(&page, "# Runbook %s\n\nThe steps of an UpgradeConfig of type `%s`, in order. Each is a condition in the status history.\n"+
			"Times are those of the [default configuration](../reference/configuration.md).\n\n", name, name)
		page.WriteString("All gates of a step must pass in the pass in which it acts. Keep-alives are renewed while it waits.\n\n")
		table(&page, book.Steps, commitIndex(book))
		page.WriteString("\n## Cleanup\n\nThese steps run instead of the remaining ones once a step has failed.\n\n")
		table(&page, book.Cleanup, -1)
		if len(book.Finally) > 0 {
			page.WriteString("\n## Finally\n\nThese steps run last, whatever the outcome.\n\n")
			table(&page, book.Finally, -1)
		}
		return page.String(), nil
	}
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
