// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func TestReplaced(t *testing.T) {
	t.Parallel()
	version := func(v string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v}}
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var written, unchanged manager.Replaced
	written.Note(version("1"), version("2"), at)
	unchanged.Note(version("1"), version("1"), at)
	for name, test := range map[string]struct {
		replaced manager.Replaced
		cached   string
		after    time.Duration
		want     bool
	}{
		"cache that holds the replaced version":      {written, "1", time.Second, true},
		"cache that holds it for a minute":           {written, "1", time.Minute, false},
		"cache that holds it before the write":       {written, "1", -time.Second, false},
		"cache that holds the written version":       {written, "2", 0, false},
		"cache that holds an earlier version":        {written, "0", 0, false},
		"write that changed nothing":                 {unchanged, "1", 0, false},
		"no write, and an object that is not stored": {manager.Replaced{}, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.replaced.IsBehind(version(test.cached), at.Add(test.after)); got != test.want {
				t.Errorf("IsBehind returns %t, want %t", got, test.want)
			}
		})
	}
}
