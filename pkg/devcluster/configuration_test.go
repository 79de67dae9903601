// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

func TestConfiguration_uses_the_servers_of_the_cluster_by_default(t *testing.T) {
	t.Parallel()
	clusterURLs := map[string]string{"alerts": "http://prometheus", "alertmanager": "http://alertmanager", "webhook": "http://receiver"}
	for name, tc := range map[string]struct {
		text string
		want map[string]string
	}{
		"empty configuration":      {"", clusterURLs},
		"other settings":           {"upgradeWindow: 1h\nalerts:\n  interval: 1s\n", clusterURLs},
		"URLs set":                 {"alerts: {url: https://elsewhere}\n", map[string]string{"alerts": "https://elsewhere", "alertmanager": "http://alertmanager", "webhook": "http://receiver"}},
		"URLs set to empty":        {"alerts: {url: \"\"}\nwebhook: {url: \"\"}\n", map[string]string{"alerts": "", "alertmanager": "http://alertmanager", "webhook": ""}},
		"with apiVersion and kind": {"apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n", clusterURLs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "operator.yaml")
			if err := (configuration{file: file, urls: clusterURLs}).write(tc.text); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			read, err := config.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"alerts": read.Alerts.URL, "alertmanager": read.Alertmanager.URL, "webhook": read.Webhook.URL}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if read.Alerts.TokenFile+read.Alerts.CAFile+read.Alertmanager.TokenFile+read.Alertmanager.CAFile != "" {
				t.Errorf("it wants files that only a pod has: %+v", read)
			}
		})
	}
}

func TestConfiguration_that_is_invalid_is_written_unchanged(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "operator.yaml")
	if err := (configuration{file: file, urls: map[string]string{"alerts": ""}}).write("alerts: none\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Parse(text); err == nil {
		t.Errorf("it was put right: %s", text)
	}
}
