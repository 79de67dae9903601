// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

func TestPreCheckCondition(t *testing.T) {
	t.Parallel()
	unfit := engine.PreCheckResult{Step: "PreHealthCheck", Reason: "ClusterUnhealthy", Message: "a node is ill", Blocking: true}
	lacking := engine.PreCheckResult{Step: "ClusterUpgradeable", Reason: "NotUpgradeable", Message: "it is not", Blocking: true}
	later := engine.PreCheckResult{Step: "VersionPinned", Reason: "ChannelWillBeSet", Message: "who knows"}
	idle := engine.PreCheckResult{Step: "ExternalDependenciesAvailable", Reason: "NotConfigured", Message: "there are none"}
	const fine = "nothing would block the upgrade now"
	for name, tc := range map[string]struct {
		found []engine.PreCheckResult
		want  condition
	}{
		"not blocked":                       {[]engine.PreCheckResult{idle}, condition{"True", "NothingFound", fine}},
		"something can be known only later": {[]engine.PreCheckResult{later, idle}, condition{"True", "NothingFound", fine + "; VersionPinned: who knows"}},
		"blocked":                           {[]engine.PreCheckResult{unfit, idle}, condition{"False", "PreHealthCheck", "PreHealthCheck: a node is ill"}},
		"blocked and unknown": {
			[]engine.PreCheckResult{later, lacking, unfit},
			condition{"False", "ClusterUpgradeable,PreHealthCheck", "ClusterUpgradeable: it is not; PreHealthCheck: a node is ill; VersionPinned: who knows"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := precheckCondition(tc.found); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
