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
		table(&page, book.Steps, commitIndex(book))
		page.WriteString("\n## If it is given up\n\nThese are taken instead of the rest.\n\n")
		table(&page, book.Cleanup, -1)
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
	page.WriteString("| step | what it does | slow after | given up |\n| --- | --- | --- | --- |\n")
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
			ends = append(ends, "after "+formatDuration(step.FailAfter))
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", step.Name, doc, orDash(formatDuration(step.SlowAfter)), orDash(strings.Join(ends, ", or ")))
	}
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
