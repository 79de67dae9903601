// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// planPollInterval is the time between reads of a plan during its analysis.
const planPollInterval = 2 * time.Second

// planRequest describes the analysis that a command needs.
type planRequest struct {
	*session.Session

	release string
	// maxAge is the maximum age of the analysis. wait is how long to wait for a new one.
	maxAge, wait time.Duration
	// refreshInformers requests a new analysis for which informers update themselves.
	refreshInformers bool
	// namespace is the namespace of the Update Status Controller.
	namespace string
}

// analyzedPlan returns a release's plan with a recent analysis. If necessary, it creates the plan or requests
// a new analysis and waits for it. If this takes too long, it returns the plan as it is.
func (o planRequest) analyzedPlan(ctx context.Context, cluster *session.Cluster) (*updatev1beta1.UpdatePlan, error) {
	plan := &updatev1beta1.UpdatePlan{}
	key := client.ObjectKey{Name: updateplan.Name(o.release)}
	err := cluster.Get(ctx, key, plan)
	if err == nil || apierrors.IsNotFound(err) { // without a controller, nothing is written or awaited
		if err := o.RequireController(ctx, cluster, o.namespace); err != nil {
			return nil, err
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		plan = &updatev1beta1.UpdatePlan{
			ObjectMeta: metav1.ObjectMeta{Name: key.Name, Annotations: o.refreshAnnotations()},
			Spec:       updatev1beta1.UpdatePlanSpec{TargetRelease: o.release},
		}
		if err := cluster.Client.Create(ctx, plan); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating UpdatePlan %s: %w", key.Name, err)
		}
	case err != nil:
		return nil, fmt.Errorf("reading UpdatePlan %s: %w", key.Name, err)
	case plan.Spec.TargetRelease != o.release:
		return nil, fmt.Errorf("UpdatePlan %s is about release %s; delete it: %s delete updateplan %s", key.Name, plan.Spec.TargetRelease, o.Client(), key.Name)
	case o.needsAnalysis(plan):
		if err := o.requestAnalysis(ctx, cluster, plan); err != nil {
			return nil, err
		}
	}
	token := updateplan.RefreshToken(plan)
	return o.awaitPlan(ctx, cluster, key, func(plan *updatev1beta1.UpdatePlan) bool {
		return plan.Status.LastRefresh == token && isComplete(plan) && plan.Status.ObservedGeneration >= plan.Generation
	})
}

// progressInterval is the time between progress lines while a command waits.
const progressInterval = 10 * time.Second

// needsAnalysis reports whether an analysis must be requested because there is none, its age is too high or
// unknown, or informers should update themselves. If one is in progress, the command waits for it instead.
func (o planRequest) needsAnalysis(plan *updatev1beta1.UpdatePlan) bool {
	at := plan.Status.LastAnalysisTime
	inProgress := !updateplan.HasBegun(plan)
	return o.refreshInformers || !inProgress && isComplete(plan) && (at == nil || clocksDiffer(plan, o.Clock.Now()) != "" || o.Clock.Now().Sub(at.Time) >= min(o.maxAge, updateplan.MaxAge))
}

func (o planRequest) refreshAnnotations() map[string]string {
	annotations := map[string]string{updatev1beta1.RefreshAnnotation: o.Clock.Now().UTC().Format(time.RFC3339Nano)}
	if o.refreshInformers {
		annotations[updatev1beta1.RefreshInformersAnnotation] = "true"
	}
	return annotations
}

func (o planRequest) requestAnalysis(ctx context.Context, cluster *session.Cluster, plan *updatev1beta1.UpdatePlan) error {
	annotations := map[string]any{updatev1beta1.RefreshInformersAnnotation: nil}
	for key, value := range o.refreshAnnotations() {
		annotations[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, plan, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("requesting an analysis of UpdatePlan %s: %w", plan.Name, err)
	}
	return nil
}

// awaitPlan reads a plan until it meets the condition, the wait time is over, or the Update Status Controller
// stops responding.
func (o planRequest) awaitPlan(ctx context.Context, cluster *session.Cluster, key client.ObjectKey, done func(*updatev1beta1.UpdatePlan) bool) (*updatev1beta1.UpdatePlan, error) {
	start := o.Clock.Now()
	end, next := start.Add(o.wait), start.Add(progressInterval)
	for {
		plan := &updatev1beta1.UpdatePlan{}
		if err := cluster.Get(ctx, key, plan); err != nil {
			return nil, fmt.Errorf("reading UpdatePlan %s: %w", key.Name, err)
		}
		now := o.Clock.Now()
		if done(plan) || !now.Before(end) {
			return plan, nil
		}
		if err := o.RequireController(ctx, cluster, o.namespace); err != nil {
			return nil, err
		}
		if !now.Before(next) {
			next = now.Add(progressInterval)
			fmt.Fprintf(o.Streams.ErrOut, "%s: waiting for the analysis of UpdatePlan %s (%s of %s)\n",
				o.Name, key.Name, duration.HumanDuration(now.Sub(start)), duration.HumanDuration(o.wait))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-o.Clock.After(planPollInterval):
		}
	}
}

func isComplete(plan *updatev1beta1.UpdatePlan) bool {
	return meta.IsStatusConditionTrue(plan.Status.Conditions, updatev1beta1.ConditionComplete)
}

// acceptInsights accepts insights of a plan as the current user after the user has confirmed. Insights are
// given by uid or UUID. It waits until the plan reflects the change.
func (o *preChecksOptions) acceptInsights(ctx context.Context, cluster *session.Cluster, plan *updatev1beta1.UpdatePlan) (*updatev1beta1.UpdatePlan, error) {
	accepted, err := o.withAcceptances(ctx, cluster, plan, o.accept, o.reason)
	if err != nil {
		return nil, err
	}
	cluster, note, err := o.Agreed(ctx, &o.ChangeOptions, cluster, "change which risks of the update to "+plan.Spec.TargetRelease+" are accepted: "+strings.Join(o.accept, ", "))
	if err != nil {
		return nil, err
	}
	err = clientretry.OnError(clientretry.DefaultRetry, apierrors.IsConflict, func() error {
		err := cluster.Client.Patch(ctx, accepted, client.MergeFromWithOptions(plan, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return err
		}
		// The controller may write the plan's status at any time, so decide again based on the latest
		// version.
		newest := &updatev1beta1.UpdatePlan{}
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(plan), newest); err != nil {
			return err
		}
		again, decideErr := o.withAcceptances(ctx, cluster, newest, o.accept, o.reason)
		if decideErr != nil {
			return decideErr
		}
		plan, accepted = newest, again
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("accepting risks of UpdatePlan %s: %w", plan.Name, err)
	}
	if note != "" {
		_, err := fmt.Fprintf(o.Streams.ErrOut, "The API server would accept the change of UpdatePlan %s%s.\n", plan.Name, note)
		return plan, err
	}
	request := o.planRequest
	request.wait = time.Minute
	return request.awaitPlan(ctx, cluster, client.ObjectKeyFromObject(plan), func(plan *updatev1beta1.UpdatePlan) bool {
		return plan.Status.ObservedGeneration >= accepted.Generation
	})
}

// withAcceptances returns a copy of the plan in which the current user accepts insights or withdraws
// acceptances. Insights must be reviewed before they can be accepted.
func (o *preChecksOptions) withAcceptances(ctx context.Context, cluster *session.Cluster, plan *updatev1beta1.UpdatePlan, ids []string, reason string) (*updatev1beta1.UpdatePlan, error) {
	if slices.ContainsFunc(ids, func(id string) bool { return !strings.HasSuffix(id, "-") }) { // otherwise they are withdrawn
		if err := requireReview(o.Session, plan, "accepted", ids); err != nil {
			return nil, err
		}
	}
	now := o.Clock.Now()
	accepted := plan.DeepCopy()
	user, err := currentUser(ctx, cluster)
	if err != nil {
		return nil, err
	}
	judged := updateplan.JudgePlan(plan, now)
	if slices.Contains(ids, acceptAll) {
		ids = acceptable(judged)
	}
	for _, id := range ids {
		if withdrawn, is := strings.CutSuffix(id, "-"); is && withdraw(accepted, withdrawn, user, now) {
			continue
		}
		found, err := findInsight(judged, id)
		if err != nil {
			return nil, fmt.Errorf("--accept: %w; \"%s pre-checks --version %s\" lists the risks", err, o.Name, plan.Spec.TargetRelease)
		}
		if found.Insight.Impact.Level == updatev1beta1.LevelCritical && reason == "" {
			return nil, session.UsageError("--reason: is required to accept %s, which is critical", found.Insight.UID)
		}
		at := metav1.NewTime(now.UTC().Truncate(time.Second))
		if first := found.Insight.FirstObservedTime; at.Before(&first) { // the clock of this computer is behind
			at = first
		}
		setAcceptance(accepted, updatev1beta1.AcceptedInsight{
			UpdateInformer: found.Informer, UID: found.Insight.UID, UUID: found.Insight.UUID, Accepted: true, Reason: reason,
			AcceptedBy: user, AcceptedTime: &at,
		})
	}
	accepted.Spec.UpdatePlanResourceVersion = plan.ResourceVersion
	metav1.SetMetaDataAnnotation(&accepted.ObjectMeta, updatev1beta1.ReviewedAnnotation, updateplan.Reviewed(plan))
	return accepted, nil
}

// requireReview returns an error if insights have become worse since the review, except for insights that the
// command names. notDone completes the phrase "not ...".
func requireReview(p *session.Session, plan *updatev1beta1.UpdatePlan, notDone string, named []string) error {
	changes := slices.DeleteFunc(updateplan.ChangedSinceReview(plan), func(c updateplan.Change) bool {
		return slices.ContainsFunc(named, func(id string) bool {
			return id == c.Insight.UUID || id == c.Insight.UID || id == c.Informer+"/"+c.Insight.UID
		})
	})
	if len(changes) == 0 {
		return nil
	}
	var lines []string
	for _, change := range changes[:min(len(changes), maxChanges)] {
		lines = append(lines, change.String())
	}
	if more := len(changes) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return session.Refused("not %s: the risks have changed since they were reviewed: %s; review them with %q", notDone,
		strings.Join(lines, ", "), p.Name+" pre-checks --version "+plan.Spec.TargetRelease)
}

// maxChanges is the maximum number of changed risks in an error.
const maxChanges = 8

// recordReview records that the user has seen the risks of a plan. It does nothing if the user may not change
// plans.
func recordReview(ctx context.Context, p *session.Session, cluster *session.Cluster, plan *updatev1beta1.UpdatePlan) {
	reviewed := updateplan.Reviewed(plan)
	if before, found := plan.Annotations[updatev1beta1.ReviewedAnnotation]; found && before == reviewed || !isComplete(plan) {
		return
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{updatev1beta1.ReviewedAnnotation: reviewed}, "resourceVersion": plan.ResourceVersion,
	}})
	if err == nil {
		err = cluster.Client.Patch(ctx, plan.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
		fmt.Fprintf(p.Streams.ErrOut, "%s: warning: the review of UpdatePlan %s is not recorded: %s\n", p.Name, plan.Name, p.Explain(err))
	}
}

// acceptAll stands for --accept without a value.
const acceptAll = "*"

// acceptable returns the UUIDs of the unaccepted risks except critical ones, which must be accepted
// individually.
func acceptable(judged []updateplan.Judged) []string {
	var ids []string
	for _, j := range updateplan.Unaccepted(judged) {
		if j.Insight.Impact.Level != updatev1beta1.LevelCritical {
			ids = append(ids, j.Insight.UUID)
		}
	}
	return ids
}

// withdraw withdraws the acceptances of a uid or UUID and reports whether there were any.
func withdraw(plan *updatev1beta1.UpdatePlan, id, user string, now time.Time) bool {
	found := false
	for i := range plan.Spec.AcceptedInsights {
		if e := &plan.Spec.AcceptedInsights[i]; e.UID == id || e.UUID == id && id != "" || e.UpdateInformer+"/"+e.UID == id {
			e.Accepted, found = false, true
			e.AcceptedBy, e.AcceptedTime = user, &metav1.Time{Time: now.UTC().Truncate(time.Second)}
		}
	}
	return found
}

// setAcceptance replaces the entry for an insight and any entry that names it by uid only.
func setAcceptance(plan *updatev1beta1.UpdatePlan, entry updatev1beta1.AcceptedInsight) {
	kept := plan.Spec.AcceptedInsights[:0:0]
	for _, e := range plan.Spec.AcceptedInsights {
		if e.UpdateInformer != entry.UpdateInformer || e.UID != entry.UID || e.UUID != entry.UUID && e.UUID != "" {
			kept = append(kept, e)
		}
	}
	plan.Spec.AcceptedInsights = append(kept, entry)
}

// findInsight returns the insight with a UUID or uid. If several insights share the uid, it returns an error.
func findInsight(judged []updateplan.Judged, id string) (updateplan.Judged, error) {
	var found []updateplan.Judged
	for _, j := range judged {
		if j.Insight.UUID == id {
			return j, nil
		}
		if j.Insight.UID == id || j.Informer+"/"+j.Insight.UID == id {
			found = append(found, j)
		}
	}
	switch len(found) {
	case 0:
		return updateplan.Judged{}, fmt.Errorf("no risk has the uid or uuid %q", id)
	case 1:
		return found[0], nil
	}
	uuids := make([]string, len(found))
	for i := range found {
		uuids[i] = found[i].Insight.UUID
	}
	return updateplan.Judged{}, fmt.Errorf("%d risks have the uid %q: accept one by its uuid (%s)", len(found), id, strings.Join(uuids, ", "))
}

// currentUser returns the user name known to the API server.
func currentUser(ctx context.Context, cluster *session.Cluster) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := cluster.Client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("determining the current user: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
