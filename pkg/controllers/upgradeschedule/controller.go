// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

// maxRequeue limits the time until the next pass, because clocks are set and machines are
// suspended.
const maxRequeue = 10 * time.Minute

// retryDelay is the delay before the next pass if the cache is stale.
const retryDelay = time.Second

// kindName is the kind of the objects that are reconciled.
var kindName = schema.GroupKind{Group: maintenancev1beta1.GroupVersion.Group, Kind: "UpgradeConfig"}

// Reconciler creates the UpgradeJobs of UpgradeConfigs.
type Reconciler struct {
	// Clock provides the time.
	Clock clock.PassiveClock
	// WatchNamespaces lists the namespaces whose UpgradeConfigs are reconciled. Defaults to all.
	WatchNamespaces []string
	// ConfigProblem checks spec.config.machineConfigPools of an UpgradeJob against the pools of the
	// cluster. It returns a reason and a message if they do not match. Optional.
	ConfigProblem func(ctx context.Context, job *maintenancev1beta1.UpgradeJob, now time.Time) (reason, message string, err error)
	// Events publishes what happens to slots, and Metrics counts it.
	Events  notify.EventPublisher
	Metrics *metrics.Schedules

	client   client.Client
	live     client.Reader
	replaced map[client.ObjectKey]manager.Replaced // objects that this process wrote last
	uids     map[client.ObjectKey]string
	parsed   map[client.ObjectKey]parsed
}

// parsed is a parsed schedule. It is cached, because loading a location is expensive.
type parsed struct {
	cron, week, location string
	schedule             schedule.Schedule
	err                  error
}

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get;list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobhooks;upgradesuspensionwindows,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	configs, jobs, windows := facts.UpgradeConfigs(r.WatchNamespaces), facts.UpgradeJobs(r.WatchNamespaces), facts.UpgradeSuspensionWindows(r.WatchNamespaces)
	configs.Requests, jobs.Requests, windows.Requests = manager.Self, ownerRequests, r.namespaceRequests
	configs.IsUrgent = func(obj client.Object) bool {
		cfg, ok := obj.(*maintenancev1beta1.UpgradeConfig)
		return ok && isUrgent(cfg, &cfg.Status, r.Clock.Now())
	}
	jobHooks := facts.UpgradeJobHooks(r.WatchNamespaces)
	jobHooks.Requests = r.namespaceRequests
	reads := []manager.Kind{configs, jobs, windows, jobHooks}
	for _, kind := range facts.Watches() {
		switch kind.Object.(type) {
		case *configv1.ClusterVersion:
		case *mcfgv1.MachineConfigPool:
			kind.Predicates = append(kind.Predicates, predicate.LabelChangedPredicate{})
		default:
			continue
		}
		kind.Requests = r.allRequests
		reads = append(reads, kind)
	}
	return manager.Controller{
		Name:        "upgradeschedule",
		AddToScheme: []func(*runtime.Scheme) error{maintenancev1beta1.AddToScheme, configv1.Install, mcfgv1.Install, corev1.AddToScheme},
		Reads:       reads,
		Bind: func(clients manager.Clients) error {
			r.client, r.live = clients.Client, clients.Live
			r.replaced, r.uids, r.parsed = map[client.ObjectKey]manager.Replaced{}, map[client.ObjectKey]string{}, map[client.ObjectKey]parsed{}
			return nil
		},
		Reconciler: r,
	}
}

// ownerRequests returns a request for the UpgradeConfig that controls an UpgradeJob.
func ownerRequests(_ context.Context, job client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != kindName.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: job.GetNamespace(), Name: owner.Name}}}
}

// namespaceRequests returns requests for all UpgradeConfigs in the namespace of an object.
func (r *Reconciler) namespaceRequests(ctx context.Context, obj client.Object) []reconcile.Request {
	return manager.Requests[*maintenancev1beta1.UpgradeConfig](ctx, r.client, &maintenancev1beta1.UpgradeConfigList{}, nil, client.InNamespace(obj.GetNamespace()))
}

// allRequests returns requests for all UpgradeConfigs.
func (r *Reconciler) allRequests(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests[*maintenancev1beta1.UpgradeConfig](ctx, r.client, &maintenancev1beta1.UpgradeConfigList{}, nil)
}

// errBehind is returned if the cache is stale.
var errBehind = errors.New("the cache is behind the API server")

// Reconcile makes one pass over one UpgradeConfig. It handles at most one slot.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cfg := &maintenancev1beta1.UpgradeConfig{}
	err := r.client.Get(ctx, req.NamespacedName, cfg)
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("getting UpgradeConfig %s: %w", req, err)
	}
	now := r.Clock.Now()
	if r.replaced[req.NamespacedName].IsBehind(cfg, now) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil // the watch usually triggers a pass before that
	}
	if uid := string(cfg.UID); r.uids[req.NamespacedName] != uid {
		r.forget(req.NamespacedName) // another object with the same name
		r.uids[req.NamespacedName] = uid
	}
	if cfg.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.client, now, cfg); refused || err != nil {
		return reconcile.Result{}, err
	}
	s, err := r.newScope(ctx, cfg, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	err = s.reconcile(ctx)
	if errors.Is(err, errBehind) || apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: retryDelay}, nil
	}
	after := s.requeue()
	result := reconcile.Result{RequeueAfter: after, Priority: new(0)}
	if isUrgent(cfg, &s.status, now.Add(after)) {
		result.Priority = new(manager.UrgentPriority)
	}
	return result, err
}

// isUrgent reports whether an UpgradeConfig with this status needs a pass that cannot wait: a start
// is due, a version must be pinned, or a user has requested an upgrade. Urgent requests go first.
func isUrgent(cfg *maintenancev1beta1.UpgradeConfig, status *maintenancev1beta1.UpgradeConfigStatus, at time.Time) bool {
	if token := maintenance.RequestToken(cfg, maintenancev1beta1.RunNowAnnotation); token != "" && (status.RunNow == nil || status.RunNow.Token != token) {
		return true
	}
	var pin time.Duration
	if window := cfg.Spec.PinVersionWindow; window != nil {
		pin, _ = maintenance.Duration(*window) // an invalid window pins nothing early
	}
	return slices.ContainsFunc(status.NextPossibleSchedules, func(start maintenancev1beta1.NextPossibleSchedule) bool {
		handled := status.HandledUntil != nil && !start.Time.After(status.HandledUntil.Time)
		return !handled && start.SuspendedBy == "" && !start.Time.Add(-pin).After(at)
	})
}

// forget drops the state and the metrics of an object.
func (r *Reconciler) forget(key client.ObjectKey) {
	r.Metrics.DeleteSchedule(kindName, key.Namespace, key.Name)
	if uid := r.uids[key]; uid != "" {
		r.Events.Reset(uid)
	}
	delete(r.replaced, key)
	delete(r.uids, key)
	delete(r.parsed, key)
}

// parse returns the schedule of an UpgradeConfig.
func (r *Reconciler) parse(cfg *maintenancev1beta1.UpgradeConfig) (schedule.Schedule, error) {
	spec, key := &cfg.Spec.Schedule, client.ObjectKeyFromObject(cfg)
	want := parsed{cron: spec.Cron, week: isoWeek(&cfg.Spec), location: spec.Location}
	if last, found := r.parsed[key]; found && last.cron == want.cron && last.week == want.week && last.location == want.location {
		return last.schedule, last.err
	}
	want.schedule, want.err = maintenance.Schedule(spec)
	r.parsed[key] = want
	return want.schedule, want.err
}
