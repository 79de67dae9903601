// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var template = map[string]any{"channel": "stable-4.11", "clusterID": clusterID, "desiredUpdate": map[string]any{}, "upstream": "https://example.com/graph"}

func TestTemplateIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Second)
	want := configv1.ClusterVersionSpec{
		ClusterID: clusterID, Channel: "stable-4.11", Upstream: "https://example.com/graph", DesiredUpdate: &configv1.Update{Version: "4.10.3"},
	}
	if diff := cmp.Diff(want, w.openShift().Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	status := w.object().Status
	if got := string(status.Current.Spec.Raw); got != `{"channel":"stable-4.11","clusterID":"`+clusterID+`","upstream":"https://example.com/graph"}` {
		t.Errorf("status.current.spec is %s", got)
	}
	w.expectHealth("Current")
	if got := w.condition("Accepted") + ", " + w.condition("Synced"); got != "True Valid, True Synced" || status.ObservedGeneration != 1 {
		t.Errorf("got %s of generation %d", got, status.ObservedGeneration)
	}
	if events := w.events(); len(events) > 0 || w.drifts() != -1 {
		t.Errorf("Events: %q, corrections: %d", events, w.drifts())
	}
}

// A requested update survives every apply and does not count as drift.
func TestRequestedUpdateIsUntouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(map[string]any{"channel": "stable-4.11", "clusterID": clusterID, "desiredUpdate": map[string]any{"version": "4.99.0"}})
	w.RunFor(time.Minute)
	w.change(func(spec *configv1.ClusterVersionSpec) { spec.DesiredUpdate = &configv1.Update{Version: "4.11.1"} })
	w.RunFor(time.Minute)
	w.change(setChannel("fast-4.11"))
	w.RunFor(time.Minute)
	w.edit(map[string]any{"channel": "stable-4.12", "clusterID": clusterID})
	w.RunFor(time.Minute)
	want := configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.12", DesiredUpdate: &configv1.Update{Version: "4.11.1"}}
	if diff := cmp.Diff(want, w.openShift().Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if n := len(w.events()); n != 1 { // for the channel
		t.Errorf("Events: %q", w.events())
	}
}

func TestFieldsRemovedFromTheTemplateAreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	w.edit(map[string]any{"channel": "stable-4.11", "clusterID": clusterID})
	w.RunFor(time.Minute)
	want := configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.11", DesiredUpdate: &configv1.Update{Version: "4.10.3"}}
	if diff := cmp.Diff(want, w.openShift().Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// A field that another manager also owns stays when it is removed from the template. It is reported
// until it is gone, even after a restart.
func TestFieldThatAnotherManagerKeeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	other := newOpenShift()
	other.SetName("version")
	other.Object["spec"] = map[string]any{
		"upstream": "https://example.com/graph", "capabilities": map[string]any{"baselineCapabilitySet": "None"},
	}
	w.Must(w.User.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("argocd")))
	w.RunFor(time.Minute)
	if got := w.condition("Synced"); got != "True Synced" {
		t.Fatalf("Synced is %s", got)
	}
	for _, channel := range []string{"stable-4.11", "stable-4.12"} { // each process crashes at its first status write
		w.Plan = func(r simulation.Request) simulation.Fault {
			if r.IsWrite() && r.Subresource == "status" {
				w.Plan = nil
				return simulation.Fault{Outcome: simulation.CrashBefore}
			}
			return simulation.Fault{}
		}
		w.edit(map[string]any{"channel": channel, "clusterID": clusterID})
		w.RunFor(time.Hour)
	}
	if got := w.condition("Synced"); got != "False NotRemoved" || w.openShift().Spec.Upstream == "" {
		t.Errorf("Synced is %s, upstream is %q", got, w.openShift().Spec.Upstream)
	}
	if got := w.object().Status; !slices.Equal(got.NotRemoved, []string{"upstream"}) || !strings.Contains(fmt.Sprint(got.Conditions), "spec.upstream (owned by argocd)") {
		t.Errorf("status is %+v", got)
	}
	w.change(func(spec *configv1.ClusterVersionSpec) { spec.Upstream = "" })
	w.RunFor(time.Minute)
	if got := w.condition("Synced"); got != "True Synced" || len(w.object().Status.NotRemoved) > 0 {
		t.Errorf("after the field is gone, Synced is %s", got)
	}
}

func TestOverlays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	capabilities := func(name string) map[string]any {
		return map[string]any{"capabilities": map[string]any{"additionalEnabledCapabilities": []any{name}}}
	}
	w.create(map[string]any{"channel": "stable-4.11", "upstream": "https://example.com/graph"},
		w.overlay(48*time.Hour, map[string]any{"channel": "stable-4.13", "upstream": nil}),
		w.overlay(-time.Hour, capabilities("Console")),
		w.overlay(24*time.Hour, map[string]any{"channel": "stable-4.12"}),
	)
	var got []string
	show := func() {
		spec, status := w.openShift().Spec, w.object().Status
		line := spec.Channel + " " + string(spec.Upstream)
		if spec.Capabilities != nil {
			line += fmt.Sprint(" ", spec.Capabilities.AdditionalEnabledCapabilities)
		}
		if status.OverlayApplied != nil {
			line += " since " + status.OverlayApplied.UTC().Format("02 15:04")
		}
		parts := []string{line}
		for _, o := range status.Overlays {
			parts = append(parts, o.From.UTC().Format("02 15:04")+" "+string(o.Preview.Spec.Raw))
		}
		got = append(got, strings.Join(parts, "; "))
	}
	w.RunFor(time.Minute)
	show()
	w.Requests = nil
	w.RunFor(23 * time.Hour)
	if len(w.Requests) > 0 {
		t.Errorf("requests until the next overlay: %q", w.Requests)
	}
	w.RunFor(time.Hour)
	show()
	w.RunFor(24 * time.Hour)
	show()
	object := w.object()
	object.Spec.Overlays = nil
	w.Update(object)
	w.RunFor(time.Minute)
	show()
	want := []string{
		`stable-4.11 https://example.com/graph [Console] since 01 11:00; 02 12:00 {"channel":"stable-4.12","upstream":"https://example.com/graph"}; 03 12:00 {"channel":"stable-4.13"}`,
		`stable-4.12 https://example.com/graph since 02 12:00; 03 12:00 {"channel":"stable-4.13"}`,
		`stable-4.13  since 03 12:00`,
		`stable-4.11 https://example.com/graph`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if events := w.events(); len(events) > 0 {
		t.Errorf("Events: %q", events)
	}
}

func TestDriftIsCorrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	w.change(func(spec *configv1.ClusterVersionSpec) { spec.Channel, spec.Upstream = "fast-4.11", "" })
	w.RunFor(time.Second)
	if spec := w.openShift().Spec; spec.Channel != "stable-4.11" || spec.Upstream != "https://example.com/graph" {
		t.Errorf("the spec is %+v", spec)
	}
	w.expectEvents("DriftDetected")
	if got := w.condition("Synced"); got != "True Synced" || w.drifts() != 2 {
		t.Errorf("Synced is %s after %d corrections", got, w.drifts())
	}
}

// If a client changes a field every ten seconds, the corrections slow down to one every five
// minutes, each with one Event. The condition recovers once the client stops.
func TestContestedField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	fighting := true
	var fight func()
	fight = func() {
		if fighting {
			w.change(setChannel("fast-4.11"))
			w.After(10*time.Second, fight)
		}
	}
	fight()
	w.RunFor(30 * time.Minute)
	first := w.drifts()
	w.Requests = nil
	w.RunFor(time.Hour)
	if n := w.drifts() - first; first > 12 || n < 11 || n > 13 {
		t.Errorf("%d corrections in half an hour, and %d in the next hour", first, n)
	}
	if n := len(w.Requests); n > 5*13 { // ClusterVersion, Lease, Event, apply, status
		t.Errorf("%d requests in an hour: %q", n, w.Requests)
	}
	if got := w.condition("Synced"); got != "False Contested" {
		t.Errorf("Synced is %s", got)
	}
	golden.Texts(t, "", w.message("Synced"))
	if n, events := len(w.events()), w.drifts(); n != events {
		t.Errorf("%d Events about %d corrections", n, events)
	}
	fighting = false
	w.RunFor(20 * time.Minute)
	if got := w.condition("Synced"); got != "True Synced" || w.openShift().Spec.Channel != "stable-4.11" {
		t.Errorf("after the fight: Synced is %s, the channel is %s", got, w.openShift().Spec.Channel)
	}
}

// A restart does not reset the backoff of a contested field, but a change of the template does.
func TestContestedFieldAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	var fight func()
	fight = func() {
		w.change(setChannel("fast-4.11"))
		w.After(10*time.Second, fight)
	}
	fight()
	w.RunFor(30 * time.Minute)
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.IsWrite() {
			w.Plan = nil
			return simulation.Fault{Outcome: simulation.CrashBefore}
		}
		return simulation.Fault{}
	}
	before := w.drifts()
	w.RunFor(time.Hour)
	if n := w.drifts() - before; n > 13 {
		t.Errorf("%d corrections in an hour with a restart", n)
	}
	if got := w.condition("Synced"); got != "False Contested" {
		t.Errorf("Synced is %s", got)
	}
	w.edit(map[string]any{"upstream": "https://example.com/graph"})
	w.RunFor(time.Second)
	if got := w.condition("Synced"); got != "False NotRemoved" { // the other client still owns it
		t.Errorf("without the field: Synced is %s", got)
	}
}

func TestChannelIsLeftToUpgradesOfTheOtherKind(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]string{
		"upgrade.managed.openshift.io/UpgradeConfig/upgrades/cluster/uid":  "fast-4.12 False ChannelInUse",
		"UpgradeConfig/upgrades/cluster/uid":                               "fast-4.12 False ChannelInUse",
		"managedupgrade.appuio.io/UpgradeJob/upgrades/cluster-upgrade/uid": "stable-4.11 True Synced",
		"": "stable-4.11 True Synced",
	} {
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(template)
			w.RunFor(time.Minute)
			w.setLock(&holder)
			w.change(setChannel("fast-4.12"))
			w.RunFor(time.Hour)
			if got := w.openShift().Spec.Channel + " " + w.condition("Synced"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			w.change(func(spec *configv1.ClusterVersionSpec) { spec.Upstream = "" })
			w.RunFor(time.Hour)
			if got := w.openShift().Spec; got.Channel+" "+w.condition("Synced") != want || got.Upstream == "" {
				t.Errorf("after a change of another field: got %+v, want channel %s", got, want)
			}
			w.setLock(nil)
			w.RunFor(time.Second)
			if got := w.openShift().Spec.Channel + " " + w.condition("Synced"); got != "stable-4.11 True Synced" {
				t.Errorf("after the upgrade: got %s", got)
			}
			if strings.HasPrefix(want, "fast") && (w.drifts() != 1 || len(w.events()) != 1) { // upstream
				t.Errorf("%d corrections, Events: %q", w.drifts(), w.events())
			}
		})
	}
}

// If the cache of Leases is stale when the channel changes, the API server is queried.
func TestChannelIsLeftAloneWithAStaleLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.setLock(nil)
	w.RunFor(time.Minute)
	holder := "upgrade.managed.openshift.io/UpgradeConfig/upgrades/cluster/uid"
	w.Plan = func(simulation.Request) simulation.Fault {
		return simulation.Fault{Lag: []string{"Lease"}, LagFor: time.Hour}
	}
	w.edit(map[string]any{"channel": "stable-4.11"}) // this request makes the cache start to lag
	w.RunFor(time.Second)
	w.setLock(&holder)
	w.change(setChannel("fast-4.12"))
	w.RunFor(10 * time.Minute)
	if got := w.openShift().Spec.Channel; got != "fast-4.12" {
		t.Errorf("the channel is %s", got)
	}
}

// The other upgrade acquires the lock and sets the channel between our read and our write.
func TestChannelIsLeftAloneInARace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.setLock(nil)
	w.RunFor(time.Minute)
	holder := "upgrade.managed.openshift.io/UpgradeConfig/upgrades/cluster/uid"
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Verb == "apply" {
			w.Plan = nil
			w.setLock(&holder)
			w.change(setChannel("candidate-4.12"))
		}
		return simulation.Fault{}
	}
	w.change(func(spec *configv1.ClusterVersionSpec) { spec.Upstream = "" })
	w.RunFor(10 * time.Minute)
	if got := w.openShift().Spec; got.Channel != "candidate-4.12" || got.Upstream == "" {
		t.Errorf("got %+v", got)
	}
}

func TestRejectedParameters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		template map[string]any
		overlays []maintenancev1beta1.ClusterVersionOverlay
		refuse   error
		want     string
	}{
		"the ID of another cluster": {
			template: map[string]any{"channel": "stable-4.11", "clusterID": "other"},
			want:     "WrongClusterID",
		},
		"the ID of another cluster in an overlay": {
			template: template, overlays: []maintenancev1beta1.ClusterVersionOverlay{(*world)(nil).overlayAt("2027-01-01T00:00:00Z", `{"clusterID":"other"}`)},
			want: "WrongClusterID",
		},
		"fields that the API server rejects": {
			template: map[string]any{"chanel": "stable-4.11"},
			refuse:   errors.New("failed to create typed patch object (/version): .spec.chanel: field not declared in schema"),
			want:     "InvalidTemplate",
		},
		"values that the API server rejects": {
			template: map[string]any{"upstream": "no URL"},
			refuse:   apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterVersion"}, "version", nil),
			want:     "InvalidTemplate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			applies := 0
			w.Plan = func(r simulation.Request) simulation.Fault {
				if r.Verb == "apply" && tc.refuse != nil {
					applies++
					return simulation.Fault{Outcome: simulation.Refuse, Err: tc.refuse}
				}
				return simulation.Fault{}
			}
			w.create(tc.template, tc.overlays...)
			w.RunFor(time.Hour)
			for range 10 { // the cluster version operator updates the status
				w.reportStatus()
				w.RunFor(time.Second)
			}
			if diff := cmp.Diff("stable-4.10", w.openShift().Spec.Channel); diff != "" {
				t.Errorf("channel (-want +got):\n%s", diff)
			}
			w.expectHealth("Failed")
			if got := w.condition("Accepted") + ", " + w.condition("Synced"); got != "False "+tc.want+", False NotAccepted" {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			w.expectEvents("ParametersRejected")
			if applies > 20 {
				t.Errorf("%d attempts in an hour", applies)
			}
			w.Plan = nil
			w.edit(template)
			w.object()
			if tc.overlays != nil {
				return
			}
			w.RunFor(time.Second)
			if got := w.condition("Accepted") + ", " + w.condition("Synced"); got != "True Valid, True Synced" {
				t.Errorf("once it is corrected: got %s", got)
			}
		})
	}
}

// Parameters that the API server rejected or has not checked are not shown as accepted.
func TestParametersThatWereNotCheckedAreNotAccepted(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterVersion"}, "version", nil)
	refuse := func(verb string, err error) simulation.FaultPlan {
		return simulation.Fault{Outcome: simulation.Refuse, Err: err}.If(func(r simulation.Request) bool {
			return r.Verb == verb && r.Kind == "ClusterVersion" && r.Key.Namespace == "" && !r.Cached
		})
	}
	for name, tc := range map[string]struct {
		first simulation.FaultPlan
		then  func(*world)
		want  string
	}{
		"the update changes after a rejection": {
			first: refuse("apply", invalid),
			then:  func(w *world) { w.change(func(s *configv1.ClusterVersionSpec) { s.DesiredUpdate.Version = "4.10.4" }) },
			want:  "False InvalidTemplate, False NotAccepted",
		},
		"the object of OpenShift cannot be read": {first: refuse("get", errors.New("timeout")), want: "none, none"},
		"the object of OpenShift cannot be read after a rejection": {
			first: refuse("apply", invalid),
			then: func(w *world) {
				w.Plan = refuse("get", errors.New("timeout"))
				w.edit(map[string]any{"channel": "fast-4.11"})
			},
			want: "False InvalidTemplate, False NotAccepted",
		},
		"the API server does not answer after a rejection": {
			first: refuse("apply", invalid),
			then: func(w *world) {
				w.Plan = refuse("apply", errors.New("timeout"))
				w.edit(map[string]any{"channel": "fast-4.11"})
			},
			want: "False InvalidTemplate, False ApplyFailed",
		},
		"the object of OpenShift was deleted after a rejection": {
			first: refuse("apply", invalid),
			then:  func(w *world) { w.Must(w.User.Delete(w.TB.Context(), w.openShift())) },
			want:  "False InvalidTemplate, False ClusterVersionMissing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Plan = tc.first
			w.create(template)
			w.RunFor(10 * time.Minute)
			if tc.then != nil {
				tc.then(w)
				w.RunFor(time.Second)
			}
			if got := w.condition("Accepted") + ", " + w.condition("Synced"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// An Event that cannot be created does not count as a failure to apply the parameters. It is
// created as soon as the API server accepts it, and the correction follows.
func TestDriftWhileEventsFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	failing := 3
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Kind == "Event" && failing > 0 {
			failing--
			return simulation.Fault{Outcome: simulation.Refuse, Err: errors.New("timeout")}
		}
		return simulation.Fault{}
	}
	w.change(setChannel("fast-4.11"))
	w.RunFor(100 * time.Millisecond)
	if got := w.condition("Synced"); got != "True Synced" || failing != 2 {
		t.Errorf("after the first failure: Synced is %s, %d more failures", got, failing)
	}
	w.RunFor(10 * time.Second)
	if got := w.condition("Synced") + " " + w.openShift().Spec.Channel; got != "True Synced stable-4.11" || w.drifts() != 1 || len(w.events()) != 1 {
		t.Errorf("got %s after %d corrections, Events %q", got, w.drifts(), w.events())
	}
}

// overlayAt returns an overlay with a raw time and raw fields.
func (*world) overlayAt(from maintenancev1beta1.Timestamp, fields string) maintenancev1beta1.ClusterVersionOverlay {
	var o maintenancev1beta1.ClusterVersionOverlay
	o.From, o.Overlay.Spec.Raw = from, []byte(fields)
	return o
}

// reportStatus updates the status of OpenShift's object, as the cluster version operator does.
func (w *world) reportStatus() {
	version := w.openShift()
	version.Status.VersionHash += "x"
	w.Must(w.Client("cluster-version-operator").Status().Update(w.TB.Context(), version))
}

func TestForbiddenApplyIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	applies := 0
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Verb != "apply" {
			return simulation.Fault{}
		}
		applies++
		err := apierrors.NewForbidden(schema.GroupResource{Group: "config.openshift.io", Resource: "clusterversions"}, "version", errors.New("denied by a policy"))
		return simulation.Fault{Outcome: simulation.Refuse, Err: err}
	}
	w.create(template)
	w.RunFor(time.Hour)
	w.expectHealth("InProgress")
	if got := w.condition("Accepted") + ", " + w.condition("Synced"); got != "none, False ApplyFailed" || !strings.Contains(w.message("Synced"), "denied by a policy") {
		t.Errorf("got %s: %s", got, w.message("Synced"))
	}
	if applies < 12 || applies > 20 {
		t.Errorf("%d attempts in an hour", applies)
	}
	if current := w.object().Status.Current.Spec.Raw; len(current) > 0 {
		t.Errorf("status.current is %s", current)
	}
	w.Plan = nil
	w.RunFor(5 * time.Minute)
	if got := w.condition("Synced"); got != "True Synced" || w.drifts() > 0 {
		t.Errorf("once it is allowed: got %s, and %d corrections", got, w.drifts())
	}
}

func TestMissingClusterVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(template)
	w.RunFor(time.Minute)
	if got := w.metric("cluster_upgrading"); got != 0 {
		t.Errorf("managed_upgrade_cluster_upgrading is %d", got)
	}
	version := w.openShift()
	w.Delete(version)
	w.RunFor(time.Minute)
	if got := w.condition("Synced"); got != "False ClusterVersionMissing" {
		t.Errorf("got %s", got)
	}
	if got := w.metric("cluster_upgrading"); got != -1 {
		t.Errorf("managed_upgrade_cluster_upgrading is %d", got)
	}
	version = &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: clusterID}}
	w.Create(version)
	version.Status.History = []configv1.UpdateHistory{{Version: "4.11.1", State: configv1.PartialUpdate}}
	w.UpdateStatus(version)
	w.RunFor(time.Minute)
	if got := w.condition("Synced") + " " + w.openShift().Spec.Channel; got != "True Synced stable-4.11" {
		t.Errorf("once it exists: got %s", got)
	}
	if got := w.metric("cluster_upgrading"); got != 1 {
		t.Errorf("managed_upgrade_cluster_upgrading is %d", got)
	}
}

// With several watched namespaces, the oldest object applies. After its deletion, the next oldest
// one applies.
func TestSecondClusterVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, home, "another")
	w.create(template)
	w.RunFor(time.Minute)
	second := &maintenancev1beta1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "another", Name: "version"}, Spec: maintenancev1beta1.ClusterVersionSpec{Template: raw(t, map[string]any{"channel": "fast-4.11"})}}
	w.Create(second)
	w.RunFor(time.Minute)
	w.expectEvents("ParametersRejected")
	if got := w.openShift().Spec.Channel; got != "stable-4.11" {
		t.Errorf("the channel is %s", got)
	}
	w.Delete(w.object())
	w.RunFor(time.Minute)
	if got := w.openShift().Spec.Channel; got != "fast-4.11" {
		t.Errorf("after the deletion of the first: the channel is %s", got)
	}
}

// Frequent status updates by the cluster version operator cause no requests.
func TestQuietPassMakesNoRequest(t *testing.T) {
	t.Parallel()
	holder := "upgrade.managed.openshift.io/UpgradeConfig/upgrades/cluster/uid"
	for name, reach := range map[string]func(*world){
		"synced":             func(*world) {},
		"after a correction": func(w *world) { w.change(setChannel("fast-4.11")); w.RunFor(time.Minute) },
		"another cluster":    func(w *world) { w.edit(map[string]any{"clusterID": "other"}); w.RunFor(time.Minute) },
		"channel in use":     func(w *world) { w.setLock(&holder); w.change(setChannel("fast-4.11")); w.RunFor(time.Minute) },
		"during another's update": func(w *world) {
			w.change(func(s *configv1.ClusterVersionSpec) { s.DesiredUpdate.Version = "4.10.4" })
			w.RunFor(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create(template, w.overlay(1000*time.Hour, map[string]any{"channel": "stable-4.12"}))
			w.RunFor(time.Minute)
			reach(w)
			w.RunFor(time.Hour) // corrections are forgotten
			w.Requests = nil
			for range 20 {
				w.reportStatus()
				w.RunFor(time.Minute)
			}
			if diff := cmp.Diff([]string(nil), w.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// The operator is killed before and after each of its writes. Each correction still gets its Event,
// and the final status is correct.
func TestKilledAtEveryWrite(t *testing.T) {
	t.Parallel()
	for _, outcome := range []simulation.Outcome{simulation.CrashBefore, simulation.CrashAfter, simulation.LoseAnswer, simulation.Conflict} {
		for _, write := range simulation.Sample(6) {
			t.Run(fmt.Sprintf("%v at write %d", outcome, write), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				hit := false
				w.Plan = func(r simulation.Request) simulation.Fault {
					if r.Write == write && !hit {
						hit = true
						return simulation.Fault{Outcome: outcome}
					}
					return simulation.Fault{}
				}
				w.create(template, w.overlay(time.Hour, map[string]any{"channel": "stable-4.12"}))
				w.RunFor(10 * time.Minute)
				w.change(setChannel("fast-4.11"))
				w.RunFor(30 * time.Minute)
				if diff := cmp.Diff(1, len(w.events())); diff != "" {
					t.Errorf("Events (-want +got):\n%s%q", diff, w.events())
				}
				w.RunFor(30 * time.Minute)
				spec, status := w.openShift().Spec, w.object().Status
				if got := spec.Channel + " " + w.condition("Synced"); got != "stable-4.12 True Synced" || !hit {
					t.Errorf("got %s, fault injected: %t", got, hit)
				}
				if status.OverlayApplied == nil || len(status.Overlays) > 0 || !strings.Contains(string(status.Current.Spec.Raw), "stable-4.12") {
					t.Errorf("the status is %+v", status)
				}
			})
		}
	}
}
