// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"fmt"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manifests is how many manifests a release has that are reported one by one.
const manifests = 901

// report brings the history and the conditions up to date.
func (p *player) report(version *configv1.ClusterVersion, operators []configv1.ClusterOperator, invalid error, now time.Time) {
	if p.load == nil { // otherwise what is being done is not what is asked for
		version.Status.ObservedGeneration = version.Generation
	}
	p.reportHistory(version, now)

	reason := ""
	if invalid != nil {
		reason = "InvalidClusterVersion"
		set(version, invalidVersion, configv1.ConditionTrue, reason, "The cluster version is invalid: "+invalid.Error(), now)
	} else {
		remove(version, invalidVersion)
	}
	if p.work == nil {
		set(version, configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+p.payload.Version, now)
	}

	problem, detail, names := p.problem(operators, now)
	if problem != "" {
		set(version, failing, configv1.ConditionTrue, problem, detail, now)
		if p.work == nil {
			set(version, configv1.OperatorProgressing, configv1.ConditionFalse, problem,
				fmt.Sprintf("Error while reconciling %s: the %s", p.payload.Version, lower(detail)), now)
		} else {
			set(version, configv1.OperatorProgressing, configv1.ConditionTrue, problem,
				fmt.Sprintf("Unable to apply %s: the %s", p.payload.Version, lower(detail)), now)
		}
		return
	}
	set(version, failing, configv1.ConditionFalse, "", "", now)
	switch {
	case p.work == nil && invalid != nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionFalse, reason,
			fmt.Sprintf("Stopped at %s: the cluster version is invalid", p.payload.Version), now)
	case p.work == nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+p.payload.Version, now)
	case invalid != nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionTrue, reason,
			fmt.Sprintf("Reconciling %s: the cluster version is invalid", p.payload.Version), now)
	default:
		reason, message := p.progress(names, now)
		set(version, configv1.OperatorProgressing, configv1.ConditionTrue, reason, message, now)
	}
}

// progress returns how far the update is: as many manifests are done as operators are, and as the current operator has
// used up of its time.
func (p *player) progress(names []string, now time.Time) (reason, message string) {
	count := len(p.options.Operators)
	share := float64(p.work.current)
	if p.work.current < count {
		operator := p.options.Operators[p.work.current]
		share += min(0.9, float64(now.Sub(p.work.since))/float64(p.takes(operator)))
	}
	done := min(manifests, int(manifests*share/float64(max(1, count))))
	message = fmt.Sprintf("Working towards %s: %d of %d done (%d%% complete)", p.payload.Version, done, manifests, 100*done/manifests)
	switch {
	case done == 0:
		return "", "Working towards " + p.payload.Version
	case len(names) == 0 || now.Sub(p.work.since) < lookAgain:
		return "", message
	case p.troubled.IsZero():
		return "ClusterOperatorUpdating", message + ", waiting on " + strings.Join(names, ", ")
	default:
		return "ClusterOperatorDegraded", message + ", waiting up to 40 minutes on " + strings.Join(names, ", ")
	}
}

// problem returns what keeps the cluster from its desired state, if anything does: the reason, a sentence, and the names
// of the operators that an update waits for.
func (p *player) problem(operators []configv1.ClusterOperator, now time.Time) (reason, message string, names []string) {
	candidates := operators
	if p.work != nil {
		candidates = p.blocking(operators)
	}
	var unavailable, degraded []string
	for i := range candidates {
		names = append(names, candidates[i].Name)
		switch trouble(&candidates[i]) {
		case "ClusterOperatorNotAvailable":
			unavailable = append(unavailable, candidates[i].Name)
		case "ClusterOperatorDegraded":
			degraded = append(degraded, candidates[i].Name)
		}
	}
	if len(degraded) == 0 {
		p.troubled = time.Time{}
	} else if p.troubled.IsZero() {
		p.troubled = now
	}
	switch {
	case len(unavailable) > 0:
		reason, message = sentence("NotAvailable", "not available", unavailable)
	case len(degraded) > 0 && (p.work == nil || now.Sub(p.troubled) >= p.options.Speed.Of(failingAfter)):
		reason, message = sentence("Degraded", "degraded", degraded)
	}
	return reason, message, names
}

func sentence(suffix, adjective string, names []string) (reason, message string) {
	if len(names) == 1 {
		return "ClusterOperator" + suffix, fmt.Sprintf("Cluster operator %s is %s", names[0], adjective)
	}
	return "ClusterOperators" + suffix, fmt.Sprintf("Cluster operators %s are %s", strings.Join(names, ", "), adjective)
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// reportHistory keeps an entry of the payload in front: Partial while work is under way, then Completed. An update that
// was superseded stays Partial and has a completion time, like the real one's.
func (p *player) reportHistory(version *configv1.ClusterVersion, now time.Time) {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	version.Status.Desired = configv1.Release{
		Version: p.payload.Version, Image: p.payload.Image(), URL: configv1.URL(p.payload.URL()), Channels: p.payload.Channels,
	}
	version.Status.VersionHash = "played"
	history := version.Status.History
	if len(history) == 0 || history[0].Image != p.payload.Image() {
		if len(history) > 0 && history[0].CompletionTime == nil {
			history[0].CompletionTime = &stamp
		}
		history = append([]configv1.UpdateHistory{{
			State: configv1.PartialUpdate, StartedTime: stamp, Version: p.payload.Version, Image: p.payload.Image(), Verified: true,
		}}, history...)
	}
	if p.work == nil && history[0].State != configv1.CompletedUpdate {
		history[0].State, history[0].CompletionTime = configv1.CompletedUpdate, &stamp
	}
	version.Status.History = history
}
