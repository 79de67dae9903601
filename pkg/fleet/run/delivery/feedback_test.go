// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

func is(value string) Value { return Value{value, Known} }

func at(minute int) time.Time { return time.Date(2027, 3, 2, 21, minute, 0, 0, time.UTC) }

var ignored = cmp.Options{cmpopts.IgnoreUnexported(ClusterVersion{}, UpgradeConfig{})}

// Each path of the rules finds its value in a ClusterVersion, as the agent evaluates it.
func TestClusterVersion(t *testing.T) {
	t.Parallel()
	manifest := simulatedVersion(entry("4.20.6", "Partial", 6), entry("4.20.5", "Completed", 5))
	want := ClusterVersion{
		Version: is("4.20.6"), State: is("Partial"), Image: is(fmt.Sprintf(pullSpec, 6)),
		TargetState: is("Partial"), TargetVersion: is("4.20.6"), Message: "Working towards 4.20.6: 106 of 841 done",
		Failing:         Condition{is("True"), "ClusterOperatorDegraded", "etcd is degraded", at(0)},
		ReleaseAccepted: Condition{is("False"), "RetrievePayload", "no signature", at(1)},
		Upgradeable:     Condition{is("False"), "AdminAckRequired", "acknowledge it", at(2)},
		Invalid:         Condition{is("True"), "InvalidClusterVersion", "no such release", at(3)},
	}
	for name, target := range map[string]Target{
		"version": {Version: "4.20.6"}, "image": {Image: fmt.Sprintf(pullSpec, 6)}, "both": {"4.20.6", fmt.Sprintf(pullSpec, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Read(agent{}.work(t, manifest, ClusterVersionRules(target)))
			got := f.ClusterVersion()
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Errorf("feedback (-want +got):\n%s", diff)
			}
			if !got.IsObserved() || !got.Failing.IsTrue() || got.Failing.IsFalse() || !got.ReleaseAccepted.IsFalse() {
				t.Errorf("observed: %v, Failing is true: %v", got.IsObserved(), got.Failing.IsTrue())
			}
		})
	}
}

func TestClusterVersion_of_a_preflight(t *testing.T) {
	t.Parallel()
	recommended := Condition{is("False"), "SlowBoot", "it boots slowly", at(4)}
	for name, tc := range map[string]struct {
		target Target
		want   ClusterVersion
	}{
		"offered":              {Target{Version: "4.20.6"}, ClusterVersion{Offered: is("4.20.6")}},
		"offered, image":       {Target{Image: fmt.Sprintf(pullSpec, 6)}, ClusterVersion{Offered: is("4.20.6")}},
		"offered with a risk":  {Target{Version: "4.20.7"}, ClusterVersion{Conditional: is("4.20.7"), Recommended: recommended}},
		"not offered":          {Target{Version: "4.20.8"}, ClusterVersion{}},
		"image is not offered": {Target{"4.20.6", fmt.Sprintf(pullSpec, 1)}, ClusterVersion{}},
		"hostile image":        {Target{Image: `a")].b..["@sha256:1`}, ClusterVersion{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest := simulatedVersion(entry("4.20.4", "Partial", 4), entry("4.20.3", "Completed", 3), entry("4.20.2", "Completed", 2))
			f := Read(agent{}.work(t, manifest, PreflightRules(tc.target)))
			all := f.ClusterVersion()
			got := ClusterVersion{Channel: all.Channel, Installed: all.Installed, Offered: all.Offered, Conditional: all.Conditional, Recommended: all.Recommended}
			tc.want.Channel, tc.want.Installed = is("stable-4.20"), is("4.20.3")
			if diff := cmp.Diff(tc.want, got, ignored); diff != "" {
				t.Errorf("feedback (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStage(t *testing.T) {
	t.Parallel()
	version, image, both := Target{Version: "4.20.6"}, Target{Image: fmt.Sprintf(pullSpec, 6)}, Target{"4.20.6", fmt.Sprintf(pullSpec, 6)}
	for name, tc := range map[string]struct {
		history []string
		targets []Target
		want    Stage
	}{
		"no history":            {nil, []Target{version, image, both}, StageUnknown},
		"not accepted":          {[]string{entry("4.20.5", "Completed", 5)}, []Target{version, image, both}, StageNotAccepted},
		"partial":               {[]string{entry("4.20.6", "Partial", 6), entry("4.20.5", "Completed", 5)}, []Target{version, image, both}, StagePartial},
		"completed":             {[]string{entry("4.20.6", "Completed", 6), entry("4.20.5", "Completed", 5)}, []Target{version, image, both}, StageCompleted},
		"unknown state":         {[]string{entry("4.20.6", "Finished", 6)}, []Target{version, image, both}, StageUnknown},
		"superseded":            {[]string{entry("4.20.7", "Partial", 7), entry("4.20.6", "Partial", 6)}, []Target{version, image, both}, StageSuperseded},
		"superseded, completed": {[]string{entry("4.20.7", "Completed", 7), entry("4.20.6", "Partial", 6)}, []Target{version, image, both}, StageSuperseded},
		"completed below a newer one": {
			[]string{entry("4.21.0", "Partial", 7), entry("4.20.6", "Completed", 6)}, []Target{version, image, both}, StageCompleted,
		},
		"completed before a downgrade": {
			[]string{entry("4.20.5", "Completed", 5), entry("4.20.6", "Completed", 6)}, []Target{version, image, both}, StageNotAccepted,
		},
		"partial before a rollback": {
			[]string{entry("4.20.5", "Completed", 5), entry("4.20.6", "Partial", 6)}, []Target{version, image, both}, StageNotAccepted,
		},
		"twice, the newest counts": {
			[]string{entry("4.20.6", "Partial", 6), entry("4.20.5", "Completed", 5), entry("4.20.6", "Completed", 6)}, []Target{version, image, both}, StagePartial,
		},
		"version of another image":      {[]string{entry("4.20.6", "Completed", 1)}, []Target{image, both}, StageNotAccepted},
		"newer one is not a version":    {[]string{entry("newest", "Completed", 7), entry("4.20.6", "Completed", 6)}, []Target{version, image, both}, StageUnknown},
		"longer version":                {[]string{entry("4.20.60", "Completed", 7)}, []Target{version, image, both}, StageNotAccepted},
		"no target":                     {[]string{entry("4.20.6", "Completed", 6)}, []Target{{}}, StageUnknown},
		"pre-release is not the target": {[]string{entry("4.20.6-rc.1", "Completed", 7)}, []Target{version, image, both}, StageNotAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, target := range tc.targets {
				f := Read(agent{}.work(t, simulatedVersion(tc.history...), ClusterVersionRules(target)))
				v := f.ClusterVersion()
				if got := v.Stage(target); got != tc.want {
					t.Errorf("target %v: got %s, want %s", target, got, tc.want)
				}
			}
		})
	}
}

// A complete cluster is not complete if anything is wrong with its feedback.
func TestStage_of_bad_feedback_is_unknown(t *testing.T) {
	t.Parallel()
	target := Target{"4.20.6", fmt.Sprintf(pullSpec, 6)}
	values := func(change func(map[string]*workv1.FieldValue)) func(*workv1.ManifestWork) {
		return func(work *workv1.ManifestWork) {
			byName := map[string]*workv1.FieldValue{}
			for i := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
				v := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[i]
				byName[v.Name] = &v.Value
			}
			change(byName)
		}
	}
	manifest := func(change func(*workv1.ManifestCondition)) func(*workv1.ManifestWork) {
		return func(work *workv1.ManifestWork) { change(&work.Status.ResourceStatus.Manifests[0]) }
	}
	for name, change := range map[string]func(*workv1.ManifestWork){
		"no status":          func(w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} },
		"no values":          manifest(func(m *workv1.ManifestCondition) { m.StatusFeedbacks.Values = nil }),
		"older generation":   func(w *workv1.ManifestWork) { w.Generation = 4 },
		"not applied":        manifest(func(m *workv1.ManifestCondition) { m.Conditions[0].Status = "False" }),
		"no condition":       manifest(func(m *workv1.ManifestCondition) { m.Conditions = nil }),
		"not available":      manifest(func(m *workv1.ManifestCondition) { m.Conditions[1].Status = "False" }),
		"cannot be read":     manifest(func(m *workv1.ManifestCondition) { m.Conditions[1].Status = "Unknown" }),
		"old availability":   manifest(func(m *workv1.ManifestCondition) { m.Conditions[1].ObservedGeneration = 2 }),
		"another object":     manifest(func(m *workv1.ManifestCondition) { m.ResourceMeta.Name = "other" }),
		"another kind":       manifest(func(m *workv1.ManifestCondition) { m.ResourceMeta.Group = "example.com" }),
		"being deleted":      func(w *workv1.ManifestWork) { w.DeletionTimestamp = &metav1.Time{Time: at(0)} },
		"edited, no content": func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = nil },
		"edited, no object":  func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte("{") },
		"reported twice": func(w *workv1.ManifestWork) {
			w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, w.Status.ResourceStatus.Manifests...)
		},
		"two values of a name": manifest(func(m *workv1.ManifestCondition) {
			m.StatusFeedbacks.Values = append(m.StatusFeedbacks.Values, m.StatusFeedbacks.Values...)
		}),
		"mistyped version": values(func(v map[string]*workv1.FieldValue) { v["version"].Type = workv1.Integer }),
		"mistyped state": values(func(v map[string]*workv1.FieldValue) {
			*v["state"] = workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: new(`"Completed"`)}
		}),
		"version without its value": values(func(v map[string]*workv1.FieldValue) { v["version"].String = nil }),
		"empty version":             values(func(v map[string]*workv1.FieldValue) { v["version"].String = new("") }),
		"huge version":              values(func(v map[string]*workv1.FieldValue) { v["version"].String = new(strings.Repeat("4", 1<<20)) }),
		"mistyped image":            values(func(v map[string]*workv1.FieldValue) { v["image"].Type = workv1.Boolean }),
		"huge image":                values(func(v map[string]*workv1.FieldValue) { v["image"].String = new(strings.Repeat("4", 513)) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := agent{}.work(t, simulatedVersion(entry("4.20.6", "Completed", 6)), ClusterVersionRules(target))
			f := Read(work)
			if v := f.ClusterVersion(); v.Stage(target) != StageCompleted {
				t.Fatalf("without the change: %s", v.Stage(target))
			}
			change(work)
			f = Read(work)
			v := f.ClusterVersion()
			if got := v.Stage(target); got != StageUnknown {
				t.Errorf("got %s, want Unknown", got)
			}
		})
	}
}

func TestStage_of_bad_feedback_about_the_target_is_unknown(t *testing.T) {
	t.Parallel()
	image := fmt.Sprintf(pullSpec, 6)
	newer := ClusterVersion{Version: is("4.20.7"), Image: is("other"), TargetState: is("Completed"), TargetVersion: is("4.20.6")}
	for name, tc := range map[string]struct {
		target Target
		change func(*ClusterVersion)
		want   Stage
	}{
		"none":                       {Target{Image: image}, func(*ClusterVersion) {}, StageCompleted},
		"mistyped state":             {Target{Version: "4.20.6"}, func(v *ClusterVersion) { v.TargetState = Value{Quality: Mistyped} }, StageUnknown},
		"unknown version":            {Target{Image: image}, func(v *ClusterVersion) { v.TargetVersion = Value{} }, StageUnknown},
		"image of another version":   {Target{"4.20.5", image}, func(*ClusterVersion) {}, StageUnknown},
		"version is none":            {Target{Version: "latest"}, func(*ClusterVersion) {}, StageUnknown},
		"state that does not exist":  {Target{Version: "4.20.6"}, func(v *ClusterVersion) { v.TargetState = is("Done") }, StageNotAccepted},
		"image of newest is missing": {Target{Image: image}, func(v *ClusterVersion) { v.Image = Value{} }, StageUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newer
			tc.change(&v)
			if got := v.Stage(tc.target); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestIsObserved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		generation, observed Value
		want                 bool
	}{
		"observed":   {is("4"), is("4"), true},
		"older":      {is("4"), is("3"), false},
		"missing":    {Value{}, Value{}, false},
		"no spec":    {Value{}, is("4"), false},
		"no status":  {is("4"), Value{}, false},
		"mistyped":   {Value{Quality: Mistyped}, Value{Quality: Mistyped}, false},
		"spec newer": {is("5"), is("4"), false},
		"both empty": {Value{}, is(""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := ClusterVersion{observation: observation{tc.generation, tc.observed}}
			c := UpgradeConfig{observation: observation{tc.generation, tc.observed}}
			if v.IsObserved() != tc.want || c.IsObserved() != tc.want {
				t.Errorf("got %v and %v, want %v", v.IsObserved(), c.IsObserved(), tc.want)
			}
		})
	}
}

func TestValues_that_identify_something(t *testing.T) {
	t.Parallel()
	field := func(value string) workv1.FieldValue { return workv1.FieldValue{Type: workv1.String, String: &value} }
	for name, tc := range map[string]struct {
		reported []workv1.FieldValue
		want     Value
	}{
		"missing":    {nil, Value{}},
		"empty":      {[]workv1.FieldValue{field("")}, Value{}},
		"known":      {[]workv1.FieldValue{field("4.20.6")}, is("4.20.6")},
		"longest":    {[]workv1.FieldValue{field(strings.Repeat("4", maxName))}, is(strings.Repeat("4", maxName))},
		"too long":   {[]workv1.FieldValue{field(strings.Repeat("4", maxName+1))}, Value{Quality: TooLong}},
		"twice":      {[]workv1.FieldValue{field("4.20.6"), field("4.20.6")}, Value{Quality: Ambiguous}},
		"number":     {[]workv1.FieldValue{{Type: workv1.Integer, Integer: new(int64(4))}}, Value{Quality: Mistyped}},
		"no value":   {[]workv1.FieldValue{{Type: workv1.String}}, Value{Quality: Mistyped}},
		"wrong type": {[]workv1.FieldValue{{Type: "Object", String: new("4.20.6")}}, Value{Quality: Mistyped}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []workv1.FeedbackValue
			for _, value := range tc.reported {
				list = append(list, workv1.FeedbackValue{Name: "version", Value: value})
			}
			if diff := cmp.Diff(tc.want, newValues(list).name("version")); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMessages_are_bounded(t *testing.T) {
	t.Parallel()
	v := newValues([]workv1.FeedbackValue{
		{Name: "FailingMessage", Value: workv1.FieldValue{Type: workv1.String, String: new("a\x1b[2J\n" + strings.Repeat("b", 1<<20))}},
		{Name: "FailingReason", Value: workv1.FieldValue{Type: workv1.String, String: new(strings.Repeat("c", 1<<20))}},
		{Name: "FailingSince", Value: workv1.FieldValue{Type: workv1.String, String: new("yesterday")}},
		{Name: "FailingStatus", Value: workv1.FieldValue{Type: workv1.Boolean, Boolean: new(true)}},
	})
	c := v.condition("Failing")
	if len(c.Message) > maxMessage+3 || strings.ContainsAny(c.Message, "\x1b\n") || len(c.Reason) > maxName+3 {
		t.Errorf("message of %d bytes, reason of %d bytes", len(c.Message), len(c.Reason))
	}
	if !c.Since.IsZero() || c.IsTrue() || c.IsFalse() || c.Status.Quality != Mistyped {
		t.Errorf("condition %v %v", c.Since, c.Status)
	}
}

const upgradeConfig = `
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata: {name: fleet-0a1b2c3d, namespace: managed-upgrade-operator, generation: 2}
status:
  observedGeneration: 2
  conditions:
  - {type: Accepted, status: "True", reason: Valid, message: "", lastTransitionTime: "2027-03-02T21:00:00Z"}
  - {type: Progressing, status: "True", reason: ControlPlaneUpgraded, message: etcd is updating, lastTransitionTime: "2027-03-02T21:01:00Z"}
  - {type: Succeeded, status: "False", reason: InProgress, message: it runs, lastTransitionTime: "2027-03-02T21:02:00Z"}
  - {type: Slow, status: "False", reason: OnTime, message: "", lastTransitionTime: "2027-03-02T21:03:00Z"}
  history:
  - version: 4.20.6
    phase: Upgrading
    conditions:
    - {type: Validated, status: "True", completeTime: "2027-03-02T21:00:00Z"}
    - {type: CommenceUpgrade, status: "True", completeTime: "2027-03-02T21:05:00Z"}
    - {type: ControlPlaneUpgraded, status: "False"}
`

func TestUpgradeConfig(t *testing.T) {
	t.Parallel()
	want := UpgradeConfig{
		Phase: is("Upgrading"), Version: is("4.20.6"), Message: "etcd is updating",
		Accepted:  Condition{is("True"), "Valid", "", at(0)},
		Succeeded: Condition{is("False"), "InProgress", "it runs", at(2)},
		Slow:      Condition{is("False"), "OnTime", "", at(3)},
		HasSteps:  true, Commenced: is("True"),
	}
	f := Read(agent{}.work(t, upgradeConfig, UpgradeConfigRules()))
	got := f.UpgradeConfig()
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("gate off (-want +got):\n%s", diff)
	}
	if !got.IsObserved() {
		t.Error("not observed")
	}
	f = Read(agent{rawJSON: true}.work(t, upgradeConfig, UpgradeConfigRules()))
	if diff := cmp.Diff(want, f.UpgradeConfig(), ignored); diff != "" {
		t.Errorf("gate on (-want +got):\n%s", diff)
	}
	before, _, _ := strings.Cut(upgradeConfig, "    conditions:")
	for _, rawJSON := range []bool{true, false} {
		f = Read(agent{rawJSON: rawJSON}.work(t, before, UpgradeConfigRules()))
		if f.UpgradeConfig().HasSteps {
			t.Error("there are no steps")
		}
	}
}

// Each value that the agent reports of an UpgradeConfig is read, and none depends on a feature gate of the agent.
func TestUpgradeConfig_reads(t *testing.T) {
	t.Parallel()
	explained := strings.ReplaceAll(upgradeConfig, `message: ""`, "message: why")
	work := agent{}.work(t, explained, UpgradeConfigRules())
	want := Read(work)
	if diff := cmp.Diff(work.Status, agent{rawJSON: true}.work(t, explained, UpgradeConfigRules()).Status); diff != "" {
		t.Errorf("the gate changes what is reported (-off +on):\n%s", diff)
	}
	reported := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks
	all := reported.Values
	for i, value := range all {
		reported.Values = slices.Delete(slices.Clone(all), i, i+1)
		if got := Read(work); got.UpgradeConfig() == want.UpgradeConfig() {
			t.Errorf("the value %s is reported, and not read", value.Name)
		}
	}
}

// An operator of the release before reports that it is slow by the condition Stalled, without Ready.
func TestUpgradeConfig_slow(t *testing.T) {
	t.Parallel()
	const (
		slow    = `  - {type: Slow, status: "True", reason: ControlPlaneUpgraded, message: "", lastTransitionTime: "2027-03-02T21:03:00Z"}`
		onTime  = `  - {type: Slow, status: "False", reason: OnTime, message: "", lastTransitionTime: "2027-03-02T21:03:00Z"}`
		stalled = `  - {type: Stalled, status: "True", reason: ControlPlaneUpgraded, message: "", lastTransitionTime: "2027-03-02T21:03:00Z"}`
		ready   = `  - {type: Ready, status: "False", reason: ControlPlaneUpgraded, message: "", lastTransitionTime: "2027-03-02T21:03:00Z"}`
	)
	for name, tc := range map[string]struct {
		conditions []string
		want       bool
	}{
		"slow":                           {[]string{slow, ready}, true},
		"on time":                        {[]string{onTime, ready}, false},
		"failed":                         {[]string{onTime, ready, stalled}, false},
		"invalid before it started":      {[]string{ready, stalled}, false},
		"slow, by the release before":    {[]string{stalled}, true},
		"on time, by the release before": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := Read(agent{}.work(t, strings.Replace(upgradeConfig, onTime, strings.Join(tc.conditions, "\n"), 1), UpgradeConfigRules()))
			if got := f.UpgradeConfig(); got.Slow.IsTrue() != tc.want {
				t.Errorf("slow: %+v", got.Slow)
			}
		})
	}
}

const (
	job       = "{apiVersion: batch/v1, kind: Job, metadata: {name: backup, namespace: default}, status: {conditions: [{type: %s, status: %q, reason: Late, message: it took too long}]}}"
	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: backup, namespace: default}}"
)

func completeRule(resource, name string) workv1.ManifestConfigOption {
	group := ""
	if resource == "jobs" {
		group = "batch"
	}
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: "default", Name: name},
		ConditionRules:     []workv1.ConditionRule{{Condition: workv1.ManifestComplete, Type: workv1.WellKnownConditionsType}},
	}
}

func TestAction(t *testing.T) {
	t.Parallel()
	running, succeeded, failed := fmt.Sprintf(job, "Suspended", "False"), fmt.Sprintf(job, "Complete", "True"), fmt.Sprintf(job, "Failed", "True")
	conditions := func(w *workv1.ManifestWork) *[]metav1.Condition {
		return &w.Status.ResourceStatus.Manifests[0].Conditions
	}
	for name, tc := range map[string]struct {
		manifest string
		change   func(*workv1.ManifestWork)
		want     fleetv1alpha1.ActionState
		message  string
	}{
		"plain object exists": {manifest: configMap, want: "Available"},
		"plain object is missing": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { (*conditions(w))[1].Status = "False" },
			want: "Progressing", message: "ConfigMap backup does not exist",
		},
		"not applied": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { fail(&(*conditions(w))[0]) },
			want: "Progressing", message: "ConfigMap backup is not applied: no rights",
		},
		"not reported": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} },
			want: "Progressing", message: "the agent has not reported ConfigMap backup",
		},
		"older generation": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.Generation = 4 },
			want: "Progressing", message: "the agent has not reported ConfigMap backup",
		},
		"work is not applied": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.Status.Conditions[0].ObservedGeneration = 2 },
			want: "Progressing", message: "the agent has not reported all manifests",
		},
		"work is not available": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.Status.Conditions[1].Status = "False" },
			want: "Progressing", message: "the agent has not reported all manifests",
		},
		"work is being deleted": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.DeletionTimestamp = &metav1.Time{Time: at(0)} },
			want: "Progressing", message: "the ManifestWork is being deleted",
		},
		"edited, no content": {
			manifest: configMap, change: func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = nil },
			want: "Progressing", message: "the agent has not reported all manifests",
		},
		"degraded": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestDegraded, 3))
			},
			want: "Degraded", message: "ConfigMap backup is degraded: the message of Degraded",
		},
		"was degraded in an older generation": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestDegraded, 2))
			},
			want: "Available",
		},
		"rule is met": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("configmaps", "back*")}
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestComplete, 3))
			},
			want: "Available",
		},
		"rule is not met": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("configmaps", "back*")}
			},
			want: "Progressing", message: "ConfigMap backup does not meet its rule for Complete",
		},
		"rule was met in an older generation": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("configmaps", "backup")}
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestComplete, 2))
			},
			want: "Progressing", message: "ConfigMap backup does not meet its rule for Complete",
		},
		"rule of another object": {
			manifest: configMap, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("configmaps", "other"), completeRule("jobs", "backup")}
			},
			want: "Available",
		},
		"Job runs":      {manifest: running, want: "Progressing", message: "Job backup is not complete"},
		"Job succeeded": {manifest: succeeded, want: "Available"},
		"Job failed":    {manifest: failed, want: "Degraded", message: "Job backup failed: it took too long"},
		"Job failed, which completes it for its rule": {
			manifest: failed, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("jobs", "backup")}
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestComplete, 3))
			},
			want: "Degraded", message: "Job backup failed: it took too long",
		},
		"Job without feedback, its rule is met": {
			manifest: succeeded, change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{completeRule("jobs", "backup")}
				*conditions(w) = append(*conditions(w), condition(workv1.ManifestComplete, 3))
				w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = nil
			},
			want: "Progressing", message: "Job backup is not complete",
		},
		"Job that is gone": {
			manifest: succeeded, change: func(w *workv1.ManifestWork) { (*conditions(w))[1].Status = "False" },
			want: "Progressing", message: "Job backup does not exist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := agent{}.work(t, tc.manifest, ActionJobRules())
			if tc.change != nil {
				tc.change(work)
			}
			f := Read(work)
			state, message := f.Action()
			if state != tc.want || message != tc.message {
				t.Errorf("got %s %q, want %s %q", state, message, tc.want, tc.message)
			}
		})
	}
}

// A failure counts, whatever comes before it in the work.
func TestAction_of_several_manifests(t *testing.T) {
	t.Parallel()
	work := agent{}.work(t, fmt.Sprintf(job, "Failed", "True"), ActionJobRules())
	first := agent{}.work(t, strings.ReplaceAll(configMap, "backup", "first"), ActionJobRules())
	first.Status.ResourceStatus.Manifests[0].Conditions = nil
	work.Spec.Workload.Manifests = append(first.Spec.Workload.Manifests, work.Spec.Workload.Manifests...)
	work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, first.Status.ResourceStatus.Manifests...)
	f := Read(work)
	if state, message := f.Action(); state != fleetv1alpha1.ActionDegraded || !strings.Contains(message, "Job backup failed") {
		t.Errorf("got %s %q", state, message)
	}
	if f.Applied != metav1.ConditionUnknown || f.Available != metav1.ConditionUnknown {
		t.Errorf("one manifest is not reported, but applied is %s, available %s", f.Applied, f.Available)
	}
}

func TestRead_names_why_a_manifest_is_not_applied(t *testing.T) {
	t.Parallel()
	work := agent{}.work(t, configMap, ActionJobRules())
	work.Status.Conditions[0].Status = metav1.ConditionFalse
	fail(&work.Status.ResourceStatus.Manifests[0].Conditions[0])
	f := Read(work)
	if f.Applied != metav1.ConditionFalse || f.Message != "no rights" {
		t.Errorf("applied %s, message %q", f.Applied, f.Message)
	}
}

// The Job that approves operators is one manifest of several.
func TestJobRules_report_the_result(t *testing.T) {
	t.Parallel()
	f := Read(agent{}.work(t, fmt.Sprintf(job, "Complete", "True"), ApproverJobRules()))
	if state, _ := f.Action(); state != fleetv1alpha1.ActionAvailable {
		t.Errorf("got %s", state)
	}
	seen := map[string]bool{}
	for _, rules := range [][]workv1.FeedbackRule{ApproverJobRules(), PreflightRules(Target{Version: "4.20.6"}), UpgradeConfigRules()} {
		clear(seen)
		for _, path := range rules[0].JsonPaths {
			if seen[path.Name] {
				t.Errorf("the API server rejects two values with the name %s", path.Name)
			}
			seen[path.Name] = true
		}
	}
}

func TestReportsFailure(t *testing.T) {
	t.Parallel()
	healthy := strings.NewReplacer(
		`Failing, status: "True"`, `Failing, status: "False"`, `ReleaseAccepted, status: "False"`, `ReleaseAccepted, status: "True"`,
		`Invalid, status: "True"`, `Invalid, status: "False"`,
	).Replace(simulatedVersion(entry("4.20.6", "Partial", 6)))
	for name, tc := range map[string]struct {
		manifest, old, replaced string
		rules                   []workv1.FeedbackRule
		want                    bool
	}{
		"healthy":                {manifest: healthy, rules: ClusterVersionRules(Target{Version: "4.20.6"})},
		"failing":                {manifest: healthy, old: `Failing, status: "False"`, replaced: `Failing, status: "True"`, rules: ClusterVersionRules(Target{Version: "4.20.6"}), want: true},
		"refused":                {manifest: healthy, old: `ReleaseAccepted, status: "True"`, replaced: `ReleaseAccepted, status: "False"`, rules: ClusterVersionRules(Target{Version: "4.20.6"}), want: true},
		"invalid":                {manifest: healthy, old: `Invalid, status: "False"`, replaced: `Invalid, status: "True"`, rules: ClusterVersionRules(Target{Version: "4.20.6"}), want: true},
		"unknown":                {manifest: healthy, old: `Failing, status: "False"`, replaced: `Failing, status: "Unknown"`, rules: ClusterVersionRules(Target{Version: "4.20.6"})},
		"running UpgradeConfig":  {manifest: upgradeConfig, rules: UpgradeConfigRules()},
		"failed UpgradeConfig":   {manifest: upgradeConfig, old: "phase: Upgrading", replaced: "phase: Failed", rules: UpgradeConfigRules(), want: true},
		"Job that runs":          {manifest: fmt.Sprintf(job, "Suspended", "False"), rules: ApproverJobRules()},
		"Job that failed":        {manifest: fmt.Sprintf(job, "Failed", "True"), rules: ApproverJobRules(), want: true},
		"Job that has succeeded": {manifest: fmt.Sprintf(job, "Complete", "True"), rules: ApproverJobRules()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.old != "" && !strings.Contains(tc.manifest, tc.old) {
				t.Fatalf("%q is not in the manifest", tc.old)
			}
			f := Read(agent{}.work(t, strings.Replace(tc.manifest, tc.old, tc.replaced, 1), tc.rules))
			if got := f.ReportsFailure(); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
