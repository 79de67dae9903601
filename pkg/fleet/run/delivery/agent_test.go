// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// agent reports objects as the work agent of Open Cluster Management v1.2.0 does.
type agent struct {
	// rawJSON is the feature gate RawFeedbackJsonString.
	rawJSON bool
}

// work returns a work of generation 3 with one object, which the agent only reads, by the rules.
func (a agent) work(tb testing.TB, manifest string, rules []workv1.FeedbackRule) *workv1.ManifestWork {
	tb.Helper()
	raw, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		tb.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		tb.Fatal(err)
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	kind := object.GroupVersionKind()
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: kind.Group, Resource: strings.ToLower(kind.Kind) + "s", Namespace: object.GetNamespace(), Name: object.GetName()},
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}, FeedbackRules: rules,
	}}
	cluster := spoke.New("c", "4.20.5", at(0))
	cluster.RawJSON = a.rawJSON
	cluster.Put(object)
	work.Status = cluster.Apply(work, at(0))
	return work
}

func condition(name string, generation int64) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionTrue, ObservedGeneration: generation, Reason: "Reason", Message: "the message of " + name}
}

// fail makes a condition report a failure.
func fail(c *metav1.Condition) { c.Status, c.Message = metav1.ConditionFalse, "no rights" }

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
