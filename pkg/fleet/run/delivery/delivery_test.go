// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const (
	uid         = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	digest      = "quay.io/openshift-release-dev/ocp-release@sha256:0000000000000000000000000000000000000000000000000000000000000001"
	hubImage    = "quay.io/example/operator@sha256:0000000000000000000000000000000000000000000000000000000000000002"
	jobManifest = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"backup","namespace":"default"},"spec":{"backoffLimit":2}}`
	mapManifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"backup","namespace":"default"},"data":{"target":"s3"}}`
)

// delivered is when the UpgradeConfigs of the tests start, in another time zone.
var delivered = time.Date(2027, 3, 2, 22, 0, 0, 0, time.FixedZone("", 3600))

// everywhere is a cluster that has all namespaces.
func everywhere(string) bool { return true }

func testRun(change ...func(*fleetv1alpha1.ClusterUpgradeRun)) *fleetv1alpha1.ClusterUpgradeRun {
	run := &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "store-0001", Name: "stores-1a2b3c4d"},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: "stores", Name: "stores", UID: uid},
			Attempt:                1,
			ClusterVersion:         &fleetv1beta1.ClusterVersionSpec{Channel: "stable-4.20", Version: "4.20.6"},
		},
	}
	for _, c := range change {
		c(run)
	}
	return run
}

func testUpgrade(change ...func(*fleetv1beta1.ManagedClustersUpgradeSpec)) *fleetv1beta1.ManagedClustersUpgrade {
	mcu := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "stores", Name: "stores", UID: uid}}
	for _, c := range change {
		c(&mcu.Spec)
	}
	return mcu
}

func allReleaseFields(run *fleetv1alpha1.ClusterUpgradeRun) {
	run.Spec.ClusterVersion.Image, run.Spec.ClusterVersion.Upstream = digest, "https://updates.example.com/graph"
}

func withUpgradeConfig(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
	spec.UpgradeConfig = &fleetv1beta1.UpgradeConfigTemplate{Type: "OSD", PDBForceDrainTimeout: new(int32(0)), CapacityReservation: new(true)}
}

func withOperators(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
	spec.OCPOperators = &fleetv1beta1.OCPOperators{
		Include: []fleetv1beta1.OperatorReference{{Name: "openshift-gitops-operator", Namespace: "openshift-operators"}, {Name: "quay", Namespace: "registry"}},
		Exclude: []fleetv1beta1.OperatorReference{{Name: "local-storage-operator", Namespace: "openshift-operators"}},
	}
}

func withActions(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
	spec.PreUpgradeAction = &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{raw(mapManifest), raw(jobManifest)}},
		ManifestConfigs: []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "*", Name: "back*"},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		}},
		DeleteOption: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
	}}
	spec.PostUpgradeAction = &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{raw(jobManifest)}},
	}}
}

func raw(manifest string) workv1.Manifest {
	var m workv1.Manifest
	m.Raw = []byte(manifest)
	return m
}

// adapted returns the work of the operators of all namespaces, as the report of its Job requires.
func adapted(over bool) (*workv1.ManifestWork, error) {
	mcu := testUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
		spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
	})
	work, err := OperatorsWork(testRun(), mcu, hubImage, everywhere)
	if err != nil {
		return nil, err
	}
	plans := []types.NamespacedName{{Namespace: "gitops", Name: "install-a"}, {Namespace: "gitops", Name: "install-b"}, {Namespace: "quay"}}
	running := Approval{Report: report.New(3, plans), Reported: true}
	if work, err = AdaptOperatorsWork(work, mcu, &running); err != nil || !over {
		return work, err
	}
	plans[2].Name = "install-c"
	return AdaptOperatorsWork(work, mcu, &Approval{Report: report.New(3, plans), Reported: true, Over: true})
}

func TestWorks(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func() (*workv1.ManifestWork, error){
		"upgrade": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(), testUpgrade(), FormApply, delivered, clusterstate.Release{})
		},
		"upgrade-all-fields": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(allReleaseFields), testUpgrade(), FormApply, delivered, clusterstate.Release{})
		},
		"upgrade-read-only": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(allReleaseFields), testUpgrade(), FormReadOnly, delivered, clusterstate.Release{})
		},
		"upgrade-withdraw": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(allReleaseFields), testUpgrade(), FormWithdraw, delivered, clusterstate.Release{})
		},
		"upgrade-withdraw-to-current": func() (*workv1.ManifestWork, error) {
			current := clusterstate.Release{Version: "4.20.5", Image: "quay.io/openshift-release-dev/ocp-release@sha256:5"}
			return UpgradeWork(testRun(allReleaseFields), testUpgrade(), FormWithdraw, delivered, current)
		},
		"upgradeconfig": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(allReleaseFields), testUpgrade(withUpgradeConfig), FormApply, delivered, clusterstate.Release{})
		},
		"upgradeconfig-read-only": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(), testUpgrade(withUpgradeConfig), FormReadOnly, delivered, clusterstate.Release{})
		},
		"upgradeconfig-withdraw": func() (*workv1.ManifestWork, error) {
			return UpgradeWork(testRun(), testUpgrade(withUpgradeConfig), FormWithdraw, delivered, clusterstate.Release{})
		},
		"preflight": func() (*workv1.ManifestWork, error) { return PreflightWork(testRun()) },
		"operators": func() (*workv1.ManifestWork, error) {
			return OperatorsWork(testRun(), testUpgrade(withOperators), hubImage, everywhere)
		},
		"operators-read-only": func() (*workv1.ManifestWork, error) {
			return OperatorsPreflightWork(testRun(), testUpgrade(withOperators))
		},
		"operators-everywhere": func() (*workv1.ManifestWork, error) { return adapted(false) },
		"operators-complete":   func() (*workv1.ManifestWork, error) { return adapted(true) },
		"action-pre": func() (*workv1.ManifestWork, error) {
			return ActionWork(testRun(), testUpgrade(withActions), PreUpgrade)
		},
		"action-post": func() (*workv1.ManifestWork, error) {
			return ActionWork(testRun(), testUpgrade(withActions), PostUpgrade)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work, err := build()
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, printed(t, work))
			again, err := build()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(work, again); diff != "" {
				t.Errorf("built again (-first +second):\n%s", diff)
			}
		})
	}
}

// printed returns a work as YAML, without its empty status.
func printed(t *testing.T, work *workv1.ManifestWork) string {
	t.Helper()
	data, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	printed, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".yaml")
	if *golden.Update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; renew it with hack/update-texts.sh (-want +got):\n%s", file, diff)
	}
}

func TestWorks_without_content(t *testing.T) {
	t.Parallel()
	operatorsOnly := testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.ClusterVersion = nil })
	if work, err := UpgradeWork(operatorsOnly, testUpgrade(), FormApply, delivered, clusterstate.Release{}); err == nil {
		t.Errorf("upgrade without a release: %v", work)
	}
	if work, err := PreflightWork(operatorsOnly); err == nil {
		t.Errorf("preflight without a release: %v", work)
	}
	for _, action := range []Action{PreUpgrade, PostUpgrade} {
		if work, err := ActionWork(testRun(), testUpgrade(), action); work != nil || err != nil {
			t.Errorf("no action: %v, %v", work, err)
		}
	}
	invalid := testUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
		withActions(spec)
		spec.PreUpgradeAction.ManifestWork.Workload.Manifests[1].Raw = []byte("no object")
	})
	if work, err := ActionWork(testRun(), invalid, PreUpgrade); err == nil {
		t.Errorf("action that cannot be decoded: %v", work)
	}
	if target := TargetOf(operatorsOnly); target.Version != "" || target.Image != "" {
		t.Errorf("target %v, want none", target)
	}
}

// An empty list would approve every operator.
func TestOperatorsWork_approves_nothing_by_mistake(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operators *fleetv1beta1.OCPOperators
		want      []string // INCLUDELIST and EXCLUDELIST
	}{
		"none":              {},
		"empty":             {operators: &fleetv1beta1.OCPOperators{}},
		"only exclude":      {operators: &fleetv1beta1.OCPOperators{Exclude: []fleetv1beta1.OperatorReference{{Name: "a", Namespace: "b"}}}},
		"all":               {&fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}, []string{"", ""}},
		"all but one":       {&fleetv1beta1.OCPOperators{ApproveAllUpgrades: true, Exclude: []fleetv1beta1.OperatorReference{{Name: "a", Namespace: "b"}}}, []string{"", "a,b"}},
		"all, with include": {&fleetv1beta1.OCPOperators{ApproveAllUpgrades: true, Include: []fleetv1beta1.OperatorReference{{Name: "a", Namespace: "b"}}}, []string{"", ""}},
		"one":               {&fleetv1beta1.OCPOperators{Include: []fleetv1beta1.OperatorReference{{Name: "a", Namespace: "b"}}}, []string{"a,b", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mcu := testUpgrade(func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) { spec.OCPOperators = tc.operators })
			work, err := OperatorsWork(testRun(), mcu, hubImage, everywhere)
			if tc.want == nil {
				if err == nil {
					t.Errorf("got %s", printed(t, work))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			printed := string(work.Spec.Workload.Manifests[len(work.Spec.Workload.Manifests)-1].Raw)
			for i, env := range []string{"INCLUDELIST", "EXCLUDELIST"} {
				if want := `{"name":"` + env + `","value":"` + tc.want[i] + `"}`; !strings.Contains(printed, want) {
					t.Errorf("want %s in %s", want, printed)
				}
			}
		})
	}
}

// The agent creates a Job once, so another attempt needs another Job.
func TestOperatorsWork_has_a_Job_per_attempt(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, run := range map[string]*fleetv1alpha1.ClusterUpgradeRun{
		"first attempt":    testRun(),
		"second attempt":   testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Attempt = 2 }),
		"another timeout":  testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Timeouts.OperatorsUpgrade = "1h" }),
		"another upgrade":  testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.ManagedClustersUpgrade.UID = "other" }),
		"longest timeout":  testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Timeouts.OperatorsUpgrade = "168h" }),
		"shortest timeout": testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Timeouts.OperatorsUpgrade = "1s" }),
	} {
		work, err := OperatorsWork(run, testUpgrade(withOperators), hubImage, everywhere)
		if err != nil {
			t.Fatal(err)
		}
		job := work.Spec.ManifestConfigs[0].ResourceIdentifier.Name
		if other, exists := seen[job]; exists {
			t.Errorf("%s and %s have the Job %s", name, other, job)
		}
		seen[job] = name
		if !strings.Contains(string(work.Spec.Workload.Manifests[len(work.Spec.Workload.Manifests)-1].Raw), `"name":"`+job+`"`) {
			t.Errorf("%s: the feedback is of %s, the Job is %s", name, job, work.Spec.Workload.Manifests[len(work.Spec.Workload.Manifests)-1].Raw)
		}
	}
	invalid := testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Timeouts.OperatorsUpgrade = "soon" })
	if work, err := OperatorsWork(invalid, testUpgrade(withOperators), hubImage, everywhere); err == nil {
		t.Errorf("invalid timeout: %v", work)
	}
}

func TestActionWork_does_not_change_the_action(t *testing.T) {
	t.Parallel()
	mcu := testUpgrade(withActions)
	work, err := ActionWork(testRun(), mcu, PreUpgrade)
	if err != nil {
		t.Fatal(err)
	}
	work.Spec.ManifestConfigs[0].FeedbackRules[0].Type = "changed"
	work.Spec.ManifestConfigs[1].FeedbackRules[0].Type = "changed"
	work.Spec.Workload.Manifests[0].Raw[0] = '!'
	if diff := cmp.Diff(testUpgrade(withActions), mcu); diff != "" {
		t.Errorf("the ManagedClustersUpgrade (-want +got):\n%s", diff)
	}
}

// A Job has another name in another upgrade, action, or attempt, and all that the user wants of it.
func TestActionWork_names_its_Jobs(t *testing.T) {
	t.Parallel()
	rule := workv1.OrphaningRule{Group: "batch", Resource: "jobs", Namespace: "default", Name: "backup"}
	withOptions := func(spec *fleetv1beta1.ManagedClustersUpgradeSpec) {
		withActions(spec)
		spec.PostUpgradeAction = spec.PreUpgradeAction.DeepCopy()
		spec.PreUpgradeAction.ManifestWork.DeleteOption = &workv1.DeleteOption{
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{rule}},
		}
		spec.PreUpgradeAction.ManifestWork.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier(rule), UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
			ConditionRules: []workv1.ConditionRule{{Condition: workv1.ManifestComplete, Type: workv1.WellKnownConditionsType}},
		}}
	}
	name := func(uid string, attempt int32, action Action) string {
		mcu := testUpgrade(withOptions)
		mcu.UID = types.UID(uid)
		work, err := ActionWork(testRun(func(run *fleetv1alpha1.ClusterUpgradeRun) { run.Spec.Attempt = attempt }), mcu, action)
		if err != nil {
			t.Fatal(err)
		}
		config := &work.Spec.ManifestConfigs[0]
		job := config.ResourceIdentifier.Name
		if !slices.ContainsFunc(work.Spec.Workload.Manifests, func(m workv1.Manifest) bool {
			return strings.Contains(string(m.Raw), `"name":"`+job+`"`) && strings.Contains(string(m.Raw), `"backoffLimit":2`)
		}) {
			t.Errorf("no manifest has the name %s", job)
		}
		if action == PreUpgrade {
			kept := rule
			kept.Name = job
			if option := work.Spec.DeleteOption; !slices.Contains(option.SelectivelyOrphan.OrphaningRules, kept) {
				t.Errorf("the rules %v lack %s", option.SelectivelyOrphan.OrphaningRules, job)
			}
			if config.UpdateStrategy == nil || len(config.ConditionRules) != 1 || len(config.FeedbackRules) == 0 {
				t.Errorf("the configuration of the user is lost: %+v", config)
			}
		}
		return job
	}
	names := map[string]bool{}
	for _, job := range []string{name("a", 1, PreUpgrade), name("a", 2, PreUpgrade), name("a", 1, PostUpgrade), name("b", 1, PreUpgrade)} {
		names[job] = true
	}
	if len(names) != 4 || !names[name("a", 1, PreUpgrade)] {
		t.Errorf("names %v", names)
	}
}

func TestNames_of_the_longest_clusters_are_valid(t *testing.T) {
	t.Parallel()
	cluster := strings.Repeat("c", 63)
	names := []string{UpgradeName(cluster), PreflightName(cluster), OperatorsName(cluster), ActionName(uid, PreUpgrade), ActionName(uid, PostUpgrade), UpgradeConfigName(uid)}
	for _, name := range names {
		// The agent prefixes the name with a hash of 64 digits and a hyphen.
		if problems := validation.IsDNS1123Subdomain(strings.Repeat("a", 65) + name); problems != nil {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if got := ActionName("short", PreUpgrade); got != "mcu-short-pre" {
		t.Errorf("name of a short UID: %s", got)
	}
}

func TestMerge_keeps_the_metadata_of_others(t *testing.T) {
	t.Parallel()
	existing := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: "store-0001-cluster-upgrade", Namespace: "store-0001", ResourceVersion: "7", Generation: 3,
		Finalizers: []string{workv1.ManifestWorkFinalizer}, Labels: map[string]string{"team": "stores"}, Annotations: map[string]string{"note": "kept"},
	}}
	before := existing.DeepCopy()
	desired, err := UpgradeWork(testRun(), testUpgrade(), FormReadOnly, delivered, clusterstate.Release{})
	if err != nil {
		t.Fatal(err)
	}
	got := Merge(existing, desired)
	want := before.DeepCopy()
	want.Labels = map[string]string{"team": "stores", fleetv1beta1.UpgradeLabel: uid}
	want.Annotations = map[string]string{"note": "kept", Annotation: "1/ReadOnly"}
	want.Spec = desired.Spec
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, existing); diff != "" {
		t.Errorf("the existing work changed (-want +got):\n%s", diff)
	}
}

func TestKeepsClusterVersion(t *testing.T) {
	t.Parallel()
	for _, form := range []Form{FormApply, FormReadOnly, FormWithdraw} {
		work, err := UpgradeWork(testRun(), testUpgrade(), form, delivered, clusterstate.Release{})
		if err != nil {
			t.Fatal(err)
		}
		if !KeepsClusterVersion(work) {
			t.Errorf("form %s does not keep the ClusterVersion", form)
		}
	}
	preflight, err := PreflightWork(testRun())
	if err != nil || !KeepsClusterVersion(preflight) {
		t.Errorf("the preflight does not keep the ClusterVersion: %v", err)
	}
	printed := workv1.OrphaningRule{Name: "version", Resource: "ClusterVersion.config.openshift.io"}
	selective := workv1.DeletePropagationPolicyTypeSelectivelyOrphan
	for name, tc := range map[string]struct {
		option    *workv1.DeleteOption
		manifests []workv1.Manifest
		want      bool
	}{
		"no option":            {},
		"foreground":           {option: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}},
		"orphan":               {option: &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}, want: true},
		"no rules":             {option: &workv1.DeleteOption{PropagationPolicy: selective}},
		"empty rules":          {option: &workv1.DeleteOption{PropagationPolicy: selective, SelectivelyOrphan: &workv1.SelectivelyOrphan{}}},
		"rule of the proposal": {option: &workv1.DeleteOption{PropagationPolicy: selective, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{printed}}}},
		"rule":                 {option: orphan(clusterVersionID), want: true},
		"no ClusterVersion":    {manifests: []workv1.Manifest{raw(mapManifest)}, want: true},
		"not decoded":          {manifests: []workv1.Manifest{raw("no object")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := preflight.DeepCopy()
			work.Spec.DeleteOption = tc.option
			if tc.manifests != nil {
				work.Spec.Workload.Manifests = tc.manifests
			}
			if got := KeepsClusterVersion(work); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestKeepClusterVersion keeps what else the user keeps.
func TestKeepClusterVersion(t *testing.T) {
	t.Parallel()
	other := workv1.OrphaningRule{Resource: "configmaps", Namespace: "default", Name: "backup"}
	work := &workv1.ManifestWork{}
	work.Spec.Workload.Manifests = []workv1.Manifest{raw(`{"apiVersion":"config.openshift.io/v1","kind":"ClusterVersion","metadata":{"name":"version"}}`)}
	work.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{other}},
	}
	repaired := KeepClusterVersion(work)
	if !KeepsClusterVersion(repaired) || KeepsClusterVersion(work) {
		t.Errorf("the ClusterVersion is not kept: %+v", repaired.Spec.DeleteOption)
	}
	want := []workv1.OrphaningRule{workv1.OrphaningRule(clusterVersionID), other}
	if diff := cmp.Diff(want, repaired.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
