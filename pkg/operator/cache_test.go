// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// kinds returns the kinds that the operator caches.
func kinds(t *testing.T, o manager.Options) []manager.Kind {
	t.Helper()
	p, err := newOperator(&o, config.Default(), logr.Discard(), clock.RealClock{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := manager.Kinds(p.binary().Controllers...)
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// TestWithoutMaintenance checks that an operator without scheduled maintenance does not read kinds
// that may not be installed.
func TestWithoutMaintenance(t *testing.T) {
	t.Parallel()
	of := func(o manager.Options) (ours, others int) {
		for _, kind := range kinds(t, o) {
			switch kind.Object.(type) {
			case *maintenancev1beta1.ClusterVersion, *maintenancev1beta1.UpgradeConfig, *maintenancev1beta1.UpgradeJob, *maintenancev1beta1.UpgradeJobHook, *maintenancev1beta1.UpgradeSuspensionWindow:
				ours++
			default:
				others++
			}
		}
		return ours, others
	}
	if ours, _ := of(manager.Options{}); ours == 0 {
		t.Error("no kind of scheduled maintenance is found by default")
	}
	if ours, others := of(manager.Options{WithoutMaintenance: true}); ours > 0 || others == 0 {
		t.Errorf("%d kinds of scheduled maintenance are read, and %d others", ours, others)
	}
}

// maxCachedBytes is the maximum size of a cached object. With 400 objects of this size, the
// operator is still far below the memory limit of its Deployment.
const maxCachedBytes = 64 << 10

// TestCachedObjects_are_small fills every field of the objects of each cached kind with as much
// data as the API server accepts. A client that may write such objects must not be able to exhaust
// the memory of the operator. The specs and statuses of our own kinds are limited by their
// CustomResourceDefinitions.
func TestCachedObjects_are_small(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds(t, manager.Options{Namespace: "upgrades"}) {
		if kind.Name != "" && len(kind.Namespaces) > 0 {
			continue // a single object in the operator's namespace
		}
		switch kind.Object.(type) {
		case *batchv1.Job, *maintenancev1beta1.UpgradeJobHook: // the transforms are in package hooks
			continue
		}
		for name, surplus := range map[string]filler{
			"long texts":   {text: strings.Repeat("x", 250<<10), elements: 2},
			"long lists":   {text: "example.com/x", elements: 5000},
			"long entries": {text: strings.Repeat("x", 300), elements: 500},
		} {
			t.Run(fmt.Sprintf("%T with %s", kind.Object, name), func(t *testing.T) {
				t.Parallel()
				object := kind.Object.DeepCopyObject().(client.Object)
				value := reflect.ValueOf(object).Elem()
				switch object.(type) {
				case *upgradev1alpha1.UpgradeConfig, *configv1.ClusterVersion, // the ClusterVersion is a singleton
					*maintenancev1beta1.UpgradeConfig, *maintenancev1beta1.UpgradeJob, *maintenancev1beta1.UpgradeSuspensionWindow:
					value = value.FieldByName("ObjectMeta")
				}
				surplus.fill(value, 0)
				object.SetName("name")
				object.SetNamespace("")
				object.SetUID("uid")
				object.SetResourceVersion("1")
				object.SetFinalizers(append(object.GetFinalizers(), upgradev1alpha1.Finalizer))
				before, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				if len(before) < 4*maxCachedBytes {
					t.Fatalf("the object has %d bytes only", len(before))
				}
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
				if len(data) > maxCachedBytes {
					t.Errorf("it is cached with %d bytes, want at most %d: %.400s", len(data), maxCachedBytes, data)
				}
				if got.(client.Object).GetName() != "name" || got.(client.Object).GetResourceVersion() != "1" || got.(client.Object).GetUID() != "uid" {
					t.Errorf("it is cached without what identifies it: %.200s", data)
				}
			})
		}
	}
}

// filler fills objects.
type filler struct {
	text     string
	elements int
}

// read maps types to string values that the operator selects by, or to one of the few values that
// the API server accepts.
var read = map[string]string{
	"NodeConditionType": "Ready", "ClusterStatusConditionType": "Degraded", "MachineConfigPoolConditionType": "Degraded",
	"Condition.Type": policyv1.DisruptionAllowedCondition, "Condition.Status": "False", "Condition.Reason": policyv1.SyncFailedReason,
	"Taint.Key": corev1.TaintNodeUnschedulable, "OperandVersion.Name": "operator", "LabelSelectorOperator": "In",
	"TaintEffect": "NoSchedule", "UnhealthyPodEvictionPolicyType": "AlwaysAllow",
}

// fill sets every field of a value. Nested lists get two elements.
func (f filler) fill(v reflect.Value, depth int) {
	elements := f.elements
	if depth > 0 {
		elements = 2
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(cmp.Or(read[v.Type().Name()], f.text))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(`"` + f.text + `"`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), elements, elements))
		for i := range elements {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range elements {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprintf("%s%d", f.text, i))
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() && v.Type().Field(i).Name != "TypeMeta" {
				f.fill(field, depth)
				if text := read[v.Type().Name()+"."+v.Type().Field(i).Name]; text != "" {
					field.SetString(text)
				}
			}
		}
	default: // numbers and booleans are small
	}
}

// TestCachedObjects_keep_what_marks_upgrades fails if a transform drops a field that upgrades
// depend on.
func TestCachedObjects_keep_what_marks_upgrades(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds(t, manager.Options{Namespace: "upgrades"}) {
		object := kind.Object.DeepCopyObject().(client.Object)
		switch object.(type) {
		case *policyv1.PodDisruptionBudget, *maintenancev1beta1.UpgradeJobHook, *batchv1.Job, *updatev1beta1.UpdatePlan,
			*metav1.PartialObjectMetadata: // they have no such fields
			continue
		}
		if kind.Transform == nil {
			continue
		}
		finalizer, annotations := upgradev1alpha1.Finalizer, []string{upgradev1alpha1.HoldAnnotation, nodekeeper.AnnotationDrainFirstSeen}
		switch object.(type) {
		case *upgradev1alpha1.UpgradeConfig:
			annotations = []string{upgradev1alpha1.PauseAnnotation, upgradev1alpha1.RetryAnnotation, upgradev1alpha1.RunNowAnnotation}
		case *maintenancev1beta1.ClusterVersion, *maintenancev1beta1.UpgradeConfig, *maintenancev1beta1.UpgradeJob, *maintenancev1beta1.UpgradeSuspensionWindow:
			finalizer, annotations = maintenancev1beta1.Finalizer, []string{maintenancev1beta1.RunNowAnnotation, maintenancev1beta1.RetryAnnotation, maintenancev1beta1.AcknowledgedAnnotation}
		}
		object.SetFinalizers([]string{"example.com/a", finalizer})
		object.SetAnnotations(map[string]string{"example.com/a": "b"})
		for _, key := range annotations {
			object.GetAnnotations()[key] = strings.Repeat("x", 250<<10)
		}
		got, err := kind.Transform(object)
		if err != nil {
			t.Fatal(err)
		}
		if finalizers := got.(client.Object).GetFinalizers(); !slices.Equal(finalizers, []string{finalizer}) {
			t.Errorf("%T: got the finalizers %q", object, finalizers)
		}
		if keys := slices.Sorted(maps.Keys(got.(client.Object).GetAnnotations())); !slices.Equal(keys, slices.Sorted(slices.Values(annotations))) {
			t.Errorf("%T: got the annotations %q", object, keys)
		}
	}
}

// A check would fail if it read a kind that is not cached, and would be late if changes of the kind
// triggered no reconcile.
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

// Kinds that the steps of custom upgraders watch are cached, and their changes reconcile upgrades.
func TestWatchesOfUpgraders(t *testing.T) {
	t.Parallel()
	o := manager.Options{Namespace: "upgrades"}
	watch := manager.Kind{Object: &corev1.ConfigMap{}, Namespaces: []string{"shop"}, Name: "change-freeze"}
	p, err := newOperator(&o, config.Default(), logr.Discard(), clock.RealClock{}, nil, nil, watch)
	if err != nil {
		t.Fatal(err)
	}
	for _, controller := range p.binary().Controllers {
		declared := slices.ContainsFunc(controller.Reads, func(k manager.Kind) bool {
			_, isConfigMap := k.Object.(*corev1.ConfigMap)
			return isConfigMap && k.Requests != nil && k.Name == watch.Name && slices.Equal(k.Namespaces, watch.Namespaces)
		})
		if declared != (controller.Name == "upgradeconfig" || controller.Name == "upgradejob") {
			t.Errorf("controller %s declares the watch: %t", controller.Name, declared)
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
			if fmt.Sprintf("%T", kind.Object) == "*upgradev1alpha1.UpgradeConfig" && fmt.Sprint(kind.Namespaces) != want {
				t.Errorf("--watch-namespaces=%s: UpgradeConfigs of %v are cached, want those of %s", watch, kind.Namespaces, want)
			}
		}
	}
}
