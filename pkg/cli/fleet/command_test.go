// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

var storesKey = client.ObjectKey{Namespace: "fleet", Name: "stores"}

// storesUpgrade returns an upgrade with a published status.
func storesUpgrade(edits ...func(*fleetv1beta1.ManagedClustersUpgrade)) *fleetv1beta1.ManagedClustersUpgrade {
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: storesKey.Namespace, Name: storesKey.Name, UID: "u1", Generation: 1}}
	u.SetGroupVersionKind(fleetv1beta1.GroupVersion.WithKind("ManagedClustersUpgrade"))
	u.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	u.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	u.Status.ObservedGeneration, u.Status.Attempt = 1, 1
	u.Status.ClustersSummery = &fleetv1beta1.ClustersSummary{Total: 2, PartialUpgrade: 1, Failed: 1}
	u.Status.Conditions = []metav1.Condition{{Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: fleetv1beta1.ReasonNoFreeSlot, LastTransitionTime: metav1.NewTime(clitest.Now)}}
	for _, edit := range edits {
		edit(u)
	}
	return u
}

func admitting(reason string) func(*fleetv1beta1.ManagedClustersUpgrade) {
	return func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.Conditions[0].Reason = reason }
}

// fleetDump writes the objects of a hub to a folder.
func fleetDump(t *testing.T, u *fleetv1beta1.ManagedClustersUpgrade) string {
	t.Helper()
	placement := &ocmv1beta1.Placement{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "Placement"}, ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "all"}}
	placement.Status.NumberOfSelectedClusters = 2
	decision := &ocmv1beta1.PlacementDecision{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.open-cluster-management.io/v1beta1", Kind: "PlacementDecision"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: "all-1", Labels: map[string]string{ocmv1beta1.PlacementLabel: "all"},
	}}
	decision.Status.Decisions = []ocmv1beta1.ClusterDecision{{ClusterName: "a"}, {ClusterName: "b"}}
	objects := []client.Object{u, placement, decision}
	for _, name := range []string{"a", "b"} {
		objects = append(objects, &clusterv1.ManagedCluster{
			TypeMeta: metav1.TypeMeta{APIVersion: "cluster.open-cluster-management.io/v1", Kind: "ManagedCluster"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:   clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}},
		})
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: admission.RunName(u), Labels: map[string]string{fleetv1beta1.UpgradeLabel: "u1"}}}
		run.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterUpgradeRun"))
		run.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "stores", UID: "u1"}
		run.Spec.Attempt, run.Spec.AdmissionTime, run.Status.Attempt = 1, metav1.NewTime(clitest.Now), 1
		run.Status.State = fleetv1alpha1.StatePartialUpgrade
		if name == "b" {
			run.Status.State, run.Status.Reason, run.Status.Message = fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonSuperseded, "another release"
		}
		objects = append(objects, run)
	}
	dir := t.TempDir()
	for i, object := range objects {
		content, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFleet_reads(t *testing.T) {
	t.Parallel()
	moment := clitest.Now.Format(time.RFC3339)
	for name, tc := range map[string]struct {
		upgrade *fleetv1beta1.ManagedClustersUpgrade
		args    []string
		code    session.ExitCode
		want    string
	}{
		"status in progress":   {storesUpgrade(), []string{"status", "stores"}, session.ExitProgressing, "slots 1/1   failures 1   left unknown (0 done)"},
		"status stopped":       {storesUpgrade(admitting(fleetv1beta1.ReasonCanaryFailed)), []string{"status", "stores"}, session.ExitActionRequired, "oc update fleet retry stores -n fleet"},
		"status in a window":   {storesUpgrade(admitting(fleetv1beta1.ReasonOutsideWindow), func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.ClustersSummery.PartialUpgrade = 0 }), []string{"status", "stores"}, session.ExitWaiting, "waits for its window"},
		"status that is old":   {storesUpgrade(func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Generation = 2 }), []string{"status", "stores"}, session.ExitUnknown, "has not observed the last change"},
		"status as JSON":       {storesUpgrade(), []string{"status", "stores", "-o", "json"}, session.ExitProgressing, `"kind": "ManagedClustersUpgrade"`},
		"failed clusters":      {storesUpgrade(), []string{"clusters", "stores", "--state", "Failed"}, session.ExitDone, "Superseded"},
		"runs as YAML":         {storesUpgrade(), []string{"clusters", "stores", "--state", "Failed", "-o", "yaml"}, session.ExitDone, "kind: ClusterUpgradeRunList"},
		"no pending cluster":   {storesUpgrade(), []string{"clusters", "stores", "--state", "NotStarted"}, session.ExitDone, "No clusters found."},
		"plan":                 {storesUpgrade(), []string{"plan", "stores"}, session.ExitActionRequired, "BLOCKED      1  1  Superseded   b"},
		"unknown state":        {storesUpgrade(), []string{"clusters", "stores", "--state", "failed"}, session.ExitUsage, "must be one of NotStarted"},
		"unknown upgrade":      {storesUpgrade(), []string{"status", "shops"}, session.ExitFailed, `check the name with "oc get"`},
		"pause of a dump":      {storesUpgrade(), []string{"pause", "stores"}, session.ExitUsage, "a dump cannot be changed"},
		"watch of a dump":      {storesUpgrade(), []string{"status", "stores", "-w"}, session.ExitUsage, "a dump does not change"},
		"start of nothing":     {storesUpgrade(), []string{"start"}, session.ExitUsage, "either the name of an upgrade or --filename"},
		"start of another one": {storesUpgrade(), []string{"start", "-f", "testdata/none.yaml"}, session.ExitUsage, "--filename:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"fleet"}, append(tc.args, "-n", "fleet", "--replay", fleetDump(t, tc.upgrade), "--now", moment)...)
			got := run(t, args...)
			if out := got.Out + got.ErrOut; got.Code != tc.code || !strings.Contains(out, tc.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s", got.Code, tc.code, tc.want, out)
			}
			if strings.Count(got.ErrOut, "\n") > 1 {
				t.Errorf("the error has several lines:\n%s", got.ErrOut)
			}
		})
	}
}

// hubProgram returns a session, a hub whose API server validates objects with the hub's CRDs, and a function
// that returns the output.
func hubProgram(t *testing.T) (*session.Session, *session.Cluster, func() string) {
	t.Helper()
	definitions, err := simulation.Definitions(os.DirFS("../../../deploy/hub/crds"))
	if err != nil {
		t.Fatal(err)
	}
	w := simulation.New(simulation.WorldOptions{Definitions: definitions})
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	clock := clocktesting.NewFakeClock(clitest.Now)
	p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: clock, Streams: streams, Terminal: &screen.Terminal{}})
	c := w.Client("user")
	return p, &session.Cluster{Reader: c, Client: c, Clock: clock}, out.String
}

func TestFleet_changes(t *testing.T) {
	t.Parallel()
	spec := func(edit func(*fleetv1beta1.ManagedClustersUpgradeSpec)) func(*fleetv1beta1.ManagedClustersUpgrade) {
		return func(u *fleetv1beta1.ManagedClustersUpgrade) { edit(&u.Spec) }
	}
	paused := spec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = true })
	cancelled := spec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Cancelled = true })
	dry := spec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.DryRun = true })
	healthy := func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.ClustersSummery.Failed = 0 }
	unobserved := func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status.Attempt = 7 }
	for name, tc := range map[string]struct {
		edits   []func(*fleetv1beta1.ManagedClustersUpgrade)
		change  func(*fleetv1beta1.ManagedClustersUpgrade) (fleetChange, error)
		want    string // values of paused, cancelled, dryRun, and attempt
		refused string
		same    bool
	}{
		"pause":                     {change: pauseFleet, want: `{"paused":true,"attempt":1}`},
		"pause a paused one":        {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){paused}, change: pauseFleet, want: `{"paused":true,"attempt":1}`, same: true},
		"resume":                    {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){paused}, change: resumeFleet, want: `{"attempt":1}`},
		"resume one in progress":    {change: resumeFleet, want: `{"attempt":1}`, same: true},
		"resume a cancelled one":    {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){paused, cancelled}, change: resumeFleet, refused: "cancelled"},
		"cancel":                    {change: cancelFleet, want: `{"cancelled":true,"attempt":1}`},
		"start a dry run":           {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){dry}, change: startFleet, want: `{"attempt":1}`},
		"start a started one":       {change: startFleet, want: `{"attempt":1}`, same: true},
		"retry":                     {change: retryFleet, want: `{"attempt":2}`},
		"retry without failures":    {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){healthy}, change: retryFleet, refused: "no cluster failed"},
		"retry after lost records":  {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){healthy, admitting(fleetv1beta1.ReasonRecordsLost)}, change: retryFleet, want: `{"attempt":2}`},
		"retry an unobserved retry": {edits: []func(*fleetv1beta1.ManagedClustersUpgrade){unobserved}, change: retryFleet, refused: "has not observed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, hub, out := hubProgram(t)
			u := storesUpgrade(tc.edits...)
			status := u.Status
			if err := hub.Client.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			u.Status = status
			u.Status.ObservedGeneration = u.Generation
			if err := hub.Client.Status().Update(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			o := fleetChangeOptions{upgradeOptions: upgradeOptions{Session: p, upgrade: storesKey.Name}, ChangeOptions: session.ChangeOptions{Yes: true}, verb: "change", edit: tc.change}
			err := o.apply(t.Context(), hub, storesKey)
			if tc.refused != "" {
				if err == nil || session.CodeOf(err) != session.ExitActionRequired || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("error %v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := &fleetv1beta1.ManagedClustersUpgrade{}
			if err := hub.Get(t.Context(), storesKey, got); err != nil {
				t.Fatal(err)
			}
			spec, err := json.Marshal(fleetv1beta1.ManagedClustersUpgradeSpec{
				Paused: got.Spec.Paused, Cancelled: got.Spec.Cancelled, DryRun: got.Spec.DryRun, Attempt: got.Spec.Attempt,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Replace(string(spec), `"upgradeStrategy":{}`, "", 1)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if same := got.ResourceVersion == u.ResourceVersion; same != tc.same || !strings.HasPrefix(out(), "managedclustersupgrade/stores ") {
				t.Errorf("unchanged: %t, want %t; prints %q", same, tc.same, out())
			}
		})
	}
}

func TestFleet_start_creates_the_object_of_a_file(t *testing.T) {
	t.Parallel()
	p, hub, out := hubProgram(t)
	file := filepath.Join(t.TempDir(), "stores.yaml")
	content := "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: ManagedClustersUpgrade\nmetadata: {name: stores, namespace: fleet}\n" +
		"spec: {placement: [{name: all}], clusterVersion: {version: 4.20.6}}\n"
	for _, tc := range []struct{ content, want string }{
		{content + "x: y\n", "unknown field"},
		{strings.Replace(content, "ManagedClustersUpgrade", "Placement", 1), "must contain one object of kind"},
		{content + "---\n" + content, "more than one object"},
		{strings.Replace(content, "name: stores, ", "", 1), "no metadata.name"},
	} {
		if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (&startOptions{Session: p}).readFleet(file); err == nil || session.CodeOf(err) != session.ExitUsage || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
	if err := os.WriteFile(file, []byte("---\n"+content+"---\n# the end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := (&startOptions{Session: p}).readFleet(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&startOptions{Session: p, ChangeOptions: session.ChangeOptions{Yes: true}, asDryRun: true}).sendFleet(t.Context(), hub, u); err != nil {
		t.Fatal(err)
	}
	got := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := hub.Get(t.Context(), storesKey, got); err != nil {
		t.Fatal(err)
	}
	if !got.Spec.DryRun || !strings.Contains(out(), "oc update fleet plan stores -n fleet") {
		t.Errorf("dry run %t, prints %q", got.Spec.DryRun, out())
	}
}

// The status is printed only if more than the time changes.
func TestFleet_status_is_watched(t *testing.T) {
	t.Parallel()
	p, hub, out := hubProgram(t)
	if err := hub.Client.Create(t.Context(), storesUpgrade()); err != nil {
		t.Fatal(err)
	}
	clock := p.Clock.(*clocktesting.FakeClock)
	ctx, cancelWatch := context.WithCancel(t.Context())
	p.Cluster, *p.Config.Namespace = hub, storesKey.Namespace
	o := &statusOptions{upgradeOptions: upgradeOptions{Session: p, upgrade: storesKey.Name}, format: session.OutputFlags(&cobra.Command{}), watch: true}
	ended := make(chan error)
	go func() { ended <- o.Run(ctx) }()
	for range 4 {
		for !clock.HasWaiters() {
			goruntime.Gosched()
		}
		clock.Step(session.PollInterval)
	}
	cancelWatch()
	if err := <-ended; session.CodeOf(err) != session.ExitUnknown {
		t.Errorf("ends with %v", err)
	}
	if n := strings.Count(out(), "stores: upgrade to 4.20.6"); n != 1 {
		t.Errorf("printed %d times:\n%s", n, out())
	}
}
