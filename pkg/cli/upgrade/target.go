// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// upgradeKind is a kind of object that upgrades this cluster. Its value is the name of the kind in commands.
type upgradeKind string

const (
	// kindUpgrade is the UpgradeConfig of upgrade.managed.openshift.io.
	kindUpgrade upgradeKind = "upgrade"
	// kindJob is an UpgradeJob.
	kindJob upgradeKind = "upgradejob"
	// kindSchedule is the UpgradeConfig of managedupgrade.appuio.io.
	kindSchedule upgradeKind = "uc"
)

// upgradeKinds maps the names accepted by kubectl to kinds.
func upgradeKinds() map[string]upgradeKind {
	return map[string]upgradeKind{
		"upgrade": kindUpgrade, "upgradeconfig.upgrade.managed.openshift.io": kindUpgrade, "upgradeconfigs.upgrade.managed.openshift.io": kindUpgrade,
		"upgradejob": kindJob, "upgradejobs": kindJob, "uj": kindJob, "upgradejob.managedupgrade.appuio.io": kindJob, "upgradejobs.managedupgrade.appuio.io": kindJob,
		"uc": kindSchedule, "upgradeconfig.managedupgrade.appuio.io": kindSchedule, "upgradeconfigs.managedupgrade.appuio.io": kindSchedule,
	}
}

const (
	kindDoc = "KIND is upgrade (an UpgradeConfig in upgrade.managed.openshift.io), upgradejob, or uc (an UpgradeConfig in\n" +
		"managedupgrade.appuio.io)."
	targetDoc = kindDoc + " KIND/NAME is optional if only one object exists or only one has something to show."
)

// upgradeTarget is an object that upgrades this cluster or schedules upgrades.
type upgradeTarget struct {
	kind   upgradeKind
	object client.Object

	upgrade  *upgradev1alpha1.UpgradeConfig    // of kindUpgrade
	job      *maintenancev1beta1.UpgradeJob    // of kindJob
	schedule *maintenancev1beta1.UpgradeConfig // of kindSchedule
}

// newTarget returns a target of a kind with only its key.
func newTarget(kind upgradeKind, key client.ObjectKey) upgradeTarget {
	metadata := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	switch kind {
	case kindUpgrade:
		return targetOf(&upgradev1alpha1.UpgradeConfig{ObjectMeta: metadata})
	case kindJob:
		return targetOf(&maintenancev1beta1.UpgradeJob{ObjectMeta: metadata})
	default:
		return targetOf(&maintenancev1beta1.UpgradeConfig{ObjectMeta: metadata})
	}
}

// targetOf returns the target for an object of one of the three kinds.
func targetOf(object client.Object) upgradeTarget {
	target := upgradeTarget{object: object}
	switch object := object.(type) {
	case *upgradev1alpha1.UpgradeConfig:
		target.kind, target.upgrade = kindUpgrade, object
	case *maintenancev1beta1.UpgradeJob:
		target.kind, target.job = kindJob, object
	case *maintenancev1beta1.UpgradeConfig:
		target.kind, target.schedule = kindSchedule, object
	}
	return target
}

// String formats the target as users write it.
func (t upgradeTarget) String() string { return string(t.kind) + "/" + t.object.GetName() }

// history returns the records of the upgrade, current one first. A schedule has none.
func (t upgradeTarget) history() []history.Record {
	switch t.kind {
	case kindUpgrade:
		return t.upgrade.Status.History
	case kindJob:
		return t.job.Status.History
	default:
		return nil
	}
}

// current returns the record of the requested attempt, or nil if the operator has not recorded it yet.
func (t upgradeTarget) current() *history.Record {
	switch t.kind {
	case kindUpgrade:
		records := t.upgrade.Status.History
		if len(records) == 0 || records[0].Version != t.upgrade.Spec.Desired.Version || isReplaced(records[0], t.upgrade) {
			return nil
		}
		return &records[0]
	case kindJob:
		if _, ended := maintenance.EndPhase(t.job); maintenance.IsOver(t.job) && !ended { // a retry is requested
			return nil
		}
		return maintenance.LatestAttempt(t.job)
	default:
		return nil
	}
}

// isReplaced reports whether a failed attempt will be replaced because another start is requested.
func isReplaced(record history.Record, cfg *upgradev1alpha1.UpgradeConfig) bool {
	at, err := maintenance.UpgradeStart(cfg)
	if err != nil || record.UpgradeAt == nil || record.Phase != history.PhaseFailed || !record.Finished() {
		return false
	}
	return len(maintenance.StartRequests(cfg)) > 0 || record.Key() != history.Record{UpgradeAt: new(metav1.NewTime(at))}.Key()
}

// hasEnded reports whether the current attempt has ended with nothing left to do.
func (t upgradeTarget) hasEnded() bool {
	if t.kind == kindJob {
		_, ended := maintenance.EndPhase(t.job)
		return ended
	}
	record := t.current()
	return record != nil && record.Finished()
}

// pausedBy returns what holds the upgrade before it commences, or "".
func (t upgradeTarget) pausedBy() string {
	if t.kind != kindUpgrade {
		return ""
	}
	return maintenance.PausedBy(t.upgrade)
}

// began returns when the newest attempt started, or when the object was created if no attempt has started.
func (t upgradeTarget) began() time.Time {
	newest := t.object.GetCreationTimestamp().Time
	for _, record := range t.history() {
		if record.StartTime != nil && record.StartTime.After(newest) {
			newest = record.StartTime.Time
		}
	}
	return newest
}

// hasCommenced reports whether an attempt is past its point of no return and not finished.
func (t upgradeTarget) hasCommenced() bool {
	return slices.ContainsFunc(t.history(), func(r history.Record) bool { return r.InProgress() && r.CommenceTime != nil })
}

// inProgress reports whether an attempt has started and is not finished.
func (t upgradeTarget) inProgress() bool {
	return slices.ContainsFunc(t.history(), history.Record.InProgress)
}

// progress returns the message of the condition Progressing.
func (t upgradeTarget) progress() string {
	var conditions []metav1.Condition
	switch t.kind {
	case kindUpgrade:
		conditions = t.upgrade.Status.Conditions
	case kindJob:
		conditions = t.job.Status.Conditions
	default:
		conditions = t.schedule.Status.Conditions
	}
	for _, name := range []string{history.ConditionProgressing, "Scheduled"} {
		if c := meta.FindStatusCondition(conditions, name); c != nil {
			return c.Message
		}
	}
	return ""
}

// choice describes which objects a command chooses from if it has no argument.
type choice struct {
	kinds []upgradeKind
	// fits reports whether the command is useful for an object. Other objects count only if none fits.
	fits func(upgradeTarget) bool
	// newest selects the newest of all objects. If it is unset, several objects are an error.
	newest bool
}

// isOpen selects upgrades that have not ended.
func isOpen(kinds ...upgradeKind) choice {
	return choice{kinds: kinds, fits: func(t upgradeTarget) bool { return !t.hasEnded() }}
}

// newestOf selects the newest upgrade, ended or not.
func newestOf(kinds ...upgradeKind) choice {
	return choice{kinds: kinds, fits: func(upgradeTarget) bool { return true }, newest: true}
}

// targetOptions holds the argument of a command about one upgrade.
type targetOptions struct {
	*session.Session
	session.NoFlags

	among choice
	args  []string
}

// Complete takes the upgrade from the argument.
func (o *targetOptions) Complete(_ *cobra.Command, args []string) error {
	o.args = args
	return nil
}

// find returns the cluster and the upgrade.
func (o *targetOptions) find(ctx context.Context) (*session.Cluster, upgradeTarget, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, upgradeTarget{}, err
	}
	target, err := findUpgrade(ctx, o.Session, cluster, o.args, o.among)
	return cluster, target, err
}

// targetCommand completes the definition of a command about one upgrade.
func targetCommand(p *session.Session, among choice, cmd *cobra.Command) *cobra.Command {
	cmd.Use += " [KIND/NAME]"
	cmd.Long += "\n\n" + targetDoc
	cmd.Args = cobra.MatchAll(cobra.MaximumNArgs(1), validUpgrade)
	cmd.ValidArgsFunction = session.First(p.Completion(upgradeNames(p, among)))
	return cmd
}

// validUpgrade accepts KIND/NAME for kinds that upgrade this cluster.
func validUpgrade(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	kind, name, found := strings.Cut(args[0], "/")
	if _, known := upgradeKinds()[strings.ToLower(kind)]; !found || name == "" || !known {
		return fmt.Errorf("%q must be upgrade/NAME, upgradejob/NAME, or uc/NAME", args[0])
	}
	return nil
}

// findUpgrade returns the upgrade given by the arguments, or the only one in the choice.
func findUpgrade(ctx context.Context, p *session.Session, cluster *session.Cluster, args []string, among choice) (upgradeTarget, error) {
	if len(args) == 0 {
		return onlyUpgrade(ctx, p, cluster, among)
	}
	namespace, _, err := p.Namespace()
	if err != nil {
		return upgradeTarget{}, err
	}
	kind, name, _ := strings.Cut(args[0], "/")
	target := newTarget(upgradeKinds()[strings.ToLower(kind)], client.ObjectKey{Namespace: namespace, Name: name})
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(target.object), target.object); err != nil {
		return upgradeTarget{}, fmt.Errorf("reading %s in namespace %s: %w", target, namespace, err)
	}
	return target, nil
}

// candidates returns the possible objects for a command in the namespace of the flag or in all namespaces.
func candidates(ctx context.Context, p *session.Session, cluster *session.Cluster, among choice) ([]upgradeTarget, error) {
	var found, others []upgradeTarget
	for _, kind := range among.kinds {
		targets, err := listUpgrades(ctx, cluster, kind, p.NamespaceFlag())
		if err != nil {
			return nil, err
		}
		for _, target := range targets {
			if among.fits(target) {
				found = append(found, target)
			} else {
				others = append(others, target)
			}
		}
	}
	if len(found) == 0 {
		found = others
	}
	return found, nil
}

// onlyUpgrade returns the only object of the choice or, if the choice says so, the newest.
func onlyUpgrade(ctx context.Context, p *session.Session, cluster *session.Cluster, among choice) (upgradeTarget, error) {
	found, err := candidates(ctx, p, cluster, among)
	if err != nil {
		return upgradeTarget{}, err
	}
	switch {
	case len(found) == 0:
		return upgradeTarget{}, session.UsageError("no upgrade was found: create one, or name a namespace with -n and an object as KIND/NAME")
	case len(found) == 1:
		return found[0], nil
	case among.newest:
		return slices.MaxFunc(found, func(a, b upgradeTarget) int { return a.began().Compare(b.began()) }), nil
	}
	var names []string
	for _, target := range found {
		names = append(names, fmt.Sprintf("-n %s %s", target.object.GetNamespace(), target))
	}
	slices.Sort(names)
	return upgradeTarget{}, session.UsageError("there are several upgrades; choose one: %s", strings.Join(names, ", "))
}

// listUpgrades lists the objects of a kind by namespace and name. An empty namespace selects all.
func listUpgrades(ctx context.Context, cluster *session.Cluster, kind upgradeKind, namespace string) ([]upgradeTarget, error) {
	var targets []upgradeTarget
	var err error
	switch kind {
	case kindUpgrade:
		targets, err = listed(ctx, cluster, namespace, &upgradev1alpha1.UpgradeConfigList{}, func(l *upgradev1alpha1.UpgradeConfigList) []upgradev1alpha1.UpgradeConfig { return l.Items })
	case kindJob:
		targets, err = listed(ctx, cluster, namespace, &maintenancev1beta1.UpgradeJobList{}, func(l *maintenancev1beta1.UpgradeJobList) []maintenancev1beta1.UpgradeJob { return l.Items })
	default:
		targets, err = listed(ctx, cluster, namespace, &maintenancev1beta1.UpgradeConfigList{}, func(l *maintenancev1beta1.UpgradeConfigList) []maintenancev1beta1.UpgradeConfig { return l.Items })
	}
	if err != nil && !meta.IsNoMatchError(err) { // not all kinds may be installed
		return nil, fmt.Errorf("listing %s objects: %w", kind, err)
	}
	return targets, nil
}

func listed[T any, L client.ObjectList](ctx context.Context, cluster *session.Cluster, namespace string, list L, items func(L) []T) ([]upgradeTarget, error) {
	if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var targets []upgradeTarget
	all := items(list)
	for i := range all {
		if object, ok := any(&all[i]).(client.Object); ok {
			targets = append(targets, targetOf(object))
		}
	}
	return targets, nil
}

// upgradeNames completes the possible objects for a command as KIND/NAME.
func upgradeNames(p *session.Session, among choice) session.Completions {
	return func(cmd *cobra.Command, cluster *session.Cluster) []string {
		found, err := candidates(cmd.Context(), p, cluster, among)
		if err != nil {
			return nil
		}
		names := make([]string, len(found))
		for i, target := range found {
			names[i] = target.String()
		}
		return names
	}
}
