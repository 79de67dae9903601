// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"net/http"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// fast shortens an hour to less than a millisecond.
const fast = 1e7

// world is a cluster with the simulator and the objects that it needs.
type world struct {
	t         *testing.T
	client    client.Client
	catalog   *updategraph.Catalog
	simulator *Simulator
}

func newWorld(t *testing.T, releases ...updategraph.Release) *world {
	t.Helper()
	w := &world{
		t:       t,
		client:  simulation.NewFakeClient(t),
		catalog: updategraph.NewCatalog(append(releases, updategraph.Release{Version: "4.20.5", Channels: []string{"stable"}})...),
	}
	graph, err := updategraph.Serve(w.catalog, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := graph.Stop(); err != nil {
			t.Error(err)
		}
	})
	options := Options{
		Speed: fast, Catalog: w.catalog, Installed: "4.20.5",
		Operators: []OperatorSpec{{Name: "etcd"}, {Name: "network"}},
	}
	if err := Bootstrap(t.Context(), w.client, options, "stable", graph.URL(), "00000000-0000-4000-8000-000000000000"); err != nil {
		t.Fatal(err)
	}
	installed, _ := w.catalog.Version("4.20.5")
	w.simulator = &Simulator{client: w.client, web: http.DefaultClient, options: options.withDefaults(), payload: installed, running: installed}
	w.reconcile(3)
	return w
}

func (w *world) reconcile(times int) {
	w.t.Helper()
	for range times {
		if _, err := w.simulator.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: Name}}); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // longer than anything takes at this speed
	}
}

func (w *world) version() *configv1.ClusterVersion {
	w.t.Helper()
	version := &configv1.ClusterVersion{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: Name}, version); err != nil {
		w.t.Fatal(err)
	}
	return version
}

func (w *world) requestUpdate(update *configv1.Update) {
	w.t.Helper()
	version := w.version()
	version.Spec.DesiredUpdate = update
	version.Generation++ // like the API server
	if err := w.client.Update(w.t.Context(), version); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(operator string, kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus) {
	w.t.Helper()
	object := &configv1.ClusterOperator{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: operator}, object); err != nil {
		w.t.Fatal(err)
	}
	SetCondition(object, kind, status, "Somehow", "it is so", time.Now())
	if err := w.client.Status().Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantHistory(entries ...string) {
	w.t.Helper()
	var got []string
	for _, entry := range w.version().Status.History {
		got = append(got, entry.Version+" "+string(entry.State))
		if (entry.CompletionTime == nil) != (entry.State == configv1.PartialUpdate && len(got) == 1) {
			w.t.Errorf("%s %s has completion time %v", entry.Version, entry.State, entry.CompletionTime)
		}
	}
	if strings.Join(got, ",") != strings.Join(entries, ",") {
		w.t.Errorf("history is %v, want %v", got, entries)
	}
}

func (w *world) wantCondition(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) {
	w.t.Helper()
	c := findCondition(w.version().Status.Conditions, kind)
	switch {
	case c == nil:
		w.t.Errorf("no condition %s", kind)
	case c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message):
		w.t.Errorf("condition %s is %s, %s: %s; want %s, %s: %s", kind, c.Status, c.Reason, c.Message, status, reason, message)
	}
}

func stable(version string) updategraph.Release {
	return updategraph.Release{Version: version, Channels: []string{"stable"}}
}

func TestCVO_installed_cluster_is_available_and_not_progressing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.wantHistory("4.20.5 Completed")
	w.wantCondition(configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying 4.20.5")
	w.wantCondition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is 4.20.5")
	w.wantCondition(failing, configv1.ConditionFalse, "", "")
	w.wantCondition(configv1.RetrievedUpdates, configv1.ConditionTrue, "", "")
	if findCondition(w.version().Status.Conditions, configv1.OperatorUpgradeable) != nil {
		t.Error("Upgradeable is set although nothing blocks an update")
	}
}

func TestCVO_installs_an_available_update(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(1)
	w.wantCondition(releaseAccepted, configv1.ConditionUnknown, "RetrievePayload", "Retrieving and verifying")
	w.wantHistory("4.20.5 Completed")
	w.reconcile(1)
	w.wantCondition(releaseAccepted, configv1.ConditionTrue, "PayloadLoaded", `version="4.20.6"`)
	w.wantHistory("4.20.6 Partial", "4.20.5 Completed")
	w.wantCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "", "Working towards 4.20.6")
	w.reconcile(9)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
	w.wantCondition(configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is 4.20.6")
	if version := w.version(); version.Status.ObservedGeneration != version.Generation {
		t.Error("it does not say that it has observed what it has done")
	}
}

func TestCVO_rejects_a_version_that_is_not_available(t *testing.T) {
	t.Parallel()
	risky := stable("4.20.7")
	risky.Risks = []updategraph.Risk{{Name: "SlowDisks", Message: "Disks are slow.", URL: "https://example.com"}}
	for name, version := range map[string]string{
		"unknown release":                      "4.20.9",
		"conditional update without its image": "4.20.7",
		"invalid version":                      "4.20",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stable("4.20.6"), risky)
			w.requestUpdate(&configv1.Update{Version: version})
			w.reconcile(5)
			w.wantCondition(invalidVersion, configv1.ConditionTrue, "InvalidClusterVersion", version)
			w.wantCondition(configv1.OperatorProgressing, configv1.ConditionFalse, "InvalidClusterVersion", "Stopped at 4.20.5")
			w.wantHistory("4.20.5 Completed")
			w.requestUpdate(nil)
			w.reconcile(1)
			if findCondition(w.version().Status.Conditions, invalidVersion) != nil {
				t.Error("still invalid after the request was withdrawn")
			}
		})
	}
}

func TestCVO_installs_a_conditional_update_by_image(t *testing.T) {
	t.Parallel()
	risky := stable("4.20.7")
	risky.Risks = []updategraph.Risk{{Name: "SlowDisks", Message: "Disks are slow.", URL: "https://example.com"}}
	w := newWorld(t, risky)
	offered := w.version().Status.ConditionalUpdates
	if len(offered) != 1 || offered[0].Conditions[0].Status != "False" || offered[0].Conditions[0].Reason != "SlowDisks" {
		t.Fatalf("offered: %+v", offered)
	}
	w.requestUpdate(&configv1.Update{Version: "4.20.7", Image: offered[0].Release.Image})
	w.reconcile(12)
	w.wantHistory("4.20.7 Completed", "4.20.5 Completed")
}

func TestCVO_offers_an_update_whose_risks_do_not_apply(t *testing.T) {
	t.Parallel()
	risky := stable("4.20.7")
	risky.Risks = []updategraph.Risk{{Name: "SlowDisks", Applies: updategraph.No}}
	w := newWorld(t, risky)
	if available := w.version().Status.AvailableUpdates; len(available) != 1 || available[0].Version != "4.20.7" {
		t.Errorf("available: %+v", available)
	}
}

func TestCVO_retries_a_rejected_release(t *testing.T) {
	t.Parallel()
	refused := stable("4.20.6")
	refused.Refused = "no signature"
	w := newWorld(t, refused)
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(5)
	w.wantCondition(releaseAccepted, configv1.ConditionFalse, "RetrievePayload", "failure=no signature")
	w.wantHistory("4.20.5 Completed")
	if version := w.version(); version.Status.ObservedGeneration >= version.Generation {
		t.Error("observedGeneration includes a rejected request")
	}
	w.catalog.Set(stable("4.20.6"))
	w.reconcile(12)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
}

func TestCVO_never_starts_a_request_withdrawn_before_acceptance(t *testing.T) {
	t.Parallel()
	refused := stable("4.20.6")
	refused.Refused = "no signature"
	w := newWorld(t, refused)
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(5)
	w.requestUpdate(nil)
	w.catalog.Set(stable("4.20.6"))
	w.reconcile(12)
	w.wantHistory("4.20.5 Completed")
	w.wantCondition(releaseAccepted, configv1.ConditionTrue, "PayloadLoaded", `version="4.20.5"`)

	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(1)
	w.wantCondition(releaseAccepted, configv1.ConditionUnknown, "RetrievePayload", `version="4.20.6"`) // it is reloaded
}

func TestCVO_continues_an_update_without_its_request(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(2)
	w.requestUpdate(nil)
	w.reconcile(9)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
}

// Removing a request before the pod of the new release runs has the same effect as requesting the
// release of the running pod.
func TestCVO_returns_without_a_request_until_its_new_pod_runs(t *testing.T) {
	t.Parallel()
	former := stable("4.20.5")
	for name, tc := range map[string]struct {
		request *configv1.Update
		running bool // whether the pod of the new release runs
		returns bool
	}{
		"request removed":                             {nil, false, true},
		"request removed, new pod":                    {nil, true, false},
		"former release by its version":               {&configv1.Update{Version: "4.20.5"}, false, true},
		"former release by its version, new pod":      {&configv1.Update{Version: "4.20.5"}, true, false},
		"former release by its image":                 {&configv1.Update{Version: "4.20.5", Image: former.Image()}, false, true},
		"former release by its image, new pod":        {&configv1.Update{Version: "4.20.5", Image: former.Image()}, true, true},
		"release that is not available, new pod":      {&configv1.Update{Version: "4.20.9"}, true, false},
		"version of another release with the new one": {&configv1.Update{Version: "4.20.9", Image: stable("4.20.6").Image()}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stable("4.20.6"))
			w.requestUpdate(&configv1.Update{Version: "4.20.6"})
			w.reconcile(2)
			w.wantHistory("4.20.6 Partial", "4.20.5 Completed")
			if !tc.running {
				w.simulator.work.startTime = time.Now().Add(time.Hour)
			}
			w.requestUpdate(tc.request)
			w.reconcile(12)
			if tc.returns {
				w.wantHistory("4.20.5 Completed", "4.20.6 Partial", "4.20.5 Completed")
			} else {
				w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
			}
		})
	}
}

func TestCVO_compares_the_image(t *testing.T) {
	t.Parallel()
	unsigned := stable("4.20.7")
	unsigned.Unsigned = true
	installed := stable("4.20.5").Image()
	for name, tc := range map[string]struct {
		request *configv1.Update
		history []string
	}{
		"another version with the installed image": {&configv1.Update{Version: "4.20.6", Image: installed}, []string{"4.20.5 Completed"}},
		"the installed image by force":             {&configv1.Update{Version: "4.20.6", Image: installed, Force: true}, []string{"4.20.5 Completed"}},
		"image alone":                              {&configv1.Update{Image: stable("4.20.6").Image()}, []string{"4.20.6 Completed", "4.20.5 Completed"}},
		"unsigned release by force":                {&configv1.Update{Version: "4.20.7", Force: true}, []string{"4.20.7 Completed", "4.20.5 Completed"}},
		"version of another image":                 {&configv1.Update{Version: "4.20.7", Image: stable("4.20.6").Image()}, []string{"4.20.5 Completed"}},
		"another architecture":                     {&configv1.Update{Version: "4.20.5", Architecture: "Multi"}, []string{"4.20.5 Completed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stable("4.20.6"), unsigned)
			w.requestUpdate(tc.request)
			w.reconcile(12)
			w.wantHistory(tc.history...)
		})
	}
}

func TestCVO_rolls_back_to_the_release_before(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"), stable("4.20.7"))
	for _, version := range []string{"4.20.6", "4.20.7"} {
		w.requestUpdate(&configv1.Update{Version: version})
		w.reconcile(12)
	}
	w.requestUpdate(&configv1.Update{Version: "4.20.5", Image: stable("4.20.5").Image()})
	w.reconcile(12)
	w.wantCondition(releaseAccepted, configv1.ConditionFalse, "PreconditionChecks", "the only supported rollback is to the cluster's previous version 4.20.6")
	w.wantCondition(releaseAccepted, configv1.ConditionFalse, "PreconditionChecks",
		`* Precondition "ClusterVersionRecommendedUpdate" failed because of "UnknownUpdate": RetrievedUpdates=True (), so the update from 4.20.7 to 4.20.5 is probably neither recommended nor supported.`)
	w.requestUpdate(&configv1.Update{Version: "4.20.6", Image: stable("4.20.6").Image()})
	w.reconcile(12)
	w.wantHistory("4.20.6 Completed", "4.20.7 Completed", "4.20.6 Completed", "4.20.5 Completed")
}

func TestCVO_supersedes_an_update_in_progress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"), stable("4.20.7"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(2)
	w.requestUpdate(&configv1.Update{Version: "4.20.7"})
	w.reconcile(12)
	w.wantHistory("4.20.7 Completed", "4.20.6 Partial", "4.20.5 Completed")
}

func TestCVO_rejects_a_minor_update_while_not_upgradeable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"), stable("4.21.0"))
	w.set("etcd", configv1.OperatorUpgradeable, configv1.ConditionFalse)
	w.requestUpdate(&configv1.Update{Version: "4.21.0"})
	w.reconcile(5)
	w.wantCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "Somehow", "Cluster operator etcd should not be upgraded")
	w.wantCondition(releaseAccepted, configv1.ConditionFalse, "PreconditionChecks", "ClusterVersionUpgradeable")
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(12)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
}

func TestCVO_rejects_a_minor_update_while_an_override_is_set(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.21.0"))
	for _, unmanaged := range []bool{false, true} {
		version := w.version()
		version.Spec.Overrides = []configv1.ComponentOverride{{Kind: "Deployment", Name: "dns", Unmanaged: unmanaged}}
		if err := w.client.Update(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		w.reconcile(2)
		if c := findCondition(w.version().Status.Conditions, configv1.OperatorUpgradeable); (c != nil) != unmanaged {
			t.Errorf("unmanaged: %t: %+v", unmanaged, c)
		}
	}
	w.requestUpdate(&configv1.Update{Version: "4.21.0"})
	w.reconcile(5)
	w.wantCondition(releaseAccepted, configv1.ConditionFalse, "PreconditionChecks", `"ClusterVersionUpgradeable" failed because of "ClusterVersionOverridesSet"`)
}

// A release is verified before it is downloaded, unless the update is forced.
func TestCVO_rejects_an_image_that_no_registry_has(t *testing.T) {
	t.Parallel()
	for force, message := range map[bool]string{false: "The update cannot be verified: unable to verify sha256:", true: "manifest unknown"} {
		w := newWorld(t)
		w.requestUpdate(&configv1.Update{Version: "4.20.9", Image: stable("4.20.9").Image(), Force: force})
		w.reconcile(5)
		w.wantCondition(releaseAccepted, configv1.ConditionFalse, "RetrievePayload", message)
	}
}

func TestCVO_is_not_upgradeable_during_an_update(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(3)
	w.wantCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "UpdateInProgress", "An update is already in progress")
	w.set("etcd", configv1.OperatorUpgradeable, configv1.ConditionFalse)
	w.reconcile(1)
	w.wantCondition(configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons", "for multiple reasons: Somehow,UpdateInProgress\n* Cluster operator etcd")
	w.set("etcd", configv1.OperatorUpgradeable, configv1.ConditionTrue)
	w.reconcile(12)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
	if findCondition(w.version().Status.Conditions, configv1.OperatorUpgradeable) != nil {
		t.Error("Upgradeable is set although nothing blocks an update")
	}
}

func TestCVO_ignores_a_former_version_without_an_image(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(12)
	w.requestUpdate(&configv1.Update{Version: "4.20.5"})
	w.reconcile(5)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
	w.wantCondition(releaseAccepted, configv1.ConditionTrue, "PayloadLoaded", `version="4.20.6"`)
	if findCondition(w.version().Status.Conditions, invalidVersion) != nil {
		t.Error("the ClusterVersion is invalid")
	}
}

func TestCVO_rejects_releases(t *testing.T) {
	t.Parallel()
	unsigned := stable("4.20.6")
	unsigned.Unsigned = true
	for name, tc := range map[string]struct {
		release         updategraph.Release
		image           bool // whether the request contains the image
		reason, message string
	}{
		"update by two minor versions": {stable("4.22.0"), true, "PreconditionChecks", "ClusterVersionGiantHop"},
		"rollback":                     {stable("4.20.4"), true, "PreconditionChecks", "ClusterVersionRollback"},
		"unsigned release":             {unsigned, false, "RetrievePayload", "failure=The update cannot be verified: unable to verify sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tc.release)
			update := &configv1.Update{Version: tc.release.Version}
			if tc.image {
				update.Image = tc.release.Image()
			}
			w.requestUpdate(update)
			w.reconcile(5)
			w.wantCondition(releaseAccepted, configv1.ConditionFalse, tc.reason, tc.message)
			w.wantHistory("4.20.5 Completed")
		})
	}
}

func TestCVO_waits_for_a_degraded_operator_and_then_fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stable("4.20.6"))
	w.requestUpdate(&configv1.Update{Version: "4.20.6"})
	w.reconcile(2)
	w.set("network", configv1.OperatorDegraded, configv1.ConditionTrue)
	w.reconcile(9)
	w.wantHistory("4.20.6 Partial", "4.20.5 Completed")
	w.wantCondition(failing, configv1.ConditionTrue, "ClusterOperatorDegraded", "Cluster operator network is degraded")
	w.wantCondition(configv1.OperatorProgressing, configv1.ConditionTrue, "ClusterOperatorDegraded", "Unable to apply 4.20.6")
	w.set("network", configv1.OperatorDegraded, configv1.ConditionFalse)
	w.reconcile(9)
	w.wantHistory("4.20.6 Completed", "4.20.5 Completed")
	w.wantCondition(failing, configv1.ConditionFalse, "", "")
}
