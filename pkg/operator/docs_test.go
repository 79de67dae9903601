// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func TestDocs_prints_the_runbook(t *testing.T) {
	t.Parallel()
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"ARO": upgraders.ARO{Deps: deps}, "SHOP": table{commits("PricesFrozen")}}, nil
	}
	for args, want := range map[string]string{"SHOP": "| PricesFrozen | ", "ARO": "| CommenceUpgrade | ", "OSD": `unknown type "OSD", there are: ARO, SHOP`, "SHOP -o json": `{"Steps":[{"Name":"PricesFrozen",`} {
		var out bytes.Buffer
		cmd := operator.Command("test", register)
		cmd.SetArgs(append([]string{"docs"}, strings.Fields(args)...))
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
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}}, deps.Config.Custom.Decode(&struct{}{})
	}
	err := operator.Run(t.Context(), optionsWithConfig(t, "custom: {quiet: 1h}\n"), cluster(t), logr.Discard(), clock.RealClock{}, register)
	if err == nil || !strings.Contains(err.Error(), "invalid configuration: custom: quiet: ") {
		t.Errorf("got %v, want an error about custom.quiet", err)
	}
}
