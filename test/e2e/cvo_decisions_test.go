// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build cvo

package e2e

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/realcvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// settledFor is how long a ClusterVersion must not change until the cluster version operator seems to have decided. The
// observed generation does not show it and is not compared: if a request changes nothing, the real operator
// reports its generation minutes later, when it reconciles its release again.
const settledFor = 4 * time.Second

// differsFor is how long two cluster version operators that seem to have decided must differ until that counts: on a busy
// machine, one may not have seen the request yet.
const differsFor = 2 * time.Minute

// answers holds the results of the cluster version operators for each input so far, by kind and name, and whether the
// test of one has failed: the other does not wait for it.
type answers struct {
	mu     sync.Mutex
	of     map[openshiftsim.CVO]map[string]string
	failed bool
}

// differ records the answer of one operator and returns how the answers differ, apart from a condition; answered is false
// while the other has none. It ends the test if the other's has failed.
func (a *answers) differ(t *testing.T, kind openshiftsim.CVO, in input, answer string) (diff string, answered bool) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed {
		t.Fatal("the test of the other cluster version operator has failed")
	}
	a.of[kind][in.name] = answer
	actual, simulated := a.of[openshiftsim.Real][in.name], a.of[openshiftsim.Simulated][in.name]
	return cmp.Diff(without(actual, in.apart), without(simulated, in.apart)), actual != "" && simulated != ""
}

// end notes whether the test of one operator has failed.
func (a *answers) end(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = a.failed || t.Failed()
}

// stage is how far an update has come when another request follows.
type stage int

const (
	begun   stage = iota + 1 // the update is in the history, and the pod of the former release runs
	renewed                  // the pod of its release runs, and has updated the first operator
)

// input is merged into the spec of the ClusterVersion. The results are compared.
type input struct {
	name string
	spec map[string]any
	// reason is why ClusterOperator etcd is not upgradeable during the case; empty if it is.
	reason string
	// apart is a condition in which the real operator differs (see docs/decisions/0097). It is not compared.
	apart configv1.ClusterStatusConditionType
	// at is when more is merged; 0 for never.
	at   stage
	then map[string]any
}

// inputs are requests in order. The cluster is at 4.20.5 until the first update is complete.
func inputs() []input {
	image := func(version string) string { return updategraph.Release{Version: version}.Image() }
	update := func(version, image string, force bool) map[string]any {
		return map[string]any{"desiredUpdate": map[string]any{"version": version, "image": image, "force": force, "architecture": ""}}
	}
	with := func(spec map[string]any, field string, value any) map[string]any {
		spec[field] = value
		return spec
	}
	within := func(spec map[string]any, field string, value any) map[string]any {
		return map[string]any{"desiredUpdate": with(spec["desiredUpdate"].(map[string]any), field, value)}
	}
	none := map[string]any{"desiredUpdate": nil}
	unmanaged := []any{map[string]any{"kind": "Deployment", "group": "apps", "namespace": "openshift-dns", "name": "dns", "unmanaged": true}}
	return []input{
		{name: "no request"},
		{name: "empty request", spec: update("", "", false)},
		{name: "force alone", spec: update("", "", true)},
		{name: "current version", spec: update("4.20.5", "", false)},
		{name: "current version by force", spec: update("4.20.5", "", true)},
		{name: "current version with its image", spec: update("4.20.5", image("4.20.5"), false)},
		{name: "current image alone", spec: update("", image("4.20.5"), false)},
		{name: "current version with a mode", spec: within(update("4.20.5", "", false), "mode", "Preflight")},
		{name: "available version with the current image", spec: update("4.20.6", image("4.20.5"), false)},
		{name: "available version with the current image by force", spec: update("4.20.6", image("4.20.5"), true)},
		{name: "unknown version with the current image", spec: update("4.20.9", image("4.20.5"), false)},
		{name: "unknown version", spec: update("4.20.9", "", false)},
		{name: "malformed version", spec: update("4.20", "", false)},
		{name: "malformed version with an image", spec: update("4.20", image("4.20.6"), false)},
		{name: "conditional version without its image", spec: update("4.20.7", "", false)},
		{name: "conditional version with its risk accepted", spec: within(update("4.20.7", "", false), "acceptRisks", []any{map[string]any{"name": "SlowBoots"}})},
		{name: "unsigned release", spec: update("4.20.8", image("4.20.8"), false)},
		{name: "image that no registry has", spec: update("4.20.9", image("4.20.9"), false)},
		{name: "version beside the image of another release", spec: update("4.20.7", image("4.20.6"), false)},
		{name: "release before the current one", spec: update("4.20.4", image("4.20.4"), false)},
		{name: "two minor versions ahead", spec: update("4.22.0", image("4.22.0"), false)},
		{name: "two minor versions ahead, in another channel", spec: with(update("4.22.0", "", false), "channel", "stable-4.22")},
		{name: "other architecture", spec: within(update("4.20.5", "", false), "architecture", "Multi")},
		{name: "channel without updates", spec: with(update("4.20.6", "", false), "channel", "stable-4.21")},
		{name: "release before the current one, without a channel", spec: with(update("4.20.4", image("4.20.4"), false), "channel", "")},
		{name: "next minor version with an operator that is not upgradeable", spec: update("4.21.0", image("4.21.0"), false), reason: "BackupMissing"},
		{name: "next minor version with overrides", spec: with(update("4.21.0", image("4.21.0"), false), "overrides", unmanaged), apart: configv1.OperatorProgressing},
		{name: "set back by version before the pod is renewed", spec: update("4.20.6", "", false), at: begun, then: update("4.20.5", "", false)},
		{name: "set back by image before the pod is renewed", spec: update("4.20.6", "", false), at: begun, then: update("4.20.5", image("4.20.5"), false)},
		{name: "set back by image after the pod is renewed", spec: update("4.20.6", "", false), at: renewed, then: update("4.20.5", image("4.20.5"), false)},
		{name: "set back by version after the pod is renewed", spec: update("4.20.6", "", false), at: renewed, then: update("4.20.5", "", false)},
		{name: "former version", spec: update("4.20.5", "", false)},
		{name: "former version by force", spec: update("4.20.5", "", true)},
		{name: "version before the former one", spec: update("4.20.4", image("4.20.4"), false)},
		{name: "request removed after the update", spec: none},
		{name: "request of a conditional release, removed after the pod is renewed", spec: update("", image("4.20.7"), false), at: renewed, then: none},
		{name: "release before the current one by its image, without a channel after the pod is renewed", spec: update("4.20.6", image("4.20.6"), false), at: renewed, then: map[string]any{"channel": ""}},
	}
}

// decideAll records the decisions of the cluster version operator about the inputs.
func decideAll(t *testing.T, kind openshiftsim.CVO, all *answers) {
	t.Helper()
	defer all.end(t)
	channel := []string{"stable-4.20"}
	var operators []cvo.OperatorSpec
	for _, operator := range cvo.DefaultOperators() {
		operators = append(operators, cvo.OperatorSpec{Name: operator.Name, Takes: timescale.Duration(20 * time.Second)})
	}
	cluster := startCluster(t, openshiftsim.ClusterSpec{
		CVO: kind, Masters: 1, Workers: 1, Operators: operators, Speed: 20,
		Releases: []updategraph.Release{
			{Version: "4.20.4", Channels: channel},
			{Version: "4.20.6", Channels: channel, From: []string{"4.20.5"}},
			{Version: "4.20.7", Channels: channel, From: []string{"4.20.5", "4.20.6"}, Risks: []updategraph.Risk{{Name: "SlowBoots", Message: "Nodes boot slowly.", URL: "https://example.com"}}},
			{Version: "4.20.8", Channels: channel, From: []string{"4.20.5"}, Unsigned: true},
			{Version: "4.21.0", Channels: channel, From: []string{"4.20.5"}},
			{Version: "4.22.0", Channels: channel, From: []string{"4.20.5"}},
		},
	})
	c := newUserClient(t, cluster)
	for _, in := range inputs() {
		decide(t, c, in, func(answer string) (string, bool) { return all.differ(t, kind, in, answer) })
		merge(t, c, map[string]any{"desiredUpdate": nil, "channel": "stable-4.20", "overrides": nil})
		eventually(t, realUpgradeTimeout, "the request is withdrawn", func(ctx context.Context) error {
			version, err := getVersion(ctx, c)
			if err != nil {
				return err
			}
			for kind, want := range map[configv1.ClusterStatusConditionType]configv1.ConditionStatus{"ReleaseAccepted": configv1.ConditionTrue, "RetrievedUpdates": configv1.ConditionTrue, "Invalid": ""} {
				if c := conditionOf(version, kind); c.Status != want {
					return fmt.Errorf("%s=%s %s: %s", kind, c.Status, c.Reason, c.Message)
				}
			}
			return nil
		})
	}
}

// decide waits for the result of an input.
func decide(t *testing.T, c client.Client, in input, differ func(answer string) (diff string, answered bool)) {
	t.Helper()
	if in.reason != "" || in.spec["overrides"] != nil {
		setUpgradeable(t, c, in)
		defer func() {
			merge(t, c, map[string]any{"desiredUpdate": nil}) // or else it begins
			setUpgradeable(t, c, input{})
		}()
	}
	if in.at == begun {
		defer holdClusterVersionOperator(t, c)()
	}
	if channel, changes := in.spec["channel"]; changes { // none of them has the installed release
		merge(t, c, map[string]any{"channel": channel})
		eventually(t, time.Minute, "the available updates are those of the channel", func(ctx context.Context) error {
			version, err := getVersion(ctx, c)
			if retrieved := conditionOf(version, configv1.RetrievedUpdates); err == nil && retrieved.Status != configv1.ConditionFalse {
				err = fmt.Errorf("the condition is %+v", retrieved)
			}
			return err
		})
	}
	merge(t, c, in.spec)
	if in.at == 0 {
		awaitDecision(t, c, in.name, differ)
		return
	}
	before, err := getVersion(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, realUpgradeTimeout, "the update has come that far", func(ctx context.Context) error {
		version, err := getVersion(ctx, c)
		if err != nil {
			return err
		}
		if newest := version.Status.History[0]; newest.State != configv1.PartialUpdate || len(version.Status.History) == len(before.Status.History) && in.at == begun {
			return fmt.Errorf("%s is %s", newest.Version, newest.State)
		}
		var etcd configv1.ClusterOperator
		if err := c.Get(ctx, client.ObjectKey{Name: "etcd"}, &etcd); err != nil {
			return err
		}
		if got := cvo.VersionOf(&etcd); in.at == renewed && got != version.Status.History[0].Version {
			return fmt.Errorf("etcd is at %s", got)
		}
		return nil
	})
	merge(t, c, in.then)
	awaitDecision(t, c, in.name, differ)
}

// merge merges fields into the spec of the ClusterVersion.
func merge(t *testing.T, c client.Client, spec map[string]any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err == nil && spec != nil {
		version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: cvo.Name}}
		err = c.Patch(t.Context(), version, client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func getVersion(ctx context.Context, c client.Client) (*configv1.ClusterVersion, error) {
	version := &configv1.ClusterVersion{}
	return version, c.Get(ctx, client.ObjectKey{Name: cvo.Name}, version)
}

func conditionOf(version *configv1.ClusterVersion, kind configv1.ClusterStatusConditionType) configv1.ClusterOperatorStatusCondition {
	at := slices.IndexFunc(version.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == kind })
	if at < 0 {
		return configv1.ClusterOperatorStatusCondition{}
	}
	return version.Status.Conditions[at]
}

// awaitDecision waits until the cluster version operator has decided, and installed what it began to install. It
// has decided once both agree; if they differ for long, the test fails.
func awaitDecision(t *testing.T, c client.Client, name string, differ func(answer string) (diff string, answered bool)) {
	t.Helper()
	var last string
	var since, differSince time.Time
	eventually(t, 2*realUpgradeTimeout, "the cluster version operators have decided about "+name, func(ctx context.Context) error {
		version, err := getVersion(ctx, c)
		if err != nil {
			return err
		}
		if now := describeDecision(version); now != last {
			last, since, differSince = now, time.Now(), time.Time{}
		}
		switch {
		case conditionOf(version, "ReleaseAccepted").Status == configv1.ConditionUnknown || version.Status.History[0].State != configv1.CompletedUpdate:
			return errors.New(last)
		case time.Since(since) < settledFor:
			return errors.New("it may change: " + last)
		}
		switch diff, answered := differ(last); {
		case diff == "":
			return nil
		case !answered:
			return errors.New("the other one has not decided; this one: " + last)
		case differSince.IsZero():
			differSince = time.Now()
		case time.Since(differSince) > differsFor:
			t.Fatalf("%s (-real +simulated):\n%s", name, diff)
		}
		return errors.New("they differ")
	})
}

// setUpgradeable sets whether ClusterOperator etcd is upgradeable to the next minor release, and the overrides,
// and returns once the ClusterVersion reports it.
func setUpgradeable(t *testing.T, c client.Client, in input) {
	t.Helper()
	etcd := &configv1.ClusterOperator{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "etcd"}, etcd); err != nil {
		t.Fatal(err)
	}
	status, want := configv1.ConditionTrue, in.reason
	if in.reason != "" {
		status = configv1.ConditionFalse
	}
	if in.spec["overrides"] != nil {
		want = "ClusterVersionOverridesSet"
	}
	cvo.SetCondition(etcd, configv1.OperatorUpgradeable, status, in.reason, "make a backup of etcd first", time.Now())
	if err := c.Status().Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	merge(t, c, map[string]any{"overrides": in.spec["overrides"]})
	var resynced time.Time
	eventually(t, realUpgradeTimeout, "the cluster version operator has noticed", func(ctx context.Context) error {
		version, err := getVersion(ctx, c)
		if err != nil {
			return err
		}
		got := conditionOf(version, configv1.OperatorUpgradeable)
		if got.Reason == want || want == "" && got.Reason == "UpdateInProgress" { // the real one says so for some time
			return nil
		}
		if time.Since(resynced) > 5*time.Second {
			resynced = time.Now()
			err = client.IgnoreNotFound(realcvo.Resync(ctx, c)) // a simulated one needs none
		}
		return errors.Join(fmt.Errorf("the condition is %+v", got), err)
	})
}

// holdClusterVersionOperator lets no release replace the pod of the cluster version operator until the returned
// function is called.
func holdClusterVersionOperator(t *testing.T, c client.Client) (release func()) {
	t.Helper()
	const name = "hold-the-cluster-version-operator"
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{"cluster-version-operator"},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the pod is not renewed yet"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{binding, policy} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	awaitHeld(t, c, true)
	return func() {
		for _, object := range []client.Object{policy, binding} {
			if err := c.Delete(t.Context(), object); err != nil {
				t.Error(err)
			}
		}
		awaitHeld(t, c, false)
	}
}

// awaitHeld waits until the Deployment of the cluster version operator can be updated, or cannot. A simulated
// one has none.
func awaitHeld(t *testing.T, c client.Client, held bool) {
	t.Helper()
	eventually(t, time.Minute, "the policy counts", func(ctx context.Context) error {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: realcvo.Namespace, Name: "cluster-version-operator"}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"held":"true"}}}`))
		switch err := c.Patch(ctx, deployment, patch, client.DryRunAll); {
		case apierrors.IsNotFound(err):
			return nil
		case client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err):
			return err
		case (err != nil) != held:
			return fmt.Errorf("an update is answered by: %w", stdcmp.Or(err, errors.New("success")))
		}
		return nil
	})
}

// compared lists the conditions to compare.
var compared = []configv1.ClusterStatusConditionType{"ReleaseAccepted", "Invalid", "Available", "Failing", "Progressing", "RetrievedUpdates"}

func describeDecision(version *configv1.ClusterVersion) string {
	var lines []string
	for _, entry := range version.Status.History {
		lines = append(lines, fmt.Sprintf("%s %s %s", entry.Version, entry.State, entry.Image))
	}
	for _, kind := range compared {
		c := conditionOf(version, kind)
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s=%s %s: %s", kind, c.Status, c.Reason, c.Message)))
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "public-key-redhat", "public-key-devcluster") // whose key it is does not matter
	return strings.ReplaceAll(text, ` architecture="amd64"`, "")                                        // the real one drops it after another request, until it reconciles its release again
}

// without returns a description without a condition. An empty name removes nothing.
func without(description string, kind configv1.ClusterStatusConditionType) string {
	if kind == "" {
		return description
	}
	return strings.Join(slices.DeleteFunc(strings.Split(description, "\n"), func(line string) bool { return strings.HasPrefix(line, string(kind)+"=") }), "\n")
}

// TestSimulatedClusterVersionOperator_decides_as_the_real_one makes the same requests of both.
func TestSimulatedClusterVersionOperator_decides_as_the_real_one(t *testing.T) { //nolint:tparallel // what the subtests return is compared after both
	t.Parallel()
	const actual, simulated = openshiftsim.Real, openshiftsim.Simulated
	all := answers{of: map[openshiftsim.CVO]map[string]string{actual: {}, simulated: {}}}
	t.Run("cluster version operators", func(t *testing.T) {
		t.Run("real", func(t *testing.T) {
			t.Parallel()
			decideAll(t, actual, &all)
		})
		t.Run("simulated", func(t *testing.T) {
			t.Parallel()
			decideAll(t, simulated, &all)
		})
	})
	for _, in := range inputs() {
		t.Logf("%s:\n%s", in.name, all.of[actual][in.name])
	}
}
