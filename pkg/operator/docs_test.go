// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

func TestDocs_prints_the_runbook(t *testing.T) {
	t.Parallel()
	upgraders := func(deps runbooks.Deps) (map[string]upgradeconfig.ClusterUpgrader, error) {
		return map[string]upgradeconfig.ClusterUpgrader{"ARO": runbooks.ARO{Deps: deps}, "SHOP": table{commits("PricesFrozen")}}, nil
	}
	for args, want := range map[string]string{"SHOP": "| PricesFrozen | ", "ARO": "| CommenceUpgrade | ", "OSD": `unknown type "OSD", there are: ARO, SHOP`} {
		var out bytes.Buffer
		cmd := operator.Command("test", upgraders)
		cmd.SetArgs([]string{"docs", args})
		cmd.SetOut(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("docs %s prints %s, want %s", args, out.String(), want)
		}
	}
}

func TestRun_rejects_settings_that_upgraders_refuse(t *testing.T) {
	t.Parallel()
	upgraders := func(deps runbooks.Deps) (map[string]upgradeconfig.ClusterUpgrader, error) {
		return map[string]upgradeconfig.ClusterUpgrader{"OSD": runbooks.OSD{Deps: deps}}, deps.Config.Custom.Decode(&struct{}{})
	}
	err := operator.Run(t.Context(), optionsWithConfig(t, "custom: {quiet: 1h}\n"), cluster(t), logr.Discard(), clock.RealClock{}, upgraders)
	if err == nil || !strings.Contains(err.Error(), "invalid configuration: custom: quiet: ") {
		t.Errorf("got %v, want an error about custom.quiet", err)
	}
}
