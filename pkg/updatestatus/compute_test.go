// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

func decode(tb testing.TB, value string) any {
	tb.Helper()
	if value == "" {
		return nil
	}
	var decoded any
	if err := json.Unmarshal([]byte(value), &decoded); err != nil {
		tb.Fatal(err)
	}
	return decoded
}

func TestCompute_Updating(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 1)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", newRelease)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/state"] = "Working"
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	got := map[string]string{}
	for _, name := range []string{"", "worker", "master", "unassigned"} {
		for _, condition := range []string{updatev1beta1.ConditionUpdatePending, updatev1beta1.ConditionUpdateActive} {
			got[name+" "+condition] = describe(section(status, name), condition)
		}
	}
	want := map[string]string{
		" UpdatePending":           "False ClusterVersionReconciled: ClusterVersion release has reconciled.",
		" UpdateActive":            "False ClusterVersionReconciled: ClusterVersion release has reconciled.",
		"worker UpdatePending":     "True WorkerDoesNotMatchRelease: At least one worker (worker-1, worker-2) does not match target release.",
		"worker UpdateActive":      "True WorkersUpdateActive: At least one worker (worker-1, worker-2) is being reconciled with release.",
		"master UpdatePending":     "no section",
		"master UpdateActive":      "no section",
		"unassigned UpdatePending": "no section",
		"unassigned UpdateActive":  "no section",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	progress := map[string]*updatev1beta1.Progress{"": {Total: 4, Updated: 4}, "worker": {Total: 3, Updated: 1, Updating: 1, Pending: 1}}
	for name, want := range progress {
		if diff := cmp.Diff(want, section(status, name).Progress); diff != "" {
			t.Errorf("progress of %q (-want +got):\n%s", name, diff)
		}
	}
}

// TestCompute_Requested checks an update that the cluster version operator has not started to install. The
// status names the requested release and shows no progress.
func TestCompute_Requested(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 3)
	c.version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.7", Image: "image/4.20.7"}
	status := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)})
	type verdict struct {
		State    updatev1beta1.AssessmentState
		From, To string
	}
	got := verdict{status.Assessment.State, status.Assessment.FromRelease, status.Assessment.Release}
	if diff := cmp.Diff(verdict{updatev1beta1.StateProgressing, newRelease, "4.20.7"}, got); diff != "" {
		t.Errorf("assessment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&updatev1beta1.Progress{Total: 4, Pending: 4}, status.ControlPlane.Progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	for range 2 {
		status = updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, now.Add(31*time.Minute)), Previous: status})
	}
	if status.Assessment.State != updatev1beta1.StateStuck {
		t.Errorf("after half an hour: %s", status.Assessment.State)
	}
}

// TestCompute_Ignored checks that a request does not count as an update if the cluster version operator
// ignores it because the version is not available or the image is already installed.
func TestCompute_Ignored(t *testing.T) {
	t.Parallel()
	for _, image := range []string{"", newCluster(4, 3).version.Status.History[0].Image} {
		c := newCluster(4, 3)
		c.version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.7", Image: image}
		if got := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)}).Assessment; got.State != updatev1beta1.StateIdle || got.Release != newRelease {
			t.Errorf("image %q: got %s of %s, want %s of %s", image, got.State, got.Release, updatev1beta1.StateIdle, newRelease)
		}
	}
}

// TestCompute_Resumes checks that the assessment says when paused sections resume.
func TestCompute_Resumes(t *testing.T) {
	t.Parallel()
	delayed, requested := newCluster(4, 0), newCluster(4, 3)
	delayed.pools[1].Spec.Paused = true
	delayed.pools[1].Annotations = map[string]string{"managedupgrade.appuio.io/paused-by": "u/1/2026-05-15T22:00:00Z/2026-05-16T02:00:00Z"}
	requested.version.Spec.DesiredUpdate, requested.management = &configv1.Update{Version: "4.20.7", Image: "image/4.20.7"}, night
	for c, want := range map[*cluster]string{delayed: "2026-05-15T22:00:00Z", requested: "2026-05-14T22:00:00Z"} {
		got := updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)}).Assessment
		if got.State != updatev1beta1.StateWaiting || got.Resumes == nil || got.Resumes.Time.UTC().Format(time.RFC3339) != want {
			t.Errorf("got %s until %v, want until %s", got.State, got.Resumes, want)
		}
	}
}

// TestCompute_Unreadable_nodes makes the nodes unreadable for a while when only pools are pending. The update
// is then not visible, but must count as the same update afterwards.
func TestCompute_Unreadable_nodes(t *testing.T) {
	t.Parallel()
	c := newCluster(4, 1)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/desiredConfig"] = rendered("worker", newRelease)
	c.node("worker-1").Annotations["machineconfiguration.openshift.io/state"] = "Working"
	state := insight.NewStore()
	var status updatev1beta1.UpdateStatusStatus
	compute := func(at time.Time) *updatev1beta1.Assessment {
		t.Helper()
		status = updatestatus.Compute(updatestatus.Input{Facts: c.factsAt(t, at), Insights: state, Previous: status})
		return status.Assessment
	}
	before := compute(now)
	if before.StartedTime == nil {
		t.Fatal("the update has no start")
	}
	c.missing = map[checks.FactSource]checks.Missing{checks.SourceNodes: {Reason: checks.MissingUnavailable, Message: "no answer"}}
	for minute := range 3 {
		got := compute(now.Add(time.Duration(minute+1) * time.Minute))
		if got.State != updatev1beta1.StateUnknown {
			t.Errorf("%s without nodes", got.State)
		}
		if diff := cmp.Diff(before.StartedTime, got.StartedTime); diff != "" {
			t.Fatalf("start without nodes (-want +got):\n%s", diff)
		}
	}
	c.missing = nil
	type memory struct {
		From, To string
		Started  *metav1.Time
		Parts    []updatev1beta1.SectionPart
		Changed  *metav1.Time
	}
	remembered := func(a *updatev1beta1.Assessment) memory {
		m := memory{a.FromRelease, a.Release, a.StartedTime, nil, a.LastChangeTime}
		for i := range a.Sections {
			m.Parts = append(m.Parts, a.Sections[i].Parts...)
		}
		return m
	}
	if diff := cmp.Diff(remembered(before), remembered(compute(now.Add(5*time.Minute)))); diff != "" {
		t.Errorf("once the nodes are read again (-before +after):\n%s", diff)
	}
	node := c.node("worker-1")
	node.Annotations["machineconfiguration.openshift.io/currentConfig"], node.Annotations["machineconfiguration.openshift.io/state"] = rendered("worker", newRelease), "Done"
	c.node("worker-2").Annotations = node.Annotations
	c.missing = map[checks.FactSource]checks.Missing{checks.SourceNodes: {Reason: checks.MissingUnavailable, Message: "no answer"}}
	compute(now.Add(10 * time.Minute))
	c.missing = nil
	compute(now.Add(15 * time.Minute))
	if len(status.PastUpdates) != 1 || len(status.PastUpdates[0].Pools) != 1 {
		t.Errorf("past updates: %+v", status.PastUpdates)
	}
}
