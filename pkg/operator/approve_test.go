// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
)

func TestApproveCommandRejectsItsEnvironment(t *testing.T) {
	t.Parallel()
	cmd := operator.Command("test", nil)
	cmd.AddCommand(operator.ApproveCommand(func(string) string { return "" }, clock.RealClock{}))
	cmd.SetArgs([]string{"approve-operators"})
	err := cmd.ExecuteContext(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "WAITTIME: ") || operator.ExitCode(err) != 1 {
		t.Errorf("got %v with exit code %d", err, operator.ExitCode(err))
	}
}

// The Job fails if the program reports that operators are not upgraded, but not if its pod is
// evicted.
func TestExitCodesAreThoseOfTheJob(t *testing.T) {
	t.Parallel()
	run, upgrade := &fleetv1alpha1.ClusterUpgradeRun{}, &fleetv1beta1.ManagedClustersUpgrade{}
	upgrade.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
	work, err := delivery.OperatorsWork(run, upgrade, "image", func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(work.Spec.Workload.Manifests[len(work.Spec.Workload.Manifests)-1].Raw, &job); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		err      error
		code     int32
		failsJob bool
	}{
		"upgraded":      {},
		"not upgraded":  {fmt.Errorf("%w: 1 of 1", olm.ErrNotUpgraded), 1, true},
		"interrupted":   {fmt.Errorf("%w: 1 of 1", olm.ErrInterrupted), 143, false},
		"not connected": {errors.New("no kubeconfig"), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := int32(operator.ExitCode(tc.err))
			failsJob := slices.Contains(job.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values, code)
			if code != tc.code || failsJob != tc.failsJob {
				t.Errorf("exit code %d fails the Job: %t; want %d, %t", code, failsJob, tc.code, tc.failsJob)
			}
		})
	}
}
