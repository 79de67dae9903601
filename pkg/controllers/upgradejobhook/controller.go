// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejobhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/objects"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// Reconciler reconciles UpgradeJobHooks and the Jobs created for them.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock provides the time.
	Clock clock.PassiveClock
	// WatchNamespaces lists the namespaces whose UpgradeJobHooks are reconciled. Defaults to all.
	WatchNamespaces []string
	// Runner validates hooks. It is the Runner that also runs them, and has its own clients.
	Runner *hooks.Runner
	// ConfigChanged receives an event whenever the configuration changes. Optional.
	ConfigChanged <-chan event.GenericEvent
	// Publisher publishes Events about hooks that cannot run. Optional.
	Publisher notify.Publisher
	// Metrics holds the metrics of hooks.
	Metrics *metrics.Hooks

	mu      sync.Mutex
	checked map[client.ObjectKey]check
}

// check holds all inputs of a verdict on a hook.
type check struct {
	uid        string
	generation int64
	accounts   string // the allowed ServiceAccounts
}

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobhooks,namespace=managed-upgrade-operator,verbs=get;list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobhooks/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get;list;watch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,namespace=managed-upgrade-operator,verbs=create;list;watch;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controllers declares the controllers.
func (r *Reconciler) Controllers() []manager.Controller {
	kind := facts.UpgradeJobHooks(r.WatchNamespaces)
	kind.Requests = manager.Self
	validation := manager.Controller{Name: "upgradejobhook", Reads: []manager.Kind{kind}, Bind: r.bind, Reconciler: r}
	if r.ConfigChanged != nil {
		validation.Channels = []manager.Channel{{Events: r.ConfigChanged, Requests: r.all}}
	}
	reads := []manager.Kind{facts.HookJobs(r.WatchNamespaces, maintenance.OwnerKinds()...)}
	for _, kind := range maintenance.OwnerKinds() {
		upgrades := facts.Owners(kind, r.WatchNamespaces)
		upgrades.Requests = manager.Self
		reads = append(reads, upgrades)
	}
	return []manager.Controller{validation, {Name: "hookjob", Reads: reads, Bind: r.bind, Reconciler: reconcile.Func(r.releaseJobs)}}
}

func (r *Reconciler) bind(clients manager.Clients) error {
	r.Client, r.Live = clients.Client, clients.Live
	return nil
}

// all returns requests for all hooks, because the allowed ServiceAccounts may have changed.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests[*maintenancev1beta1.UpgradeJobHook](ctx, r.Client, &maintenancev1beta1.UpgradeJobHookList{}, nil)
}

// rejectedRetry is the delay before a hook whose Job the API server rejected is validated again,
// because the policy that denied the Job may have changed.
const rejectedRetry = 30 * time.Second

// Reconcile checks whether a hook can run, and reports that in its status.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var hook maintenancev1beta1.UpgradeJobHook
	err := r.Client.Get(ctx, request.NamespacedName, &hook)
	switch {
	case apierrors.IsNotFound(err):
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting the UpgradeJobHook: %w", err)
	}
	r.Metrics.SetHook(hook.Namespace, hook.Name, hook.Spec.Events)
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, r.Clock.Now(), &hook); refused || err != nil {
		return reconcile.Result{}, err
	}
	if hook.DeletionTimestamp != nil || r.isChecked(&hook) {
		return reconcile.Result{}, nil
	}
	problem, err := r.validate(ctx, &hook)
	switch {
	case errors.Is(err, errStaleCache):
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	err = r.report(ctx, &hook, problem)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: time.Second}, nil // the cache will follow
	case err != nil:
		return reconcile.Result{}, err
	case problem.Rejected:
		return reconcile.Result{RequeueAfter: rejectedRetry}, nil
	}
	r.markChecked(&hook)
	return reconcile.Result{}, nil
}

// errStaleCache is returned if the cache does not yet have the current state of a hook.
var errStaleCache = errors.New("the cache is behind the API server")

// validate returns the reason why a hook cannot run. The API server does not validate a Job again
// that it accepted for the same spec.
func (r *Reconciler) validate(ctx context.Context, hook *maintenancev1beta1.UpgradeJobHook) (hooks.Problem, error) {
	var live maintenancev1beta1.UpgradeJobHook // with its template
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(hook), &live); err != nil {
		return hooks.Problem{}, fmt.Errorf("getting the template of UpgradeJobHook %s: %w", hook.Name, err)
	}
	if live.UID != hook.UID || live.Generation != hook.Generation {
		return hooks.Problem{}, errStaleCache
	}
	accepted := apimeta.FindStatusCondition(live.Status.Conditions, maintenancev1beta1.ConditionAccepted)
	if live.Status.ObservedGeneration != live.Generation || accepted == nil {
		return r.Runner.DryRun(ctx, &live)
	}
	if accepted.Status == metav1.ConditionTrue {
		return r.Runner.Validate(&live), nil
	}
	return r.Runner.DryRun(ctx, &live)
}

// report publishes a problem, and shows the verdict in the status.
func (r *Reconciler) report(ctx context.Context, hook *maintenancev1beta1.UpgradeJobHook, problem hooks.Problem) error {
	accepted := metav1.Condition{
		Type: maintenancev1beta1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: "Valid", Message: "the template is valid",
	}
	if problem != (hooks.Problem{}) {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, problem.Reason, problem.Message
		if err := r.publish(ctx, hook, accepted); err != nil {
			return err
		}
	}
	before := hook.DeepCopy()
	status := &hook.Status
	status.ObservedGeneration = hook.Generation
	status.Conditions = slices.DeleteFunc(status.Conditions, isForeign)
	readiness.SetAccepted(&status.Conditions, accepted, hook.Generation, r.Clock.Now())
	if equality.Semantic.DeepEqual(before.Status, hook.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, hook, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the status of UpgradeJobHook %s: %w", hook.Name, err)
	}
	return nil
}

// publish publishes an Event about a hook that cannot run, once for each generation and reason.
func (r *Reconciler) publish(ctx context.Context, hook *maintenancev1beta1.UpgradeJobHook, accepted metav1.Condition) error {
	if r.Publisher == nil {
		return nil
	}
	return notify.TryPublish(ctx, r.Publisher, objects.Reference(hook, maintenancev1beta1.GroupVersion.WithKind("UpgradeJobHook")), engine.Notification{
		ID:   engine.NotificationID(string(hook.UID), strconv.FormatInt(hook.Generation, 10), maintenancev1beta1.ConditionAccepted, accepted.Reason),
		Type: corev1.EventTypeWarning, Reason: accepted.Reason, Message: accepted.Message,
	})
}

// checkOf returns the inputs of a verdict on the hook.
func (r *Reconciler) checkOf(hook *maintenancev1beta1.UpgradeJobHook) check {
	return check{string(hook.UID), hook.Generation, strings.Join(r.Runner.Config().ServiceAccounts, ",")}
}

// isChecked reports whether this process has validated the hook in its current state and the status
// shows the verdict.
func (r *Reconciler) isChecked(hook *maintenancev1beta1.UpgradeJobHook) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checked[client.ObjectKeyFromObject(hook)] == r.checkOf(hook) && hook.Status.ObservedGeneration == hook.Generation &&
		apimeta.FindStatusCondition(hook.Status.Conditions, maintenancev1beta1.ConditionAccepted) != nil &&
		apimeta.FindStatusCondition(hook.Status.Conditions, history.ConditionReady) != nil &&
		!slices.ContainsFunc(hook.Status.Conditions, isForeign)
}

// isForeign reports whether a condition of a hook is not set by this controller.
func isForeign(c metav1.Condition) bool {
	return c.Type != maintenancev1beta1.ConditionAccepted && !readiness.IsOwn(c.Type)
}

func (r *Reconciler) markChecked(hook *maintenancev1beta1.UpgradeJobHook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checked == nil {
		r.checked = map[client.ObjectKey]check{}
	}
	r.checked[client.ObjectKeyFromObject(hook)] = r.checkOf(hook)
}

// forget drops the state of a deleted hook.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.Metrics.DeleteHook(key.Namespace, key.Name)
	r.mu.Lock()
	check := r.checked[key]
	delete(r.checked, key)
	r.mu.Unlock()
	if r.Publisher != nil && check.uid != "" {
		r.Publisher.Reset(check.uid)
	}
}
