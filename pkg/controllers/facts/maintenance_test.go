// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

func TestStripMaintenance(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	job := &v1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: "upgrades", Name: "job", UID: "uid", ResourceVersion: "7", Generation: 2,
		Labels:      map[string]string{"upgrade-config": "cluster-upgrade", "zz": long},
		Annotations: map[string]string{"other": long, v1beta1.RetryAnnotation: long, v1beta1.AcknowledgedAnnotation: "monday"},
		Finalizers:  []string{"example.com/other", v1beta1.Finalizer},
		OwnerReferences: []metav1.OwnerReference{
			{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "controller", Controller: new(true)},
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	token := maintenance.RequestToken(job, v1beta1.RetryAnnotation)
	for _, pass := range []string{"first", "second"} { // a transform may be applied again
		if _, err := StripMaintenance(job); err != nil {
			t.Fatal(err)
		}
		want := metav1.ObjectMeta{
			Namespace: "upgrades", Name: "job", UID: "uid", ResourceVersion: "7", Generation: 2,
			Labels:          map[string]string{"upgrade-config": "cluster-upgrade"},
			Annotations:     map[string]string{v1beta1.RetryAnnotation: token, v1beta1.AcknowledgedAnnotation: "monday"},
			Finalizers:      []string{v1beta1.Finalizer},
			OwnerReferences: []metav1.OwnerReference{{Name: "controller", Controller: new(true)}, {Name: "a"}, {Name: "b"}, {Name: "c"}},
		}
		if diff := cmp.Diff(want, job.ObjectMeta); diff != "" {
			t.Errorf("metadata after the %s pass (-want +got):\n%s", pass, diff)
		}
	}
	if got := maintenance.RequestToken(job, v1beta1.RetryAnnotation); got != token || len(token) != 64 {
		t.Errorf("the token is %q after caching, want %q", got, token)
	}
}
