// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const (
	image446  = "quay.io/openshift-release-dev/ocp-release@sha256:446"
	other446  = "quay.io/openshift-release-dev/ocp-release@sha256:64e"
	mirror446 = "mirror.example.com/ocp-release@sha256:446"
)

// target is the target of all tests.
var target = clusterstate.Target{Version: "4.4.6", Channel: "fast-4.4"}

// change changes one property of a ClusterVersion.
type change func(*configv1.ClusterVersion)

// at returns the ClusterVersion of a cluster at 4.4.5 that can be updated to 4.4.6, with these
// changes.
func at(changes ...change) *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 3},
		Spec:       configv1.ClusterVersionSpec{Channel: "fast-4.4"},
		Status: configv1.ClusterVersionStatus{
			ObservedGeneration: 3,
			History:            []configv1.UpdateHistory{{Version: "4.4.5", State: configv1.CompletedUpdate}},
			AvailableUpdates:   []configv1.Release{{Version: "4.4.6", Image: image446}},
		},
	}
	for _, change := range changes {
		change(version)
	}
	return version
}

func history(state configv1.UpdateState, version string) change {
	return func(v *configv1.ClusterVersion) {
		v.Status.History = append([]configv1.UpdateHistory{{Version: version, Image: "x@sha256:" + strings.ReplaceAll(version, ".", ""), State: state}}, v.Status.History...)
	}
}

func updating(version string) change  { return history(configv1.PartialUpdate, version) }
func installed(version string) change { return history(configv1.CompletedUpdate, version) }

func desired(version string) change {
	return func(v *configv1.ClusterVersion) { v.Spec.DesiredUpdate = &configv1.Update{Version: version} }
}

func condition(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, reason, message string) change {
	return func(v *configv1.ClusterVersion) {
		v.Status.Conditions = append(v.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: name, Status: status, Reason: reason, Message: message,
		})
	}
}

func channel(name string) change {
	return func(v *configv1.ClusterVersion) { v.Spec.Channel = name }
}

func unobserved(v *configv1.ClusterVersion) { v.Status.ObservedGeneration = 2 }
func inChannels(channels ...string) change {
	return func(v *configv1.ClusterVersion) {
		for i := range v.Status.AvailableUpdates {
			v.Status.AvailableUpdates[i].Channels = channels
		}
	}
}

func noUpdates(v *configv1.ClusterVersion) {
	v.Status.AvailableUpdates, v.Status.ConditionalUpdates = nil, nil
}
func emptyStatus(v *configv1.ClusterVersion) { v.Status = configv1.ClusterVersionStatus{} }

func updateWithRisks(names ...string) change {
	return func(v *configv1.ClusterVersion) {
		noUpdates(v)
		update := configv1.ConditionalUpdate{Release: configv1.Release{Version: "4.4.6", Image: image446}}
		for _, name := range names {
			update.Risks = append(update.Risks, configv1.ConditionalUpdateRisk{Name: name, Message: "it is slow", URL: "https://example.com/" + name})
		}
		update.Conditions = []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionFalse, Reason: "ExposedToRisks"}}
		v.Status.ConditionalUpdates = []configv1.ConditionalUpdate{update}
	}
}

// risksUnknown makes the cluster version operator fail to evaluate the risks.
func risksUnknown(v *configv1.ClusterVersion) {
	v.Status.ConditionalUpdates[0].Conditions = []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionUnknown, Reason: "EvaluationFailed"}}
}

// stepResult is the result of a step and its patch.
type stepResult struct {
	Outcome string // done, skipped, failed, or waiting; empty for the zero Result
	Reason  string
	Patch   string // without the resource version, because every patch has it
}

var done = stepResult{Outcome: "done", Reason: "Done"}

// recorder is a client that records patches.
type recorder struct {
	client.Client
	patches []string
}

// testCluster returns a client with these objects. Its patches return patchErr.
func testCluster(t *testing.T, patchErr error, objects ...client.Object) *recorder {
	t.Helper()
	r := &recorder{}
	r.Client = interceptor.NewClient(simulation.NewFakeClient(t, objects...), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(object)
			if err != nil {
				return err
			}
			r.patches = append(r.patches, string(data))
			if patchErr != nil {
				return patchErr
			}
			return c.Patch(ctx, object, patch, opts...)
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			return errors.New("a whole-object update")
		},
	})
	return r
}

// callStep calls a step once, and also returns its message.
func callStep(t *testing.T, r *recorder, step engine.UpgradeStep) (stepResult, string, error) {
	t.Helper()
	now := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	result, err := step(t.Context(), engine.Run{Started: now, Since: now, Now: now})
	got := stepResult{Outcome: "waiting", Reason: result.Reason()}
	switch {
	case result == engine.Result{}:
		got.Outcome = ""
	case result.Failed():
		got.Outcome = "failed"
	case result.Passed() && result.Reason() == engine.ReasonDone:
		got.Outcome = "done"
	case result.Passed():
		got.Outcome = "skipped"
	}
	for _, patch := range r.patches {
		got.Patch += withoutResourceVersion(t, patch)
	}
	return got, result.Message(), err
}

func withoutResourceVersion(t *testing.T, patch string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(patch), &object); err != nil {
		t.Fatal(err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, fences := metadata["annotations"].(map[string]any)
	if _, isFence := annotations[controlplane.FenceAnnotation]; fences && (len(annotations) > 1 || !isFence) {
		t.Errorf("a patch of other annotations than the fence: %s", patch)
	}
	version, _ := metadata["resourceVersion"].(string)
	delete(metadata, "resourceVersion")
	if version == "" || len(metadata) > 1 || len(metadata) == 1 && !fences {
		t.Errorf("a patch that does not have just the resource version as its precondition: %s", patch)
	}
	if !fences {
		delete(object, "metadata")
	}
	rest, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(rest)
}

// testCase is a cluster and the expected result of a step.
type testCase struct {
	version *configv1.ClusterVersion
	pools   []client.Object
	target  *clusterstate.Target // nil for the default target
	want    stepResult
}

func runCases(t *testing.T, cases map[string]testCase, step func(client.Client, clusterstate.Target) engine.UpgradeStep) {
	t.Helper()
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := target
			if s.target != nil {
				to = *s.target
			}
			r := testCluster(t, nil, append([]client.Object{s.version}, s.pools...)...)
			got, message, err := callStep(t, r, step(r, to))
			if err != nil {
				t.Fatal(err)
			}
			golden.Texts(t, "", message)
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSteps_return_read_errors(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil)
	steps := map[string]engine.UpgradeStep{
		"Pinned":      controlplane.SetChannel(r, target),
		"Offerable":   controlplane.PreCheckUpdateAvailable(r, target),
		"Offered":     controlplane.UpdateAvailable(r, target, nil),
		"Undisturbed": controlplane.NoOtherUpdate(r, target),
		"Upgradeable": controlplane.Upgradeable(r, target),
		"Accepted":    observeOwn(r, target),
		"Request":     controlplane.RequestUpdate(r, r, target),
		"Upgraded":    controlplane.WaitUntilUpgraded(r, r, target),
		"StillOurs":   controlplane.NotSuperseded(r, r, target),
		"Withdrawn":   controlplane.WithdrawRequest(r, r, target),
		"Settled":     controlplane.WaitUntilSettled(r, target),
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := step(t.Context(), engine.Run{})
			if !apierrors.IsNotFound(err) || !strings.HasPrefix(err.Error(), "getting the cluster version: ") {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
	for name, reached := range map[string]func(context.Context) (bool, error){
		"Commenced":   controlplane.IsCommenced(r, r, target),
		"HasUpgraded": controlplane.IsUpgraded(r, target),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if yes, err := reached(t.Context()); !apierrors.IsNotFound(err) || yes {
				t.Errorf("got %t, %v", yes, err)
			}
		})
	}
}

func TestSteps_with_an_empty_ClusterVersion(t *testing.T) {
	t.Parallel()
	bare := func() *recorder {
		return testCluster(t, nil, &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}})
	}
	for name, step := range map[string]func(client.Client, clusterstate.Target) engine.UpgradeStep{
		"Pinned":    controlplane.SetChannel,
		"Offered":   withReader(updateAvailable),
		"Accepted":  withReader(observeOwn),
		"Upgraded":  withLiveReader(controlplane.WaitUntilUpgraded),
		"StillOurs": withLiveReader(controlplane.NotSuperseded),
		"Request":   request,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, to := range []clusterstate.Target{target, {}} {
				r := bare()
				got, _, err := callStep(t, r, step(r, to))
				if err != nil || got.Outcome != "waiting" && got.Outcome != "" {
					t.Errorf("to %v: got %v, %v", to, got, err)
				}
			}
		})
	}
	for name, step := range map[string]func(client.Reader, clusterstate.Target) engine.UpgradeStep{
		"Undisturbed": controlplane.NoOtherUpdate,
		"Upgradeable": controlplane.Upgradeable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := bare()
			if got, _, err := callStep(t, r, step(r, target)); err == nil || !strings.Contains(err.Error(), "the installed version is unknown") {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// request returns the step that requests the update, without its checks.
func request(c client.Client, to clusterstate.Target) engine.UpgradeStep {
	return controlplane.RequestUpdate(c, c, to)
}

// withReader adapts a step that only needs a reader.
func withReader(step func(client.Reader, clusterstate.Target) engine.UpgradeStep) func(client.Client, clusterstate.Target) engine.UpgradeStep {
	return func(c client.Client, to clusterstate.Target) engine.UpgradeStep { return step(c, to) }
}

// observeOwn returns the result of the committing step while its own request is pending.
func observeOwn(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	observe := controlplane.ObserveRequest(r, r, target)
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		run.Requested = true
		_, answer, err := observe(ctx, run)
		return answer, err
	}
}

// updateAvailable returns UpdateAvailable for a channel that does not change.
func updateAvailable(r client.Reader, target clusterstate.Target) engine.UpgradeStep {
	return controlplane.UpdateAvailable(r, target, nil)
}

// withLiveReader adapts a step that confirms with a live reader before it ends the upgrade.
func withLiveReader(step func(cached, live client.Reader, target clusterstate.Target) engine.UpgradeStep) func(client.Client, clusterstate.Target) engine.UpgradeStep {
	return func(c client.Client, to clusterstate.Target) engine.UpgradeStep { return step(c, c, to) }
}

func TestWrites(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusterversions"}, "version", errors.New("it was modified"))
	refused := errors.New("the connection was refused")
	writes := map[string]struct {
		step    func(client.Client, clusterstate.Target) engine.UpgradeStep
		version *configv1.ClusterVersion
		doing   string
	}{
		"of the channel":   {controlplane.SetChannel, at(channel("stable-4.4")), "setting the channel to fast-4.4: "},
		"of a request":     {request, at(), "requesting 4.4.6 from the cluster version operator: "},
		"of a withdrawal":  {withdrawRequest, at(desired("4.4.6")), "withdrawing 4.4.6: "},
		"that change none": {withdrawRequest, at(), "withdrawing 4.4.6: "},
	}
	for name, write := range writes {
		t.Run(name+" look again after a conflict", func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, conflict, write.version)
			result, err := write.step(r, target)(t.Context(), engine.Run{})
			want := engine.WaitFor(time.Second, "Retrying", "the ClusterVersion has changed since it was read; reading it again")
			if err != nil || result != want {
				t.Errorf("got %v, %v", result, err)
			}
		})
		t.Run(name+" say that they cannot be made", func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, refused, write.version)
			result, err := write.step(r, target)(t.Context(), engine.Run{})
			if !errors.Is(err, refused) || !strings.HasPrefix(err.Error(), write.doing) {
				t.Errorf("got %v, %v", result, err)
			}
		})
	}
}

// staleClient has a cache that still returns an earlier ClusterVersion.
type staleClient struct {
	client.Client
	cached *configv1.ClusterVersion
}

func (s staleClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if version, ok := object.(*configv1.ClusterVersion); ok {
		s.cached.DeepCopyInto(version)
		return nil
	}
	return s.Client.Get(ctx, key, object, opts...)
}

func TestSteps_do_not_decide_on_a_stale_cache(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]func(client.Client, clusterstate.Target) engine.UpgradeStep{
		"not a request":    request,
		"not a withdrawal": withdrawRequest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, nil, at())
			var before configv1.ClusterVersion
			if err := r.Get(t.Context(), clusterstate.VersionKey, &before); err != nil {
				t.Fatal(err)
			}
			now := before.DeepCopy()
			now.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.7"}
			if err := r.Patch(t.Context(), now, client.MergeFromWithOptions(&before, client.MergeFromWithOptimisticLock{})); err != nil {
				t.Fatal(err)
			}

			result, err := step(staleClient{Client: r, cached: &before}, target)(t.Context(), engine.Run{})
			if err != nil || result.Reason() != "Retrying" {
				t.Errorf("got %v, %v", result, err)
			}
			var after configv1.ClusterVersion
			if err := r.Get(t.Context(), clusterstate.VersionKey, &after); err != nil {
				t.Fatal(err)
			}
			if after.Spec.DesiredUpdate == nil || after.Spec.DesiredUpdate.Version != "4.4.7" {
				t.Errorf("the request of another client is gone: %v", after.Spec.DesiredUpdate)
			}
		})
	}
}

// withdrawRequest returns the step with the same client for both arguments.
func withdrawRequest(c client.Client, target clusterstate.Target) engine.UpgradeStep {
	return controlplane.WithdrawRequest(c, c, target)
}
