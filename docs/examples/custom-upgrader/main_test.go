// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

func TestRunbook(t *testing.T) {
	t.Parallel()
	book := upgraders(runbooks.Deps{})["SHOP"].Runbook(&v1alpha1.UpgradeConfig{})
	if err := book.Validate(); err != nil {
		t.Fatal(err)
	}
	index := func(name string) int {
		return slices.IndexFunc(book.Steps, func(step engine.Step) bool { return step.Name == name })
	}
	if at := index("NoChangeFreeze"); at < 0 || at != index("PreHealthCheck")+1 {
		t.Errorf("NoChangeFreeze is step %d, want the one after PreHealthCheck", at)
	}
	commit := slices.IndexFunc(book.Steps, func(step engine.Step) bool { return step.Commits })
	isFreeze := func(gate engine.Gate) bool { return gate.Name == "ChangeFreeze" }
	if !slices.ContainsFunc(book.Steps[commit].Gates, isFreeze) {
		t.Errorf("the committing step %s has no gate ChangeFreeze", book.Steps[commit].Name)
	}
}

func TestWaitUntilUnfrozen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 24, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		until  string // "" means that there is no ConfigMap
		passes bool
		fails  bool
	}{
		"not declared": {"", true, false},
		"frozen":       {"2026-12-27T00:00:00Z", false, false},
		"over":         {"2026-12-24T12:00:00Z", true, false},
		"unreadable":   {"tomorrow", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder()
			if tc.until != "" {
				builder.WithObjects(&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: freezeKey.Namespace, Name: freezeKey.Name},
					Data:       map[string]string{"until": tc.until},
				})
			}
			got, err := waitUntilUnfrozen(builder.Build())(t.Context(), engine.Run{Now: now})
			if (err != nil) != tc.fails || got.Passed() != tc.passes {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
