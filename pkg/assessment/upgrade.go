// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// selfEnding lists the wait reasons that end without user action.
var selfEnding = []string{
	"AddingNodes", "AnalysisInProgress", "AnalysisRequested", "AnotherUpdateInProgress", "ChannelSet", "HooksRunning", "NotDelayed",
	"NotDelivered", "NotSettled", "Requested", "Retrying", "Silenced",
}

// waitingUpgrade returns the first upgrade that has started and is waiting although no update is pending,
// either before or after the cluster itself is updated. It returns nil if there is none.
func (c *cluster) waitingUpgrade() *checks.Upgrade {
	if c.anyPending() {
		return nil
	}
	for i := range c.in.Facts.Upgrades {
		u := &c.in.Facts.Upgrades[i]
		if u.InProgress() && u.Step != nil && u.Step.CompleteTime == nil && u.Step.Status != metav1.ConditionTrue {
			return u
		}
	}
	return nil
}

// needsPerson reports whether the upgrade waits for user action.
func needsPerson(u *checks.Upgrade) bool {
	return u.Step.Reason != "" && !slices.Contains(selfEnding, u.Step.Reason)
}

// summarizeUpgrade says what an upgrade waits for outside of the cluster's update, and until when.
func (c *cluster) summarizeUpgrade(out *updatev1beta1.Assessment, u *checks.Upgrade) {
	out.FromRelease, out.Release = bounded(cmp.Or(u.From, c.release), maxRelease), bounded(u.To, maxRelease)
	out.ActionRequired = needsPerson(u)
	ref := upgradeRef(u)
	until := ""
	if u.StartBefore.After(c.now) && c.release != out.Release {
		until = " until " + u.StartBefore.UTC().Format("2006-01-02 15:04") + " UTC"
	}
	why := clean(cmp.Or(u.Step.Message, u.Step.Reason, "no reason is reported"))
	out.Summary = bounded(fmt.Sprintf("%s %s/%s waits%s at step %s: %s", ref.Kind, ref.Namespace, ref.Name, until, bounded(u.Step.Type, maxDetail), why), maxText)
}

func adviseUpgrade(u *checks.Upgrade) *updatev1beta1.Remedy {
	ref := upgradeRef(u)
	v := &vertex{object: object{kind: ref.Kind, namespace: ref.Namespace, name: ref.Name}, apiVersion: ref.APIVersion}
	remedy := &updatev1beta1.Remedy{Type: diagnoses, Text: "Remove what the upgrade waits for:"}
	if command := fill(getUpgrade, v); command != "" {
		remedy.Commands = []string{command}
	} else {
		remedy.Commands = []string{allInsights}
	}
	return remedy
}
