// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stored_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// openShiftVersion is the ClusterVersion of the cluster.
const openShiftVersion = `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: bc75be34-e92d-4745-bb9d-8ec39e877854, channel: stable-4.20}
status:
  observedGeneration: 1
  versionHash: a
  desired: {version: 4.20.5, image: "example.com/release@sha256:1234"}
  availableUpdates: []
  history: [{state: Completed, version: 4.20.5, image: "example.com/release@sha256:1234", verified: true, startedTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T01:00:00Z"}]
  conditions: [{type: Available, status: "True", lastTransitionTime: "2026-01-01T01:00:00Z"}, {type: Progressing, status: "False", lastTransitionTime: "2026-01-01T01:00:00Z"}]
`

// nightPool is the pool that the objects delay.
const nightPool = `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: night, labels: {name: night}}
spec: {}
status: {machineCount: 1, updatedMachineCount: 1, readyMachineCount: 1}
`

// healthyObjects are objects as other controllers of the group spell and store them, and which mean the same
// to the operator.
var healthyObjects = []string{`
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
spec: {type: OSD, upgradeAt: "2099-03-02T21:00:00Z", PDBForceDrainTimeout: 60, desired: {version: 4.20.6, channel: stable-4.20}}
`, `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeConfig
spec:
  schedule: {cron: "0 22 * * 2", location: Europe/Zurich, suspend: false}
  maxSchedulingDelay: 2h
  pinVersionWindow: 4h0m0s
  maxUpgradeStartDelay: 1h
  jobTemplate:
    metadata: {labels: {upgrade-config: healthy}}
    spec:
      config:
        upgradeTimeout: 12h
        machineConfigPools: [{matchLabels: {matchLabels: {name: night}}, delayUpgrade: {delayMin: 1h, delayMax: 2h}}]
status: {conditions: [], lastScheduledUpgrade: "2026-01-01T00:00:00Z", nextPossibleSchedules: [{time: "2027-01-05T21:00:00Z"}]}
`, `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJob
spec:
  startAfter: "2099-03-02T21:00:00Z"
  startBefore: "2099-03-02T22:00:00Z"
  desiredVersion: {version: 4.20.6, image: "example.com/release@sha256:5678"}
  config: {upgradeTimeout: 12h, machineConfigPools: [{matchLabels: {matchLabels: {name: night}}, delayUpgrade: {delayMin: 1h, delayMax: 2h}}]}
status: {hookJobTracker: [{hookEvent: Create, status: active}], conditions: [{type: Started, status: "True", reason: a, message: b, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`, `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJobHook
spec:
  events: [Create]
  run: All
  failurePolicy: Ignore
  disruptive: true
  selector: {matchLabels: {upgrade-config: other}}
  template: {metadata: {creationTimestamp: null}, spec: {template: {metadata: {creationTimestamp: null}, spec: {containers: [{name: a, image: b}]}}}}
status: {lastUpgradeJob: {name: a}}
`, `
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeSuspensionWindow
spec: {start: "2099-12-20T00:00:00Z", end: "2100-01-03T00:00:00Z", reason: holidays, configSelector: {}}
status: {matchingConfigs: [{name: healthy}], matchingJobs: [{name: healthy}]}
`}

func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func register(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
	return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}}, nil
}

// runOperator runs the whole operator until the test ends, and returns the URL of its readiness probe.
func runOperator(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	config := "apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: OperatorConfig\nalerts: {url: \"\"}\nalertmanager: {url: \"\"}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	options := manager.Options{Namespace: namespace, ConfigFile: file, MetricsBind: "0", HealthBind: address, LogLevel: "info", LogFormat: "json"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, options, server.RESTConfig(), logr.Discard(), clock.RealClock{}, register)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + address + "/readyz"
}

// eventually polls until a function returns an empty text, and fails with the last one.
func eventually(t *testing.T, missing func(ctx context.Context) string) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = missing(ctx)
		return last == "", nil
	})
	if err != nil {
		t.Error(last)
	}
}

// accepted returns the status and the reason of the condition Accepted.
func accepted(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Accepted" {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

// The operator becomes ready beside objects that were stored by other definitions. It says what is wrong
// with those that it cannot read, and reconciles all others.
func TestOperatorBesideForeignObjects(t *testing.T) {
	ours := definitionsIn(t, "crds")
	for _, definition := range ours {
		install(t, withoutSchema(definition))
	}
	store(t, parse(t, openShiftVersion))
	store(t, parse(t, nightPool))
	var odd, healthy []*unstructured.Unstructured
	for _, definition := range ours {
		odd = append(odd, hostile(definition))
	}
	for _, document := range healthyObjects {
		object := parse(t, document)
		object.SetNamespace(namespace)
		object.SetName("healthy")
		healthy = append(healthy, object)
	}
	for _, object := range slices.Concat(odd, healthy) {
		store(t, object)
		t.Cleanup(func() {
			_ = server.Patch(context.Background(), object.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
			_ = server.Delete(context.Background(), object)
		})
	}
	for _, definition := range ours {
		install(t, definition)
	}

	readyz := runOperator(t)
	eventually(t, func(ctx context.Context) string {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, readyz, nil)
		if err != nil {
			return err.Error()
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return "the operator is not ready: " + response.Status
		}
		return ""
	})
	for _, object := range healthy {
		eventually(t, func(ctx context.Context) string {
			if err := server.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			if object.GetKind() == "UpgradeSuspensionWindow" {
				if names, _, err := unstructured.NestedStringSlice(object.Object, "status", "matchingConfigs"); err != nil || !slices.Contains(names, "healthy") {
					return fmt.Sprintf("%s: %v, %v", object.GetKind(), object.Object["status"], err)
				}
				return ""
			}
			if accepted(object) != "True Valid" {
				return fmt.Sprintf("%s %s: %v", object.GetAPIVersion(), object.GetKind(), object.Object["status"])
			}
			return ""
		})
	}
	typed, err := client.New(server.RESTConfig(), client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range odd {
		eventually(t, func(ctx context.Context) string {
			var events corev1.EventList
			if err := typed.List(ctx, &events, client.InNamespace(namespace)); err != nil {
				return err.Error()
			}
			if err := server.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err.Error()
			}
			told := slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
				return e.InvolvedObject.UID == object.GetUID() && e.Reason == manager.ReasonUndecodable
			})
			if !told && accepted(object) != "False "+manager.ReasonUndecodable {
				return fmt.Sprintf("%s %s is not refused: %v", object.GetAPIVersion(), object.GetKind(), object.Object["status"])
			}
			return ""
		})
	}
	for _, definition := range ours {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("apiextensions.k8s.io/v1")
		object.SetKind("CustomResourceDefinition")
		if err := server.Get(t.Context(), client.ObjectKey{Name: definition.Name}, object); err != nil {
			t.Fatal(err)
		}
		if stored, _, _ := unstructured.NestedStringSlice(object.Object, "status", "storedVersions"); !slices.Equal(stored, []string{definition.Spec.Versions[0].Name}) {
			t.Errorf("%s is stored as %v", definition.Name, stored)
		}
	}
}
