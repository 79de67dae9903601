// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=updateinformers.config.openshift.io;updateplans.config.openshift.io;updatestatuses.config.openshift.io,verbs=get

// definition identifies one of our CustomResourceDefinitions by a field that only this program adds. A
// definition of the same name from another program lacks the field.
type definition struct {
	name, kind string
	field      []string
}

// definitions lists the CustomResourceDefinitions of the kinds that the program writes.
func definitions() []definition {
	group := "." + updatev1beta1.GroupVersion.Group
	return []definition{
		{"updateinformers" + group, "UpdateInformer", []string{"spec", "clientConfig", "caBundle"}},
		{"updateplans" + group, "UpdatePlan", []string{"status", "counts"}},
		{"updatestatuses" + group, "UpdateStatus", []string{"status", "assessment"}},
	}
}

// definitionsTimeout limits the time to read all definitions.
const definitionsTimeout = 30 * time.Second

// checkDefinitions returns an error if another program's CustomResourceDefinitions are installed, because the
// API server would drop fields that this program writes. A missing definition is not an error: the program
// waits for it.
func checkDefinitions(ctx context.Context, restConfig *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering the CustomResourceDefinitions: %w", err)
	}
	live, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the API server %s: %w", restConfig.Host, err)
	}
	var errs []error
	for _, d := range definitions() {
		var found apiextensionsv1.CustomResourceDefinition
		err := live.Get(ctx, client.ObjectKey{Name: d.name}, &found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("getting CustomResourceDefinition %s: %w", d.name, err)
		default:
			errs = append(errs, d.check(&found))
		}
	}
	return errors.Join(errs...)
}

// check returns an error if a definition is not one of ours.
func (d definition) check(found *apiextensionsv1.CustomResourceDefinition) error {
	foreign := func(reason string) error {
		return fmt.Errorf("CustomResourceDefinition %s is not the one of this program: %s; "+
			"if another program uses it, the two cannot run on one cluster; if it is outdated, apply deploy/update-status/crds", d.name, reason)
	}
	if found.Spec.Names.Kind != d.kind || found.Spec.Scope != apiextensionsv1.ClusterScoped {
		return foreign(fmt.Sprintf("it defines %s, scope %s", found.Spec.Names.Kind, found.Spec.Scope))
	}
	for _, version := range found.Spec.Versions {
		if version.Name != updatev1beta1.GroupVersion.Version || !version.Served {
			continue
		}
		if version.Schema == nil || !hasField(version.Schema.OpenAPIV3Schema, d.field) {
			return foreign(fmt.Sprintf("it has no field %v", d.field))
		}
		return nil
	}
	return foreign("it does not serve version " + updatev1beta1.GroupVersion.Version)
}

// hasField reports whether a schema has a field.
func hasField(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	for _, name := range path {
		if schema == nil {
			return false
		}
		property, found := schema.Properties[name]
		if !found {
			return false
		}
		schema = &property
	}
	return true
}
