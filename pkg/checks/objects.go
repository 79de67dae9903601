// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func findObjects(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, failing := range in.FailingObjects {
		f := newFinding(failing.reason, objectSummaries[failing.reason], failing.object)
		f.Description = text.Excerpt(failing.Expr)
		f.Remedy = "Repair the object, or change the health check."
		found = append(found, f)
	}
	return found
}

// Reasons of findings about objects.
const (
	reasonObjectCondition = "ObjectConditionFalse"
	reasonObjectMissing   = "ObjectMissing"
	reasonNoObject        = "NoObjectSelected"
)

var objectSummaries = map[string]string{
	reasonObjectCondition: "objects whose condition is false",
	reasonObjectMissing:   "objects that do not exist",
	reasonNoObject:        "kinds of which no object is selected",
}

// ObjectCheck is a condition that objects of a kind must satisfy.
type ObjectCheck struct {
	APIVersion string
	Kind       string
	// Namespace limits the check to a namespace. It is empty for all namespaces and for cluster-scoped kinds.
	Namespace string
	// Name selects one object. Selector selects all objects with matching labels.
	Name     string
	Selector *metav1.LabelSelector
	// Expr is an expression that must be true for the object.
	Expr string
}

// FailingObject is an object that fails its condition, or a check that selects no object.
type FailingObject struct {
	ObjectCheck

	object Resource
	reason string
}

// Conditions evaluates expressions about objects.
type Conditions interface {
	// Compile returns an error if an expression is invalid.
	Compile(expression string) error
	// Holds reports whether an expression is true for an object.
	Holds(ctx context.Context, expression string, object map[string]any) (bool, error)
}

// Validate returns the first invalid field of a check and the error, or nil if the check is valid.
func (o ObjectCheck) Validate(conditions Conditions) (string, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	switch {
	case err != nil || gv.Version == "":
		return "apiVersion", errors.New("must be a group and a version, for example apps/v1")
	case o.Kind == "":
		return "kind", errors.New("must not be empty")
	case gv.Group == "" && o.Kind == "Secret":
		return "kind", errors.New("conditions on Secrets are not evaluated: the result would tell who may not read them what they hold")
	case (o.Name == "") == (o.Selector == nil):
		return "name", errors.New("either name or selector is required")
	}
	if _, err := metav1.LabelSelectorAsSelector(o.Selector); err != nil {
		return "selector", err
	}
	if conditions == nil {
		return "expr", errNoConditions
	}
	if err := conditions.Compile(o.Expr); err != nil {
		return "expr", err
	}
	return "", nil
}

var errNoConditions = errors.New("conditions on objects cannot be evaluated here")

// Limits on the objects that one check reads.
const (
	objectsPage = 50
	maxObjects  = 500
)

// failing reads the objects of a check and returns those that fail it.
func (o ObjectCheck) failing(ctx context.Context, live client.Reader, conditions Conditions) ([]FailingObject, error) {
	if field, err := o.Validate(conditions); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	if o.Name != "" {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		err := live.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Name}, object)
		if apierrors.IsNotFound(err) {
			return []FailingObject{o.fails(reasonObjectMissing, o.Namespace, o.Name)}, nil
		}
		if err != nil {
			return nil, readError("get", err)
		}
		return o.judge(ctx, conditions, nil, object)
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Selector)
	if err != nil {
		return nil, err
	}
	var failing []FailingObject
	read := 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(o.Kind + "List"))
	err = clusterstate.EachItem(ctx, live, list, objectsPage, func(object *unstructured.Unstructured) (err error) {
		if read++; read > maxObjects {
			return fmt.Errorf("more than %d objects are selected", maxObjects)
		}
		failing, err = o.judge(ctx, conditions, failing, object)
		return err
	}, &client.ListOptions{Namespace: o.Namespace, LabelSelector: selector})
	if err != nil {
		return nil, readError("list", err)
	}
	if read == 0 {
		return []FailingObject{o.fails(reasonNoObject, o.Namespace, o.Kind)}, nil
	}
	return failing, nil
}

// judge appends the object if its condition is false.
func (o ObjectCheck) judge(ctx context.Context, conditions Conditions, failing []FailingObject, object *unstructured.Unstructured) ([]FailingObject, error) {
	holds, err := conditions.Holds(ctx, o.Expr, object.Object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Resource{Namespace: object.GetNamespace(), Name: object.GetName()}, err)
	}
	if !holds {
		failing = append(failing, o.fails(reasonObjectCondition, object.GetNamespace(), object.GetName()))
	}
	return failing, nil
}

func (o ObjectCheck) fails(reason, namespace, name string) FailingObject {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
	return FailingObject{ObjectCheck: o, reason: reason, object: Resource{Group: gvk.Group, Kind: o.Kind, Namespace: namespace, Name: name}}
}

// readError explains how to grant a permission that the operator lacks.
func readError(verb string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("the operator lacks the right to %s them: bind a ClusterRole with that right to its ServiceAccount: %w", verb, err)
	}
	return err
}

func (o ObjectCheck) key() string {
	return text.Hash(strings.Join([]string{o.APIVersion, o.Kind, o.Namespace, o.Name, metav1.FormatLabelSelector(o.Selector), o.Expr}, "\x00"), 32)
}

// readObjects reads the objects of the checks at most once per interval.
func readObjects(ctx context.Context, g *gathering) error {
	return eachQuery(g.facts.Options.Objects, func(o ObjectCheck) error {
		var failing []FailingObject
		err := errNoConditions
		if g.Sources != nil && g.Live != nil {
			failing, err = ask(ctx, g, query{queryObjects, o.key()}, func(failing []FailingObject) bool { return len(failing) > 0 },
				func(ctx context.Context) ([]FailingObject, error) {
					return o.failing(ctx, g.Live, g.Sources.Conditions)
				})
		}
		if err != nil {
			return fmt.Errorf("objects of kind %s: %w", text.Excerpt(o.Kind+" of "+o.APIVersion), err)
		}
		g.facts.FailingObjects = append(g.facts.FailingObjects, failing...)
		return nil
	})
}

func findQueries(in Facts, _ RulePhase) []Finding {
	var found []Finding
	for _, expression := range in.QueriesWithSamples {
		f := newFinding("QueryHasSamples", "custom queries with samples")
		f.Key, f.Description = expression, text.Excerpt(expression)
		found = append(found, f)
	}
	return found
}
