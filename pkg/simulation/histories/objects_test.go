// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/clusterupgraderun"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/managedclustersupgrade"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/statuscontroller"
)

var objects = flag.Int("objects", 150, "the number of objects of strangers that TestObjects has the programs reconcile")

const (
	batchSize = 100              // objects per cluster
	soon      = 10 * time.Second // time in which a healthy object must be reconciled
	hang      = 5 * time.Minute  // in real time; a cluster takes a few seconds
)

// generators returns a generator for specs, with mostly valid strings, and a generator for
// statuses.
func generators(seed uint64) (spec, status *crdtest.Generator) {
	instants := map[string]string{"reason": "reason", "version": "version", "type": "reason"}
	for _, field := range []string{
		"upgradeAt", "requestTime", "startTime", "commenceTime", "completeTime", "workerStartTime", "workerCompleteTime", "notifiedTime",
		"nextTime", "lastProbeTime", "lastTransitionTime", "reasonTime", "progressTime", "releaseAfter", "time", "handledUntil", "since",
	} {
		instants[field] = "instant"
	}
	random := rand.New(rand.NewPCG(seed, 27))
	return &crdtest.Generator{
			Rand: random,
			Kinds: map[string]string{
				"pinVersionWindow": "duration", "maxUpgradeStartDelay": "duration", "upgradeTimeout": "duration", "timeout": "duration", "forceDrainAfter": "duration",
				"startAfter": "time", "startBefore": "late", "start": "time", "end": "late", "from": "time", "upgradeAt": "time",
				"cron": "cron", "isoWeek": "isoWeek", "location": "location", "version": "version", "image": "image", "channel": "channel", "operator": "operator",
				"reason": "reason", "alertname": "alert",
				"clusterUpgradeTimeout": "duration", "operatorsUpgradeTimeout": "duration", "minSuccessTime": "duration", "applyTimeout": "duration",
				"actionTimeout": "duration", "failingTimeout": "duration", "stallTimeout": "duration", "maxConcurrency": "scale", "maxFailures": "scale",
				"upstream": "upstream", "targetRelease": "version", "admissionTime": "time", "clusterUpgrade": "duration",
				"operatorsUpgrade": "duration", "apply": "duration", "action": "duration", "failing": "duration", "stall": "duration", "soak": "duration",
			},
			Required: []string{"placement", "workload", "manifests"},
			Seldom:   []string{"claimsOnly", "manifestConfigs", "executor", "upgradeConfig", "decisionStrategy", "outcome"},
			Parts: map[string]func(*crdtest.Generator) any{
				"matchExpressions": func(*crdtest.Generator) any {
					return map[string]any{"key": "region", "operator": "In", "values": []any{"eu"}}
				},
				"delayUpgrade": func(g *crdtest.Generator) any {
					return map[string]any{"delayMin": g.Text("duration"), "delayMax": g.Text("duration")}
				},
			},
		}, &crdtest.Generator{
			Rand: random, Kinds: instants, Seldom: []string{"previousAttempts", "items"}, Required: []string{"history"},
		}
}

// subject is a program whose objects are created by other clients.
type subject struct {
	name   string
	folder string // folder of its CustomResourceDefinitions
	share  int    // share of the objects, in percent
	// names are the names of singleton objects by kind. namespaces are the namespaces of kinds outside
	// the operator's namespace.
	names, namespaces map[string]string
	// annotations and finalizers are the ones that the program reads and sets.
	annotations, finalizers []string
	// healthy contains objects without problems, one per document.
	healthy []string
	// begin prepares a cluster and returns it with the program.
	begin func(*testing.T) (*simulation.World, *simulation.Program)
}

// subjects returns all programs.
func subjects() []subject {
	return []subject{{
		name: "operator", folder: "../../../deploy/crds", share: 60, names: map[string]string{"ClusterVersion": "version"},
		annotations: []string{
			maintenancev1beta1.RetryAnnotation, maintenancev1beta1.AcknowledgedAnnotation, maintenancev1beta1.RunNowAnnotation, upgradev1alpha1.HoldAnnotation,
			"upgrade.managed.openshift.io/type", "upgrade.managed.openshift.io/requested",
		},
		finalizers: []string{upgradev1alpha1.Finalizer, maintenancev1beta1.Finalizer}, healthy: healthyObjects, begin: beginOperator,
	}, {
		name: "hub", folder: "../../../deploy/hub/crds", share: 20, namespaces: map[string]string{"ClusterUpgradeRun": "c1", "ManagedClustersUpgrade": fleetNamespace},
		annotations: []string{fleetv1beta1.ForgetFailureAnnotation, fleetv1beta1.ContinueWithoutCanaryAnnotation, upgradev1alpha1.HoldAnnotation},
		finalizers:  []string{fleetv1beta1.Finalizer, fleetv1alpha1.Finalizer, fleetv1alpha1.WorksFinalizer}, healthy: healthyFleets, begin: beginHub,
	}, {
		name: "update-status-controller", folder: "../../../deploy/update-status/crds", share: 20, names: map[string]string{"UpdateStatus": updatev1beta1.UpdateStatusName},
		annotations: []string{
			updatev1beta1.InjectCAAnnotation, updatev1beta1.RefreshAnnotation, updatev1beta1.RefreshInformersAnnotation,
			updatev1beta1.KeepAnnotation, updatev1beta1.BypassAnnotation, updatev1beta1.AcknowledgedAnnotation,
		},
		healthy: healthyUpdates, begin: beginStatus,
	}}
}

// beginOperator prepares an OpenShift cluster with the operator.
func beginOperator(t *testing.T) (*simulation.World, *simulation.Program) {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	world := simulation.New(simulation.WorldOptions{Definitions: definitions})
	cluster, err := openshift.New(world, openshiftsim.ClusterSpec{Version: installed, Channel: channel, Masters: 1, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	newWebhook := func(simulation.Env) notify.AsyncPublisher { return nil }
	return world, wholeOperator(cluster, config.Default(), newWebhook, prometheus.NewRegistry)
}

// beginHub prepares a hub with two clusters.
func beginHub(t *testing.T) (*simulation.World, *simulation.Program) {
	t.Helper()
	definitions, err := hubDefinitions()
	if err != nil {
		t.Fatal(err)
	}
	world := simulation.New(simulation.WorldOptions{Definitions: definitions, MaxBurst: 2000})
	for _, name := range []string{"c1", "c2"} {
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{fleetLabel: "stores"}}}
		cluster.Spec.HubAcceptsClient = true
		if err := world.Add(cluster); err != nil {
			t.Fatal(err)
		}
	}
	controllers := func(env simulation.Env) ([]manager.Controller, error) {
		upgrades := &managedclustersupgrade.Reconciler{Clock: env.Clock, Image: hubImage}
		runs := &clusterupgraderun.Reconciler{Clock: env.Clock, Namespace: Namespace, Image: hubImage}
		return []manager.Controller{upgrades.Controller(), runs.Controller()}, nil
	}
	return world, &simulation.Program{Name: hubActor, Latency: 5 * time.Millisecond, Controllers: controllers}
}

// beginStatus prepares an OpenShift cluster with the Update Status Controller.
func beginStatus(t *testing.T) (*simulation.World, *simulation.Program) {
	t.Helper()
	definitions, err := simulation.Definitions(os.DirFS("../../../deploy/update-status/crds"))
	if err != nil {
		t.Fatal(err)
	}
	world := simulation.New(simulation.WorldOptions{Definitions: definitions, MaxBurst: 2000})
	script, err := openshift.NewScript(world, installed, channel, "4.20.6")
	if err != nil {
		t.Fatal(err)
	}
	script.AssignNodes(installed)
	const name = "update-status-controller"
	if err := world.Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}); err != nil {
		t.Fatal(err)
	}
	controllers := func(env simulation.Env) ([]manager.Controller, error) {
		o := statuscontroller.Options{ServiceAccount: name}
		o.Namespace = Namespace
		return statuscontroller.NewControllers(o, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, nil)
	}
	return world, &simulation.Program{Name: name, Latency: 5 * time.Millisecond, Controllers: controllers}
}

// strangers generates objects for the kinds of a program in one cluster.
type strangers struct {
	subject
	t            *testing.T
	user         client.Client
	now          time.Time
	spec, status *crdtest.Generator
	accepted     map[string]int // by kind
}

// create creates an object of a kind with metadata and a status from another client. It reports
// whether the API server accepts it.
func (s *strangers) create(definition *apiextensionsv1.CustomResourceDefinition, n int) bool {
	s.t.Helper()
	kind, version := definition.Spec.Names.Kind, definition.Spec.Versions[0]
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": definition.Spec.Group + "/" + version.Name, "kind": kind}}
	object.SetName(cmp.Or(s.names[kind], fmt.Sprintf("stranger-%d", n)))
	if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
		object.SetNamespace(cmp.Or(s.namespaces[kind], Namespace))
	}
	schema := version.Schema.OpenAPIV3Schema.Properties["spec"]
	object.Object["spec"] = clean(s.t, s.spec.Value("spec", &schema))
	if spec, ok := object.Object["spec"].(map[string]any); ok && s.spec.IntN(2) == 0 { // make it due
		for field, at := range map[string]time.Time{"upgradeAt": s.now, "startAfter": s.now, "startBefore": s.now.Add(time.Hour)} {
			if _, set := spec[field]; set {
				spec[field] = at.Format(time.RFC3339)
			}
		}
	}
	if release, _, _ := unstructured.NestedString(object.Object, "spec", "targetRelease"); kind == "UpdatePlan" {
		object.SetName("update-plan-" + release) // there is one per release
	}
	s.spec.Metadata(object, s.annotations, s.finalizers)
	if s.spec.IntN(20) > 0 { // encoding the largest objects takes most of the time
		annotations := object.GetAnnotations()
		maps.DeleteFunc(annotations, func(_, value string) bool { return len(value) > 1000 })
		object.SetAnnotations(annotations)
	}
	if s.user.Create(s.t.Context(), object) != nil {
		return false
	}
	s.accepted[definition.Spec.Group+" "+kind]++
	schema = version.Schema.OpenAPIV3Schema.Properties["status"]
	object.Object["status"] = clean(s.t, s.status.Value("status", &schema))
	_ = s.user.Status().Update(s.t.Context(), object) // an invalid status is rejected
	return true
}

// clean returns a value in the form that decoded JSON has.
func clean(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"a","value":` + string(data) + `}`)); err != nil {
		t.Fatal(err)
	}
	return object.Object["value"]
}

// healthyObjects are objects without problems.
var healthyObjects = []string{
	"apiVersion: upgrade.managed.openshift.io/v1alpha1\nkind: UpgradeConfig\nspec: {type: OSD, upgradeAt: '2029-03-02T21:00:00Z', PDBForceDrainTimeout: 60, desired: {version: 4.20.6, channel: stable-4.20}}\n",
	"apiVersion: managedupgrade.appuio.io/v1beta1\nkind: UpgradeConfig\nspec: {schedule: {cron: '0 22 * * 2'}, jobTemplate: {spec: {config: {upgradeTimeout: 12h}}}}\n",
	"apiVersion: managedupgrade.appuio.io/v1beta1\nkind: UpgradeJob\nspec: {startAfter: '2029-03-02T21:00:00Z', startBefore: '2029-03-02T22:00:00Z'}\n",
	"apiVersion: managedupgrade.appuio.io/v1beta1\nkind: UpgradeJobHook\nspec: {events: [Create], selector: {matchLabels: {a: b}}, template: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}\n",
	"apiVersion: managedupgrade.appuio.io/v1beta1\nkind: UpgradeSuspensionWindow\nspec: {start: '2029-12-20T00:00:00Z', end: '2030-01-03T00:00:00Z', configSelector: {}}\n",
}

// healthyFleets and healthyUpdates are objects of the other programs.
var (
	healthyFleets = []string{
		"apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: ManagedClustersUpgrade\nspec: {clusterSelector: {matchLabels: {fleet: stores}}, clusterVersion: {version: 4.20.6, channel: stable-4.20}}\n",
	}
	healthyUpdates = []string{
		"apiVersion: config.openshift.io/v1beta1\nkind: UpdatePlan\nmetadata: {name: update-plan-4.20.8}\nspec: {targetRelease: 4.20.8}\n",
		"apiVersion: config.openshift.io/v1beta1\nkind: UpdateInformer\nspec: {enabled: true, clientConfig: {service: {name: shop, namespace: shop, port: 443}}}\n",
	}
)

// reconcileBatch makes a program reconcile generated objects in one cluster, followed by healthy
// ones.
func reconcileBatch(t *testing.T, of subject, seed uint64, n int) map[string]int {
	t.Helper()
	watchdog := time.AfterFunc(hang, func() {
		panic(fmt.Sprintf("the objects of the %s of seed %d take longer than %s", of.name, seed, hang))
	})
	defer watchdog.Stop()
	world, program := of.begin(t)
	s := strangers{subject: of, t: t, user: world.Client("stranger"), now: world.Now(), accepted: map[string]int{}}
	s.spec, s.status = generators(seed)
	ours := crdtest.Definitions(t, of.folder)
	for i, created := 0, 0; created < n && i < 100*n; i++ {
		if s.create(ours[i%len(ours)], i) {
			created++
		}
	}
	if _, err := world.Start(program); err != nil {
		t.Fatal(err)
	}
	settle(t, seed, world)
	var healthy []*unstructured.Unstructured
	for _, document := range of.healthy {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetName(cmp.Or(object.GetName(), "healthy"))
		if of.name != "update-status-controller" { // its kinds are cluster-scoped
			object.SetNamespace(cmp.Or(of.namespaces[object.GetKind()], Namespace))
		}
		if err := s.user.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		healthy = append(healthy, object)
	}
	settle(t, seed, world)
	for _, object := range healthy {
		if err := s.user.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if _, reconciled := object.Object["status"]; !reconciled {
			t.Errorf("seed %d: %s %s is not reconciled within %s", seed, object.GetAPIVersion(), object.GetKind(), soon)
		}
	}
	if errs := world.Invalid(program.Name); len(errs) > 0 {
		t.Errorf("seed %d: %d writes of the %s are rejected, the first because %v", seed, len(errs), of.name, errs[0])
	}
	return s.accepted
}

func settle(t *testing.T, seed uint64, world *simulation.World) {
	t.Helper()
	if err := world.RunFor(soon); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// Objects that other clients generate from the schemas, with arbitrary finalizers, annotations,
// owners, and statuses, neither crash nor block a program: healthy objects are still reconciled
// within seconds.
func TestObjects(t *testing.T) { //nolint:tparallel // the total follows when all batches have ended
	t.Parallel()
	total, want := map[string]int{}, 0
	var mutex sync.Mutex
	t.Run("cluster", func(t *testing.T) {
		for _, of := range subjects() {
			want += len(crdtest.Definitions(t, of.folder))
			for seed, left := uint64(1), max(*objects*of.share/100, 1); left > 0; seed, left = seed+1, left-batchSize {
				t.Run(of.name+"/"+strconv.FormatUint(seed, 10), func(t *testing.T) {
					t.Parallel()
					accepted := reconcileBatch(t, of, seed, min(left, batchSize))
					mutex.Lock()
					defer mutex.Unlock()
					for kind, n := range accepted {
						total[kind] += n
					}
				})
			}
		}
	})
	t.Logf("objects by kind: %v", total)
	if kinds := slices.Sorted(maps.Keys(total)); len(kinds) != want {
		t.Errorf("objects of %v only are accepted", kinds)
	}
}
