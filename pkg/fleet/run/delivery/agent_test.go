// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// agent reports objects as the work agent of Open Cluster Management v1.2.0 does.
type agent struct {
	// rawJSON is the feature gate RawFeedbackJsonString.
	rawJSON bool
}

// decode decodes an object, whole numbers as int64.
func decode(tb testing.TB, manifest string) *unstructured.Unstructured {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		tb.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		tb.Fatal(err)
	}
	return object
}

// work returns a work of generation 3 with one object: applied, available, and reported by the
// rules.
func (a agent) work(tb testing.TB, manifest string, rules []workv1.FeedbackRule) *workv1.ManifestWork {
	tb.Helper()
	object := decode(tb, manifest)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	add(tb, work, object, condition(workv1.ManifestApplied, 3), condition(workv1.ManifestAvailable, 0))
	work.Status.Conditions = []metav1.Condition{condition(workv1.WorkApplied, 3), condition(workv1.WorkAvailable, 3)}
	for _, path := range rules[0].JsonPaths {
		value, err := spoke.Evaluate(object.Object, path, a.rawJSON)
		if err != nil {
			tb.Fatal(err)
		}
		if value != nil {
			reported := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks
			reported.Values = append(reported.Values, *value)
		}
	}
	return work
}

// add adds an object to the spec and to the status of a work.
func add(tb testing.TB, work *workv1.ManifestWork, object *unstructured.Unstructured, conditions ...metav1.Condition) {
	tb.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		tb.Fatal(err)
	}
	var m workv1.Manifest
	m.Raw = raw
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, m)
	kind := object.GroupVersionKind()
	work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: resources[kind.Kind],
			Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		Conditions: conditions,
	})
}

var resources = map[string]string{"Job": "jobs", "ConfigMap": "configmaps", "ClusterVersion": "clusterversions", "UpgradeConfig": "upgradeconfigs"}

func condition(name string, generation int64) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionTrue, ObservedGeneration: generation, Reason: "Reason", Message: "the message of " + name}
}

const pullSpec = "quay.io/openshift-release-dev/ocp-release@sha256:%064d"

// entry returns an entry of the history of a ClusterVersion, the image after the last number.
func entry(version, state string, image int) string {
	return fmt.Sprintf("  - {version: %s, state: %s, verified: true, image: %q}\n", version, state, fmt.Sprintf(pullSpec, image))
}

// simulatedVersion returns a ClusterVersion with a history, newest first.
func simulatedVersion(history ...string) string {
	manifest := `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version, generation: 4}
spec: {channel: stable-4.20}
status:
  observedGeneration: 4
  conditions:
  - {type: Available, status: "True", reason: AsExpected, message: Done}
  - {type: Progressing, status: "True", reason: Upgrading, message: "Working towards 4.20.6: 106 of 841 done"}
  - {type: Failing, status: "True", reason: ClusterOperatorDegraded, message: etcd is degraded, lastTransitionTime: "2027-03-02T21:00:00Z"}
  - {type: ReleaseAccepted, status: "False", reason: RetrievePayload, message: no signature, lastTransitionTime: "2027-03-02T21:01:00Z"}
  - {type: Upgradeable, status: "False", reason: AdminAckRequired, message: acknowledge it, lastTransitionTime: "2027-03-02T21:02:00Z"}
  - {type: Invalid, status: "True", reason: InvalidClusterVersion, message: no such release, lastTransitionTime: "2027-03-02T21:03:00Z"}
  availableUpdates:
  - {version: 4.20.5, image: "` + fmt.Sprintf(pullSpec, 5) + `"}
  - {version: 4.20.6, image: "` + fmt.Sprintf(pullSpec, 6) + `"}
  conditionalUpdates:
  - release: {version: 4.20.7, image: "` + fmt.Sprintf(pullSpec, 7) + `"}
    conditions: [{type: Recommended, status: "False", reason: SlowBoot, message: it boots slowly, lastTransitionTime: "2027-03-02T21:04:00Z"}]
`
	if len(history) > 0 {
		manifest += "  history:\n"
	}
	return manifest + strings.Join(history, "")
}
