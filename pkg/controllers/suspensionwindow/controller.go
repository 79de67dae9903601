// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suspensionwindow shows in the status of UpgradeSuspensionWindows which UpgradeConfigs and
// UpgradeJobs they select. It does not suspend anything itself: packages upgradeschedule and
// steps/window do, with maintenance.SuspendedBy.
package suspensionwindow

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Reasons for not accepting a window.
const (
	reasonInvalidTime     = "InvalidTime"
	reasonInvalidSelector = "InvalidSelector"
)

const (
	// maxMatching limits the number of names in the status.
	maxMatching = 256
	// maxMessage limits the length of a condition message, in bytes.
	maxMessage = 1000
	// retryDelay is the delay before the next pass if the cache is stale.
	retryDelay = time.Second
)

// Reconciler maintains the status of UpgradeSuspensionWindows.
type Reconciler struct {
	// Clock provides the time.
	Clock clock.PassiveClock
	// WatchNamespaces lists the namespaces whose windows are reconciled. Defaults to all.
	WatchNamespaces []string
	// Events publishes Events about invalid windows.
	Events notify.EventPublisher

	client client.Client
	uids   map[client.ObjectKey]string
}

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradesuspensionwindows,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradesuspensionwindows/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs;upgradejobs,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	windows, configs, jobs := facts.UpgradeSuspensionWindows(r.WatchNamespaces), facts.UpgradeConfigs(r.WatchNamespaces), facts.UpgradeJobs(r.WatchNamespaces)
	windows.Requests, configs.Requests, jobs.Requests = manager.Self, r.namespaceRequests, r.namespaceRequests
	configs.Predicates = []predicate.Predicate{predicate.LabelChangedPredicate{}} // only labels affect which windows select an UpgradeConfig
	jobs.Predicates = []predicate.Predicate{predicate.Or(predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: attemptChanged})}
	return manager.Controller{
		Name:        "suspensionwindow",
		AddToScheme: []func(*runtime.Scheme) error{maintenancev1beta1.AddToScheme, corev1.AddToScheme},
		Reads:       []manager.Kind{windows, configs, jobs},
		Bind: func(clients manager.Clients) error {
			r.client, r.uids = clients.Client, map[client.ObjectKey]string{}
			return nil
		},
		Reconciler: r,
	}
}

// nextStart returns the start of an UpgradeJob that a window may suspend; false if the UpgradeJob
// has ended or its times are invalid.
func nextStart(job *maintenancev1beta1.UpgradeJob) (time.Time, bool) {
	if _, ended := maintenance.EndPhase(job); ended {
		return time.Time{}, false
	}
	start, err := maintenance.LatestStart(job)
	return start, err == nil // the UpgradeJob's own status reports the error
}

// attemptChanged reports whether an update of an UpgradeJob changed the start that a window may
// suspend.
func attemptChanged(e event.UpdateEvent) bool {
	before, isJob := e.ObjectOld.(*maintenancev1beta1.UpgradeJob)
	after, isJobStill := e.ObjectNew.(*maintenancev1beta1.UpgradeJob)
	if !isJob || !isJobStill {
		return true
	}
	old, had := nextStart(before)
	start, has := nextStart(after)
	return had != has || !old.Equal(start)
}

// namespaceRequests requests a reconcile of all windows in the namespace of an object.
func (r *Reconciler) namespaceRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	return manager.Requests[*maintenancev1beta1.UpgradeSuspensionWindow](ctx, r.client, &maintenancev1beta1.UpgradeSuspensionWindowList{}, nil, client.InNamespace(obj.GetNamespace()))
}

// Reconcile makes one pass over one window.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	window := &maintenancev1beta1.UpgradeSuspensionWindow{}
	if err := r.client.Get(ctx, req.NamespacedName, window); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting UpgradeSuspensionWindow %s: %w", req, err)
	}
	if uid := r.uids[req.NamespacedName]; uid != "" && uid != string(window.UID) {
		r.Events.Reset(uid)
		delete(r.uids, req.NamespacedName)
	}
	if window.UID == "" || window.DeletionTimestamp != nil { // it was deleted or is being deleted
		return reconcile.Result{}, nil
	}
	r.uids[req.NamespacedName] = string(window.UID)
	if refused, err := manager.RefuseUndecodable(ctx, r.client, r.Clock.Now(), window); refused || err != nil {
		return reconcile.Result{}, err
	}
	status, err := r.observe(ctx, window)
	if err != nil {
		return reconcile.Result{}, err
	}
	if equality.Semantic.DeepEqual(window.Status, *status) {
		return reconcile.Result{}, nil
	}
	updated := window.DeepCopy()
	updated.Status = *status
	err = r.client.Status().Patch(ctx, updated, client.MergeFromWithOptions(window, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of UpgradeSuspensionWindow %s: %w", req, err)
	}
	return reconcile.Result{}, nil
}

// observe returns the new status, and publishes an Event if the window is invalid.
func (r *Reconciler) observe(ctx context.Context, window *maintenancev1beta1.UpgradeSuspensionWindow) (*maintenancev1beta1.UpgradeSuspensionWindowStatus, error) {
	status := window.Status.DeepCopy()
	status.ObservedGeneration = window.Generation
	accepted := metav1.Condition{
		Type: maintenancev1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Valid", Message: "the times and the selectors are valid",
	}
	if reason, problem := validate(window); reason != "" {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, reason, text.Truncate(problem, maxMessage)
		if err := r.publish(ctx, window, reason, problem); err != nil {
			return nil, err
		}
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type != maintenancev1beta1.ConditionAccepted && !readiness.IsOwn(c.Type)
	})
	readiness.SetAccepted(&status.Conditions, accepted, window.Generation, r.Clock.Now())
	var err error
	if status.MatchingConfigs, err = r.matchingConfigs(ctx, window); err != nil {
		return nil, err
	}
	status.MatchingJobs, err = r.matchingJobs(ctx, window)
	return status, err
}

// validate returns a reason and a message if a window is invalid, and empty strings if it is valid.
func validate(window *maintenancev1beta1.UpgradeSuspensionWindow) (reason, message string) {
	if _, _, err := maintenance.WindowTimes(window); err != nil {
		return reasonInvalidTime, err.Error() + "; the window suspends nothing"
	}
	if selector := window.Spec.ConfigSelector; selector != nil {
		if _, err := maintenance.Selector(selector); err != nil {
			return reasonInvalidSelector, fmt.Sprintf("spec.configSelector: %v; until it is corrected, the window suspends all UpgradeConfigs", err)
		}
	}
	if selector := window.Spec.JobSelector; selector != nil {
		if _, err := maintenance.Selector(selector); err != nil {
			return reasonInvalidSelector, fmt.Sprintf("spec.jobSelector: %v; until it is corrected, the window suspends all UpgradeJobs", err)
		}
	}
	return "", ""
}

func (r *Reconciler) publish(ctx context.Context, window *maintenancev1beta1.UpgradeSuspensionWindow, reason, message string) error {
	id := engine.NotificationID(string(window.UID), strconv.FormatInt(window.Generation, 10), reason, "")
	return notify.TryPublish(ctx, r.Events, objects.Reference(window, maintenancev1beta1.GroupVersion.WithKind("UpgradeSuspensionWindow")),
		engine.Notification{ID: id, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
}

// matchingConfigs returns the names of the UpgradeConfigs that a window selects.
func (r *Reconciler) matchingConfigs(ctx context.Context, window *maintenancev1beta1.UpgradeSuspensionWindow) ([]string, error) {
	var configs maintenancev1beta1.UpgradeConfigList
	if err := r.client.List(ctx, &configs, client.InNamespace(window.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the UpgradeConfigs: %w", err)
	}
	var names []string
	for i := range configs.Items {
		if maintenance.Selects(window, configs.Items[i].Labels, maintenance.SelectedConfigs) {
			names = append(names, configs.Items[i].Name)
		}
	}
	return bounded(names), nil
}

// matchingJobs returns the names of the UpgradeJobs that a window selects, that have not ended, and
// whose latest attempt starts in the window.
func (r *Reconciler) matchingJobs(ctx context.Context, window *maintenancev1beta1.UpgradeSuspensionWindow) ([]string, error) {
	var jobs maintenancev1beta1.UpgradeJobList
	if err := r.client.List(ctx, &jobs, client.InNamespace(window.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the UpgradeJobs: %w", err)
	}
	one := []maintenancev1beta1.UpgradeSuspensionWindow{*window}
	var names []string
	for i := range jobs.Items {
		job := &jobs.Items[i]
		start, found := nextStart(job)
		if !found {
			continue
		}
		if _, suspended := maintenance.SuspendedBy(one, job.Labels, start, maintenance.SelectedJobs); suspended {
			names = append(names, job.Name)
		}
	}
	return bounded(names), nil
}

// bounded sorts the names and returns the first maxMatching.
func bounded(names []string) []string {
	slices.Sort(names)
	return names[:min(len(names), maxMatching)]
}
