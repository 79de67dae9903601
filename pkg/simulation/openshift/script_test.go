// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// newScript returns a cluster at 4.4.5 with a channel that offers 4.4.6.
func newScript(t *testing.T, pools ...*mcfgv1.MachineConfigPool) (*simulation.World, *openshift.Script) {
	t.Helper()
	w := simulation.New(simulation.WorldOptions{})
	script, err := openshift.NewScript(w, "4.4.5", "fast-4.4", "4.4.6")
	if err != nil {
		t.Fatal(err)
	}
	for _, pool := range pools {
		if err := w.Add(pool); err != nil {
			t.Fatal(err)
		}
	}
	script.ChangeVersion(func(version *configv1.ClusterVersion) { version.Spec.Channel = "fast-4.4" })
	runFor(t, w, time.Second)
	return w, script
}

func runFor(t *testing.T, w *simulation.World, d time.Duration) {
	t.Helper()
	if err := w.RunFor(d); err != nil {
		t.Fatal(err)
	}
}

func request(script *openshift.Script, version string) {
	script.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Version: version} })
}

func TestScriptRejectsReleasesThatAreNotOffered(t *testing.T) {
	t.Parallel()
	w, script := newScript(t)
	invalid := func() bool {
		return slices.ContainsFunc(script.ClusterVersion().Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
			return c.Type == "Invalid" && c.Status == configv1.ConditionTrue
		})
	}
	request(script, "4.4.7")
	runFor(t, w, time.Hour)
	if got := script.ClusterVersion().Status.History[0].Version; got != "4.4.5" || !invalid() {
		t.Errorf("the cluster updates to %s, invalid %t", got, invalid())
	}
	script.Offer("4.4.6", "4.4.7")
	runFor(t, w, time.Hour)
	if got := script.ClusterVersion().Status.History[0]; got.Version != "4.4.7" || got.State != configv1.CompletedUpdate || invalid() {
		t.Errorf("the cluster is at %+v, invalid %t", got, invalid())
	}
}

// Like for the cluster version operator, the image determines the requested release.
func TestScriptDecidesByTheImage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		desired configv1.Update
		want    string
	}{
		"version alone": {configv1.Update{Version: "4.4.6"}, "4.4.6"},
		"version with the image of the installed": {configv1.Update{Version: "4.4.6", Image: "example.com/release:4.4.5"}, "4.4.5"},
		"installed version":                       {configv1.Update{Version: "4.4.5"}, "4.4.5"},
		"image of an offered release":             {configv1.Update{Image: "example.com/release:4.4.6"}, "4.4.6"},
		"version beside the image of another":     {configv1.Update{Version: "4.4.9", Image: "example.com/release:4.4.6"}, "4.4.6"},
		"a release that is not offered":           {configv1.Update{Version: "4.4.9", Image: "example.com/other"}, "4.4.9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, script := newScript(t)
			script.ChangeVersion(func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &tc.desired })
			state := func() string {
				version := script.ClusterVersion()
				newest := version.Status.History[0]
				for _, c := range version.Status.Conditions {
					if c.Type == configv1.OperatorProgressing {
						return fmt.Sprintf("%s %s %s", newest.Version, newest.State, c.Status)
					}
				}
				return "no condition Progressing"
			}
			runFor(t, w, time.Minute)
			during := tc.want + " Partial True"
			if tc.want == "4.4.5" {
				during = tc.want + " Completed False"
			}
			if got := state(); got != during {
				t.Errorf("after a minute: got %s, want %s", got, during)
			}
			runFor(t, w, time.Hour)
			if got := state(); got != tc.want+" Completed False" {
				t.Errorf("after an hour: got %s", got)
			}
		})
	}
}

func TestScriptUpdatesPausedPoolsOnceTheyAreResumed(t *testing.T) {
	t.Parallel()
	night := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "night", Generation: 1}}
	openshift.MarkUpdated(night, "4.4.5")
	w, script := newScript(t, night)
	c := w.Client("test")
	pool := func(name string) *mcfgv1.MachineConfigPool {
		var pool mcfgv1.MachineConfigPool
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &pool); err != nil {
			t.Fatal(err)
		}
		return &pool
	}
	pause := func(paused bool) {
		night := pool("night")
		before := night.DeepCopy()
		night.Spec.Paused = paused
		if err := c.Patch(t.Context(), night, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	request(script, "4.4.6")
	runFor(t, w, time.Hour)
	for name, updated := range map[string]int32{"master": 1, "worker": 1, "night": 0} {
		if got := pool(name); got.Status.UpdatedMachineCount != updated || got.Status.ObservedGeneration != got.Generation {
			t.Errorf("pool %s: %d updated, generation %d of %d observed", name, got.Status.UpdatedMachineCount, got.Status.ObservedGeneration, got.Generation)
		}
	}
	for _, c := range pool("night").Status.Conditions {
		if c.Status != corev1.ConditionFalse {
			t.Errorf("paused pool: condition %s is %s", c.Type, c.Status)
		}
	}
	pause(false)
	runFor(t, w, script.WorkersDuration-time.Second)
	if got := pool("night").Status.UpdatedMachineCount; got != 0 {
		t.Errorf("%d machines are updated at once", got)
	}
	runFor(t, w, 2*time.Second)
	if got := pool("night").Status; got.UpdatedMachineCount != 1 || got.Configuration.Name != "rendered-night-4.4.6" {
		t.Errorf("the resumed pool is not updated: %+v", got)
	}
}
