// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// planPollInterval is the time between two reads of a plan that is being analyzed.
const planPollInterval = 2 * time.Second

// planRequest is which analysis of a plan a command needs.
type planRequest struct {
	release string
	// maxAge is how old an analysis may be; wait is how long to wait for another one.
	maxAge, wait time.Duration
	// refreshInformers requests another analysis for which informers update themselves.
	refreshInformers bool
}

// analyzedPlan returns the plan of a release with an analysis that is not too old. It creates the plan
// or requests another analysis, and waits for it. If that takes too long, the plan is returned as it is.
func (p *Program) analyzedPlan(ctx context.Context, cluster *Cluster, o planRequest) (*updatev1beta1.UpdatePlan, error) {
	plan := &updatev1beta1.UpdatePlan{}
	key := client.ObjectKey{Name: updateplan.Name(o.release)}
	err := cluster.Get(ctx, key, plan)
	switch {
	case apierrors.IsNotFound(err):
		plan = &updatev1beta1.UpdatePlan{
			ObjectMeta: metav1.ObjectMeta{Name: key.Name, Annotations: p.refreshAnnotations(o)},
			Spec:       updatev1beta1.UpdatePlanSpec{TargetRelease: o.release},
		}
		if err := cluster.Client.Create(ctx, plan); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating UpdatePlan %s: %w", key.Name, err)
		}
	case err != nil:
		return nil, fmt.Errorf("reading UpdatePlan %s: %w", key.Name, err)
	case plan.Spec.TargetRelease != o.release:
		return nil, fmt.Errorf("UpdatePlan %s is about release %s; delete it: %s delete updateplan %s", key.Name, plan.Spec.TargetRelease, p.client(), key.Name)
	case p.needsAnalysis(plan, o):
		if err := p.requestAnalysis(ctx, cluster, plan, o); err != nil {
			return nil, err
		}
	}
	token := updateplan.RefreshToken(plan)
	return p.awaitPlan(ctx, cluster, key, o.wait, func(plan *updatev1beta1.UpdatePlan) bool {
		return plan.Status.LastRefresh == token && isComplete(plan)
	})
}

// needsAnalysis reports whether an analysis is to be requested: there is none, it is too old, or informers
// are to update themselves. One that is in progress is waited for.
func (p *Program) needsAnalysis(plan *updatev1beta1.UpdatePlan, o planRequest) bool {
	at := plan.Status.LastAnalysisTime
	inProgress := !updateplan.HasBegun(plan)
	return o.refreshInformers || !inProgress && isComplete(plan) && (at == nil || p.Clock.Now().Sub(at.Time) >= min(o.maxAge, updateplan.MaxAge))
}

func (p *Program) refreshAnnotations(o planRequest) map[string]string {
	annotations := map[string]string{updatev1beta1.RefreshAnnotation: p.Clock.Now().UTC().Format(time.RFC3339Nano)}
	if o.refreshInformers {
		annotations[updatev1beta1.RefreshInformersAnnotation] = "true"
	}
	return annotations
}

func (p *Program) requestAnalysis(ctx context.Context, cluster *Cluster, plan *updatev1beta1.UpdatePlan, o planRequest) error {
	annotations := map[string]any{updatev1beta1.RefreshInformersAnnotation: nil}
	for key, value := range p.refreshAnnotations(o) {
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

// awaitPlan reads a plan until it is as required, at most for as long as to wait.
func (p *Program) awaitPlan(ctx context.Context, cluster *Cluster, key client.ObjectKey, wait time.Duration, done func(*updatev1beta1.UpdatePlan) bool) (*updatev1beta1.UpdatePlan, error) {
	end := p.Clock.Now().Add(wait)
	for {
		plan := &updatev1beta1.UpdatePlan{}
		if err := cluster.Get(ctx, key, plan); err != nil {
			return nil, fmt.Errorf("reading UpdatePlan %s: %w", key.Name, err)
		}
		if done(plan) || !p.Clock.Now().Before(end) {
			return plan, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.Clock.After(planPollInterval):
		}
	}
}

func isComplete(plan *updatev1beta1.UpdatePlan) bool {
	return meta.IsStatusConditionTrue(plan.Status.Conditions, updatev1beta1.ConditionComplete)
}

// acceptInsights accepts insights of a plan, each given by its uid or uuid, as the current user. It
// waits until the plan reflects that.
func (p *Program) acceptInsights(ctx context.Context, cluster *Cluster, plan *updatev1beta1.UpdatePlan, ids []string, reason string) (*updatev1beta1.UpdatePlan, error) {
	now := p.Clock.Now()
	accepted := plan.DeepCopy()
	user, err := currentUser(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		found, err := findInsight(updateplan.JudgePlan(plan, now), id)
		if err != nil {
			return nil, fmt.Errorf("--accept: %w; \"%s pre-checks --version %s\" lists the risks", err, p.name, plan.Spec.TargetRelease)
		}
		if found.Insight.Impact.Level == updatev1beta1.LevelCritical && reason == "" {
			return nil, usageError("--reason: is required to accept %s, which is critical", found.Insight.UID)
		}
		setAcceptance(accepted, updatev1beta1.AcceptedInsight{
			UpdateInformer: found.Informer, UID: found.Insight.UID, UUID: found.Insight.UUID, Accepted: true, Reason: reason,
			AcceptedBy: user, AcceptedTime: &metav1.Time{Time: now.UTC().Truncate(time.Second)},
		})
	}
	accepted.Spec.UpdatePlanResourceVersion = plan.ResourceVersion
	if err := cluster.Client.Patch(ctx, accepted, client.MergeFromWithOptions(plan, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("accepting risks of UpdatePlan %s: %w", plan.Name, err)
	}
	const settle = time.Minute
	return p.awaitPlan(ctx, cluster, client.ObjectKeyFromObject(plan), settle, func(plan *updatev1beta1.UpdatePlan) bool {
		return plan.Status.ObservedGeneration >= accepted.Generation
	})
}

// setAcceptance replaces the entry of an insight, and one that names it by its uid alone.
func setAcceptance(plan *updatev1beta1.UpdatePlan, entry updatev1beta1.AcceptedInsight) {
	kept := plan.Spec.AcceptedInsights[:0:0]
	for _, e := range plan.Spec.AcceptedInsights {
		if e.UpdateInformer != entry.UpdateInformer || e.UID != entry.UID || e.UUID != entry.UUID && e.UUID != "" {
			kept = append(kept, e)
		}
	}
	plan.Spec.AcceptedInsights = append(kept, entry)
}

// findInsight returns the insight with a uuid or a uid. A uid that several insights have is an error.
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

// currentUser returns the name of the user as the API server knows it.
func currentUser(ctx context.Context, cluster *Cluster) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := cluster.Client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("determining the current user: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}
