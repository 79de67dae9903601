// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
)

// Deployment of the former operator. That operator runs on managed clusters and serves the same
// UpgradeConfigs.
const (
	formerNamespace = "openshift-managed-upgrade-operator"
	formerName      = "managed-upgrade-operator"
	// formerLabel is a label of the former operator's pods. This operator's pods do not have it,
	// although they may have the same name and namespace.
	formerLabel = "name"
)

// ReasonOtherOperator is the reason of the Accepted condition and the Event while the former
// operator is running in the cluster.
const ReasonOtherOperator = "OtherOperator"

const formerMessage = "this operator does nothing while Deployment " + formerNamespace + "/" + formerName +
	" runs, which serves the same UpgradeConfigs: remove one of the two operators, see docs/migrate.md"

// formerOperator detects the former operator. If both operators were running, both would start
// upgrades.
type formerOperator struct {
	client     client.Client
	namespace  string   // namespace of this operator
	namespaces []string // namespaces whose UpgradeConfigs this operator reconciles; empty for all namespaces
	clock      clock.PassiveClock
}

// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=managed-upgrade-operator,verbs=get;list;watch

func newFormerOperator(o *manager.Options, restConfig *rest.Config, clk clock.PassiveClock) (formerOperator, error) {
	scheme, err := formerScheme()
	if err != nil {
		return formerOperator{}, err
	}
	c, err := client.New(restConfig, client.Options{Scheme: scheme, Mapper: formerMapper(scheme)})
	if err != nil {
		return formerOperator{}, fmt.Errorf("looking for another operator: %w", err)
	}
	return formerOperator{client: c, namespace: o.Namespace, namespaces: o.Watched(), clock: clk}, nil
}

func formerScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, upgradev1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// formerMapper maps the few kinds without discovery.
func formerMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig"), meta.RESTScopeNamespace)
	return mapper
}

func (f formerOperator) refuse(ctx context.Context) error {
	runs, err := f.runs(ctx)
	if err != nil {
		return fmt.Errorf("looking for another operator: %w", err)
	}
	if !runs {
		return nil
	}
	return f.refusal(ctx)
}

// refusal records that the former operator is running and returns the error with which this
// operator exits.
func (f formerOperator) refusal(ctx context.Context) error {
	if err := f.record(ctx); err != nil {
		return fmt.Errorf("%s (%s)", formerMessage, manager.SingleLine(err))
	}
	return errors.New(formerMessage)
}

// runs reports whether the former operator's Deployment exists and has replicas.
func (f formerOperator) runs(ctx context.Context) (bool, error) {
	var deployment appsv1.Deployment
	err := f.client.Get(ctx, client.ObjectKey{Namespace: formerNamespace, Name: formerName}, &deployment)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return isFormer(&deployment), nil
}

// isFormer reports whether a Deployment with the name of the former operator really is that
// operator and has replicas.
func isFormer(deployment *appsv1.Deployment) bool {
	return deployment.Spec.Template.Labels[formerLabel] == formerName && (deployment.Spec.Replicas == nil || *deployment.Spec.Replicas > 0)
}

// record creates an Event about this operator's Deployment and sets the Accepted condition of the
// UpgradeConfigs. It continues if an UpgradeConfig cannot be written.
func (f formerOperator) record(ctx context.Context) error {
	errs := []error{f.createEvent(ctx)}
	namespaces := f.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		var list upgradev1alpha1.UpgradeConfigList
		if err := f.client.List(ctx, &list, client.InNamespace(namespace)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("listing the UpgradeConfigs: %w", err))
		}
		for i := range list.Items {
			errs = append(errs, f.setCondition(ctx, &list.Items[i]))
		}
	}
	return errors.Join(errs...)
}

// setCondition sets the condition unless it is already set.
func (f formerOperator) setCondition(ctx context.Context, cfg *upgradev1alpha1.UpgradeConfig) error {
	conditions := slices.Clone(cfg.Status.Conditions)
	refused := metav1.Condition{
		Type: history.ConditionAccepted, Status: metav1.ConditionFalse, Reason: ReasonOtherOperator, Message: formerMessage,
	}
	readiness.SetAccepted(&conditions, refused, cfg.Generation, f.clock.Now())
	if slices.Equal(conditions, cfg.Status.Conditions) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": cfg.ResourceVersion}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return err
	}
	if err := f.client.Status().Patch(ctx, cfg, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("setting the condition of UpgradeConfig %s/%s: %w", cfg.Namespace, cfg.Name, err)
	}
	return nil
}

// createEvent creates the Event, unless a previous process has already done so.
func (f formerOperator) createEvent(ctx context.Context) error {
	now := metav1.NewTime(f.clock.Now())
	err := f.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: f.namespace, Name: "managed-upgrade-operator.other-operator"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: f.namespace, Name: "managed-upgrade-operator"},
		Type:           corev1.EventTypeWarning, Reason: ReasonOtherOperator, Message: formerMessage,
		Source: corev1.EventSource{Component: "managed-upgrade-operator"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating an Event: %w", err)
	}
	return nil
}
