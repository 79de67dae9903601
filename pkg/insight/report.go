// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func (i *informer) report(now time.Time) []updatev1beta1.Insight {
	var found []updatev1beta1.Insight
	add := func(reason string, level updatev1beta1.Level, description, format string, args ...any) {
		found = append(found, About(i.name, reason, level, fmt.Sprintf(format, args...), description, cmp.Or(i.last.At, now)))
	}
	last := i.last
	detail := last.Message
	if last.Reason != "" {
		detail = last.Reason + ": " + last.Message
	}
	switch last.Result {
	case Disabled:
		add(updatev1beta1.ReasonInformerDisabled, updatev1beta1.LevelInfo, "", "Informer %s is disabled.", i.name)
		return found
	case Deleted:
		return nil
	case Failure:
		add(updatev1beta1.ReasonInformerFailed, updatev1beta1.LevelWarning, detail, "Informer %s cannot determine its insights.", i.name)
	case Unreachable:
		add(updatev1beta1.ReasonInformerUnreachable, updatev1beta1.LevelWarning, detail, "Informer %s does not answer.", i.name)
	case Invalid:
		add(updatev1beta1.ReasonInformerInvalid, updatev1beta1.LevelWarning, detail, "Informer %s gives an invalid answer.", i.name)
	case Wait:
		if now.Sub(i.waitingSince) >= WaitLimit {
			add(updatev1beta1.ReasonInformerWaiting, updatev1beta1.LevelWarning, detail, "Informer %s is still preparing its answer.", i.name)
		}
	case Success, NotQueried, "":
	}
	if last.Degraded != "" {
		add(updatev1beta1.ReasonInformerDegraded, updatev1beta1.LevelWarning, last.Degraded, "Informer %s reports that it is degraded.", i.name)
	}
	if last.Result == Success && i.odd > 0 {
		add(updatev1beta1.ReasonInformerInvalid, updatev1beta1.LevelWarning, "", "Informer %s reports %d insights without a uid, with one uid, or beyond the limit of %d.", i.name, i.odd, MaxInsights)
	}
	if !i.mutatedAt.IsZero() && now.Sub(i.mutatedAt) < churnWindow {
		add(updatev1beta1.ReasonScopeMutated, updatev1beta1.LevelWarning, "The scope must stay the same for a uid: accepted risks do not hold for another scope.", "Informer %s changes the scope of insights.", i.name)
	}
	if r := i.rejected; r.count > 0 {
		add(updatev1beta1.ReasonUnstableIdentifiers, updatev1beta1.LevelWarning, "The uid of an insight must stay the same between answers.",
			"Informer %s reports ever new insights; %d are not shown, the most severe of level %s.", i.name, r.count, r.level)
	}
	return found
}

// maxInformerInUID limits the informer name in a uid.
const maxInformerInUID = 200

// About returns an insight about an informer, reported by the controller.
func About(informer, reason string, level updatev1beta1.Level, summary, description string, at time.Time) updatev1beta1.Insight {
	uid := reason + "/" + informer
	if len(informer) > maxInformerInUID {
		uid = reason + "/" + text.Cut(informer, maxInformerInUID) + "-" + UUID(informer, updatev1beta1.InsightScope{}, "")
	}
	return Clean(updatev1beta1.StatusControllerInformer, updatev1beta1.Insight{
		UID: uid, AcquisitionTime: metav1.NewTime(at),
		Scope: updatev1beta1.InsightScope{
			Type:      updatev1beta1.ScopeControlPlane,
			Resources: []updatev1beta1.ResourceReference{{APIVersion: updatev1beta1.GroupVersion.String(), Kind: "UpdateInformer", Name: informer}},
		},
		Impact: updatev1beta1.InsightImpact{Level: level, Type: "Unknown", Reason: reason, Summary: summary, Description: description},
	}, at)
}

// NotShown returns the summary of an insight that counts the hidden insights of an informer.
func NotShown(informer string, count int) string {
	return fmt.Sprintf("%d insights of informer %s are not shown.", count, informer)
}

// AddOwn adds one of the controller's own insights to the control plane. If the insight was published before,
// it keeps its times. The published status may be nil.
func AddOwn(to []updatev1beta1.InformerInsights, made updatev1beta1.Insight, published *updatev1beta1.ControlPlaneStatus) []updatev1beta1.InformerInsights {
	made.FirstObservedTime = made.AcquisitionTime
	if before := own(published, made.UUID); before != nil {
		made.FirstObservedTime, made.AcquisitionTime = before.FirstObservedTime, before.AcquisitionTime
	}
	return Append(to, made)
}

// Append adds the controller's own insights.
func Append(to []updatev1beta1.InformerInsights, own ...updatev1beta1.Insight) []updatev1beta1.InformerInsights {
	at := slices.IndexFunc(to, func(of updatev1beta1.InformerInsights) bool { return of.Name == updatev1beta1.StatusControllerInformer })
	switch {
	case len(own) == 0:
		return to
	case at < 0:
		return append(to, updatev1beta1.InformerInsights{Name: updatev1beta1.StatusControllerInformer, Insights: own})
	}
	to[at].Insights = append(to[at].Insights, own...)
	return to
}

// own finds one of the controller's own insights in the published control plane, or returns nil.
func own(published *updatev1beta1.ControlPlaneStatus, uuid string) *updatev1beta1.Insight {
	if published == nil {
		return nil
	}
	for _, of := range published.UpdateInformers {
		for i := range of.Insights {
			if of.Name == updatev1beta1.StatusControllerInformer && of.Insights[i].UUID == uuid {
				return &of.Insights[i]
			}
		}
	}
	return nil
}
