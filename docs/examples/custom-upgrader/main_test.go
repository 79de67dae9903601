// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func TestRunbook(t *testing.T) {
	t.Parallel()
	byType, err := register(upgraders.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	book := byType["SHOP"].Runbook(upgraders.Attempt{})
	if err := book.Validate(); err != nil {
		t.Fatal(err)
	}
	index := func(name string) int {
		return slices.IndexFunc(book.Steps, func(step engine.Step) bool { return step.Name == name })
	}
	if at := index("NoChangeFreeze"); at < 0 || at != index("PreHealthCheck")+1 {
		t.Errorf("NoChangeFreeze is step %d, want the one after PreHealthCheck", at)
	}
	commit := slices.IndexFunc(book.Steps, func(step engine.Step) bool { return step.Commit != nil })
	isFreeze := func(gate engine.Gate) bool { return gate.Name == "ChangeFreeze" }
	if !slices.ContainsFunc(book.Steps[commit].Gates, isFreeze) {
		t.Errorf("the committing step %s has no gate ChangeFreeze", book.Steps[commit].Name)
	}
}

func TestThawed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		until  string // "" for no ConfigMap
		custom string
		passes bool
		fails  bool
	}{
		"not declared":     {"", "", true, false},
		"frozen":           {"2026-12-27T00:00:00Z", "", false, false},
		"over":             {"2026-12-24T12:00:00Z", "", true, false},
		"quiet after it":   {"2026-12-24T11:30:00Z", `{"quiet": "31m"}`, false, false},
		"quiet long after": {"2026-12-24T11:30:00Z", `{"quiet": "30m"}`, true, false},
		"unreadable":       {"tomorrow", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder()
			if tc.until != "" {
				builder.WithObjects(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: watch.Namespaces[0], Name: watch.Name},
					Data:       map[string]string{"until": tc.until},
				})
			}
			byType, err := register(upgraders.Deps{Config: config.Config{Custom: config.Custom(tc.custom)}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := byType["SHOP"].(shop).thawed(builder.Build())(t.Context(), engine.Run{Now: now})
			if (err != nil) != tc.fails || err == nil && got.Passed() != tc.passes {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestUpgraders_reject_unknown_settings(t *testing.T) {
	t.Parallel()
	if _, err := register(upgraders.Deps{Config: config.Config{Custom: config.Custom(`{"quite": "1h"}`)}}); err == nil {
		t.Error("a misspelled setting was accepted")
	}
}

// The example must show that a custom upgrader takes little code.
func TestExample_is_short(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(source, []byte("\n")); lines > 60 {
		t.Errorf("main.go has %d lines, want at most 60", lines)
	}
}
