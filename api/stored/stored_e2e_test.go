// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stored_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
)

const namespace = "stored"

var server = devtest.APIServer{Namespace: namespace}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, func(ctx context.Context) error { return server.Install(ctx, openshift.Files) }))
}

// now is the time of the conditions.
var now = time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)

// definitions returns the definitions of all kinds.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return definitionsIn(t, "crds", "update-status/crds", "hub/crds")
}

func definitionsIn(t *testing.T, folders ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		files, err := filepath.Glob("../../deploy/" + folder + "/*_*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no definitions in %s (%v)", folder, err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(content, definition); err != nil {
				t.Fatal(err)
			}
			all = append(all, definition)
		}
	}
	return all
}

// hostile returns an object each of whose fields has a value of another type than the schema has.
func hostile(definition *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	version := definition.Spec.Versions[0]
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind})
	object.SetName(map[string]string{"ClusterVersion": "version", "UpdateStatus": "cluster"}[definition.Spec.Names.Kind])
	if object.GetName() == "" {
		object.SetName("hostile")
	}
	if definition.Spec.Scope == apiextensionsv1.NamespaceScoped {
		object.SetNamespace(namespace)
	}
	for _, part := range []string{"spec", "status"} {
		fields := map[string]any{}
		for name, property := range version.Schema.OpenAPIV3Schema.Properties[part].Properties {
			fields[name] = "wrong"
			if property.Type == "string" || property.Type == "" {
				fields[name] = []any{int64(5)}
			}
		}
		object.Object[part] = fields
	}
	return object
}

// withoutSchema returns a definition that accepts everything.
func withoutSchema(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	open := definition.DeepCopy()
	open.Spec.Versions[0].SelectableFields = nil
	open.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", XPreserveUnknownFields: new(true),
	}}
	return open
}

func install(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		t.Fatal(err)
	}
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := server.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// store creates an object as soon as its kind is served, and its status.
func store(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	status := object.Object["status"]
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := server.Create(ctx, object)
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
	if err != nil {
		t.Fatalf("creating %s: %v", object.GetKind(), err)
	}
	object.Object["status"] = status
	if err := server.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, upgradev1alpha1.AddToScheme, maintenancev1beta1.AddToScheme, updatev1beta1.AddToScheme, fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// refuse waits for the informer of a kind, and returns the condition Accepted once the object is refused.
func refuse(t *testing.T, kinds *runtime.Scheme, informers cache.Cache, stored *unstructured.Unstructured) string {
	t.Helper()
	created, err := kinds.New(stored.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	object, ok := created.(manager.Undecodable)
	if !ok {
		t.Fatalf("%T is not decoded leniently", created)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := informers.Get(ctx, client.ObjectKeyFromObject(stored), object); err != nil {
		t.Fatalf("the informer of %s: %v", stored.GetKind(), err)
	}
	object.GetObjectKind().SetGroupVersionKind(stored.GroupVersionKind())
	writer, err := client.New(server.RESTConfig(), client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := manager.RefuseUndecodable(ctrl.LoggerInto(ctx, testr.New(t)), writer, now, object)
	if err != nil {
		t.Fatal(err)
	}
	if !refused {
		return ""
	}
	if err := server.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(stored.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Accepted" && c["status"] == "False" {
			message, _ := c["message"].(string)
			return message
		}
	}
	// A rule that cannot be evaluated for a value of another type rejects all writes.
	var events corev1.EventList
	if err := writer.List(ctx, &events); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if event := &events.Items[i]; event.InvolvedObject.UID == stored.GetUID() && event.Reason == manager.ReasonUndecodable {
			return event.Message
		}
	}
	t.Errorf("%s has neither a condition Accepted=False nor an Event: %v", stored.GetKind(), conditions)
	return ""
}

func startInformers(t *testing.T, kinds *runtime.Scheme) cache.Cache {
	t.Helper()
	informers, err := cache.New(server.RESTConfig(), cache.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = informers.Start(t.Context()) }()
	if !informers.WaitForCacheSync(t.Context()) {
		t.Fatal("the informers do not start")
	}
	return informers
}

// A CustomResourceDefinition that accepted everything leaves objects whose values have any type.
func TestObjectsStoredWithoutSchema(t *testing.T) {
	kinds := scheme(t)
	all := definitions(t)
	var objects []*unstructured.Unstructured
	for _, definition := range all {
		install(t, withoutSchema(definition))
	}
	for _, definition := range all {
		object := hostile(definition)
		store(t, object)
		objects = append(objects, object)
	}
	for _, definition := range all {
		install(t, definition)
	}
	informers := startInformers(t, kinds)
	for i, object := range objects {
		fields := len(all[i].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties)
		message := refuse(t, kinds, informers, object)
		if wantProblem := fields > 0; wantProblem != strings.Contains(message, "spec.") {
			t.Errorf("%s: message is %q", object.GetKind(), message)
		}
		if err := server.Delete(t.Context(), object); err != nil {
			t.Error(err)
		}
	}
}

// Another controller of the group stores the names of matching objects as objects.
func TestObjectsOfAnotherController(t *testing.T) {
	kinds := scheme(t)
	all := definitions(t)
	i := slices.IndexFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return d.Spec.Names.Kind == "UpgradeSuspensionWindow"
	})
	names := apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}}, Required: []string{"name"},
	}}}
	other := all[i].DeepCopy()
	other.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"matchingConfigs": names, "matchingJobs": names},
	}
	install(t, other)
	window := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"start": "2027-12-20T00:00:00Z", "end": "2028-01-03T00:00:00Z", "reason": "holidays", "configSelector": map[string]any{}},
		"status": map[string]any{"matchingConfigs": []any{map[string]any{"name": "c"}}, "matchingJobs": []any{map[string]any{"name": "j"}}},
	}}
	window.SetGroupVersionKind(maintenancev1beta1.GroupVersion.WithKind("UpgradeSuspensionWindow"))
	window.SetNamespace(namespace)
	window.SetName("holidays")
	store(t, window)
	install(t, all[i])
	if message := refuse(t, kinds, startInformers(t, kinds), window); message != "" {
		t.Errorf("the window is refused: %s", message)
	}
	typed := &maintenancev1beta1.UpgradeSuspensionWindow{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(window), window); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(window.Object, typed); err != nil {
		t.Fatal(err)
	}
	updated := typed.DeepCopy()
	updated.Status.MatchingConfigs = []string{"c"}
	content, err := client.MergeFrom(typed).Data(updated)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Status().Patch(t.Context(), window, client.RawPatch(types.MergePatchType, content)); err != nil {
		t.Errorf("writing the status over one of another type: %v", err)
	}
}
