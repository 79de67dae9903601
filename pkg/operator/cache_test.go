// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// kinds returns what the operator caches.
func kinds(t *testing.T, o manager.Options) []manager.Kind {
	t.Helper()
	p, err := newOperator(&o, config.Default(), logr.Discard(), clock.RealClock{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := manager.Kinds(p.binary().Controllers...)
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// A client that may write objects of a cached kind must not be able to fill the memory of the
// operator: annotations alone may have 256 KiB.
func TestCachedObjectsAreSmall(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 250<<10)
	for _, kind := range kinds(t, manager.Options{Namespace: "upgrades"}) {
		t.Run(fmt.Sprintf("%T", kind.Object), func(t *testing.T) {
			t.Parallel()
			if kind.Name != "" && len(kind.Namespaces) > 0 {
				t.Skip("a single object in the operator's namespace")
			}
			object := kind.Object.DeepCopyObject().(client.Object)
			fill(object, big)
			if kind.Transform == nil {
				t.Fatal("it is cached as it is")
			}
			got, err := kind.Transform(object)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > 8<<10 {
				t.Errorf("it is cached with %d bytes: %.200s", len(data), data)
			}
			if got.(client.Object).GetName() != "name" || got.(client.Object).GetResourceVersion() != "1" {
				t.Errorf("it is cached without what identifies it: %.200s", data)
			}
		})
	}
}

// fill writes as much into an object as a stranger could.
func fill(object client.Object, big string) {
	object.SetName("name")
	object.SetResourceVersion("1")
	object.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": big})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: big}})
	switch o := object.(type) {
	case *configv1.ClusterOperator:
		o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorDegraded, Reason: big, Message: big}}
		o.Status.RelatedObjects = []configv1.ObjectReference{{Name: big}}
		o.Status.Extension.Raw = []byte(`"` + big + `"`)
	case *configv1.ClusterVersion:
		o.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorDegraded, Reason: big, Message: big}}
		o.Status.History = []configv1.UpdateHistory{{AcceptedRisks: big}}
	case *mcfgv1.MachineConfigPool:
		o.Spec.Configuration.Source = []corev1.ObjectReference{{Name: big}}
		o.Status.Configuration.Source = []corev1.ObjectReference{{Name: big}}
		o.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolDegraded, Reason: big, Message: big}}
	case *corev1.Node:
		o.Status.Images = []corev1.ContainerImage{{Names: []string{big}}}
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Reason: big, Message: big}}
	}
}

// A check that reads a kind which is not cached would fail, and one whose kind causes no reconcile would
// be answered late.
func TestKindsThatChecksReadAreWatched(t *testing.T) {
	t.Parallel()
	for _, object := range checks.Reads() {
		declared := slices.ContainsFunc((&upgradeconfig.Reconciler{}).Controller().Reads, func(k manager.Kind) bool {
			return reflect.TypeOf(k.Object) == reflect.TypeOf(object) && k.Requests != nil
		})
		if !declared {
			t.Errorf("a check reads %T, which controller upgradeconfig does not declare with requests", object)
		}
	}
}

func TestOnlyTheWatchedNamespacesAreCached(t *testing.T) {
	t.Parallel()
	for watch, want := range map[string]string{"": "[upgrades]", "a,b": "[a b]", "*": "[]"} {
		o := manager.Options{Namespace: "upgrades"}
		if watch != "" {
			o.WatchNamespaces = strings.Split(watch, ",")
		}
		for _, kind := range kinds(t, o) {
			if fmt.Sprintf("%T", kind.Object) == "*v1alpha1.UpgradeConfig" && fmt.Sprint(kind.Namespaces) != want {
				t.Errorf("--watch-namespaces=%s: UpgradeConfigs of %v are cached, want those of %s", watch, kind.Namespaces, want)
			}
		}
	}
}
