// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

const (
	definitionsFolder = "../../../deploy/hub/crds"
	samplesFolder     = "testdata/proposal"
)

// The messages of the rules.
const (
	noSelection      = `set placement or clusterSelector to select managed clusters; clusterSelector: {} selects all clusters of the cluster sets that are bound to the namespace`
	nothingToDo      = `set clusterVersion, ocpOperators, or an action: there is nothing to upgrade`
	noRelease        = `needs clusterVersion.version and clusterVersion.channel, from which the UpgradeConfig of each cluster is made`
	needsDryRun      = `needs dryRun: true`
	cancelledStays   = `cancelled cannot be undone: create another ManagedClustersUpgrade`
	attemptFalls     = `cannot fall: raise it to retry the clusters that failed`
	versionOrImage   = `version or image must be set, for example version: 4.20.6`
	invalidChannel   = `must be the name of a channel, for example stable-4.20`
	invalidVersion   = `must be a semantic version without a leading v, for example 4.20.6`
	invalidUpstream  = `must be a URL, for example https://api.openshift.com/api/upgrades_info/v1/graph`
	invalidImage     = `must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits`
	inBoth           = `an operator cannot be both in include and in exclude`
	invalidOperator  = `must be the name of a Subscription, for example openshift-gitops-operator`
	invalidOperators = `must be the name of a namespace, for example openshift-operators`
	invalidHome      = `must be the name of a namespace, for example managed-upgrade-operator`
	invalidDuration  = `must be hours, minutes, and seconds, each with at most 6 digits, for example 1h30m, or 24h for a day`
	durationRange    = `must be longer than 0s and at most 168h, which is 7 days`
	concurrency      = `must be a number from 1 to 1000000, or a percentage from 1% to 100%`
	failures         = `must be a number from 0 to 1000000, or a percentage from 0% to 100%`
	emptyCanaries    = `must not be empty: it would make every cluster a canary; set matchLabels or matchExpressions, or remove canaryClusters`
	invalidSelector  = `each operator of matchExpressions must be In or NotIn with values, or Exists or DoesNotExist without values`
	manifestCount    = `workload.manifests must have 1 to 50 manifests`
	invalidDrain     = `must be a number of minutes from 0 to 525600, which is a year, for example 120`
	started          = `cannot change after the first cluster was admitted: create another ManagedClustersUpgrade for `
	cancelFirst      = `, after cancelling this one if clusters of it are pending`
	runChanged       = `cannot change within an attempt: raise spec.attempt of the ManagedClustersUpgrade to retry the clusters that failed`
	runMoved         = `cannot change`
	invalidOutcome   = `must be Complete or Failed`
)

// testCase is an edited sample, and the rejections by the API server: each a field, a colon, and
// the end of a message.
type testCase struct {
	edits []edit
	want  []string
}

// edit changes one field; a nil value removes it. Numbers in the path are positions in lists.
type edit struct {
	path  string
	value any
}

func (e edit) apply(t *testing.T, object map[string]any) {
	t.Helper()
	crdtest.SetField(t, object, e.path, e.value)
}

const namespace = "fleet"

// samples are the files of the samples that the cases edit, by kind.
var samples = map[string]string{
	"ManagedClustersUpgrade": "managedclustersupgrade.yaml",
	"ClusterUpgradeRun":      "clusterupgraderun.yaml",
}

// sample returns the object of a sample without its status.
func sample(tb testing.TB, kind string) *unstructured.Unstructured {
	tb.Helper()
	object := crdtest.Sample(tb, filepath.Join(samplesFolder, samples[kind]))
	object.SetNamespace(namespace)
	return object
}

// edited returns a sample with edits.
func edited(t *testing.T, kind string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	object := sample(t, kind)
	for _, e := range edits {
		e.apply(t, object.Object)
	}
	return object
}

func many[T any](n int, one func(int) T) []any {
	all := make([]any, n)
	for i := range n {
		all[i] = one(i)
	}
	return all
}

func named(names ...string) []any {
	return many(len(names), func(i int) any { return map[string]any{"name": names[i]} })
}
