// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The docs program generates reference pages from the code: the runbooks, the configuration, the
// metrics, the CloudEvents, the flags, and the list of alerts.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

const banner = "<!-- Generated from the code by `make update`. -->\n\n"

func main() {
	pages := map[string]func() (string, error){
		"docs/runbooks/OSD.md":               runbook("OSD", func(t upgraders.Deps) upgraders.ClusterUpgrader { return upgraders.OSD{Deps: t} }),
		"docs/runbooks/ARO.md":               runbook("ARO", func(t upgraders.Deps) upgraders.ClusterUpgrader { return upgraders.ARO{Deps: t} }),
		"docs/runbooks/UpgradeJob.md":        jobRunbook,
		"docs/runbooks/ClusterUpgradeRun.md": fleetRunbook,
		"docs/reference/configuration.md":    withoutError(configuration),
		"docs/reference/metrics.md":          metricsPage,
		"docs/reference/cloudevents.md":      cloudEvents,
		"docs/alerts/README.md":              alerts,
		"docs/reference/operator.md":         withoutError(flags),
		"docs/reference/hub.md":              withoutError(hubFlags),
		"docs/reference/permissions.md":      permissions,

		"docs/reference/update-status-controller.md": withoutError(statusFlags),
		"docs/reference/kubectl-update.md":           withoutError(pluginReference),
	}
	for path, page := range pages {
		if err := write(path, page); err != nil {
			fmt.Fprintln(os.Stderr, "docs:", err)
			os.Exit(1)
		}
	}
}

func write(path string, page func() (string, error)) error {
	text, err := page()
	if err != nil {
		return fmt.Errorf("generating %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // pages are public
		return err
	}
	return os.WriteFile(path, []byte(banner+text), 0o644) //nolint:gosec // pages are public
}

func withoutError(page func() string) func() (string, error) {
	return func() (string, error) { return page(), nil }
}
