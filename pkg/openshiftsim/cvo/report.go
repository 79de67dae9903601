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

// manifests is the number of manifests of a release. Progress is reported in manifests.
const manifests = 901

// report updates the history and the conditions.
func (s *Simulator) report(version *configv1.ClusterVersion, operators []configv1.ClusterOperator, invalid error, now time.Time) {
	if s.load == nil { // otherwise, the desired release is not the payload yet
		version.Status.ObservedGeneration = version.Generation
	}
	s.reportHistory(version, now)

	reason := ""
	if invalid != nil {
		reason = "InvalidClusterVersion"
		set(version, invalidVersion, configv1.ConditionTrue, reason, "The cluster version is invalid: "+invalid.Error(), now)
	} else {
		remove(version, invalidVersion)
	}
	if s.work == nil {
		set(version, configv1.OperatorAvailable, configv1.ConditionTrue, "", "Done applying "+s.payload.Version, now)
	}

	problem, detail, names := s.problem(operators, now)
	if problem != "" {
		set(version, failing, configv1.ConditionTrue, problem, detail, now)
		if s.work == nil {
			set(version, configv1.OperatorProgressing, configv1.ConditionFalse, problem,
				fmt.Sprintf("Error while reconciling %s: the %s", s.payload.Version, lower(detail)), now)
		} else {
			set(version, configv1.OperatorProgressing, configv1.ConditionTrue, problem,
				fmt.Sprintf("Unable to apply %s: the %s", s.payload.Version, lower(detail)), now)
		}
		return
	}
	set(version, failing, configv1.ConditionFalse, "", "", now)
	switch {
	case s.work == nil && invalid != nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionFalse, reason,
			fmt.Sprintf("Stopped at %s: the cluster version is invalid", s.payload.Version), now)
	case s.work == nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionFalse, "", "Cluster version is "+s.payload.Version, now)
	case invalid != nil:
		set(version, configv1.OperatorProgressing, configv1.ConditionTrue, reason,
			fmt.Sprintf("Reconciling %s: the cluster version is invalid", s.payload.Version), now)
	default:
		reason, message := s.progress(names, now)
		set(version, configv1.OperatorProgressing, configv1.ConditionTrue, reason, message, now)
	}
}

// progress returns the reason and the message of an update in progress. The share of applied
// manifests is the share of updated operators plus the elapsed share of the current one.
func (s *Simulator) progress(names []string, now time.Time) (reason, message string) {
	count := len(s.options.Operators)
	share := float64(s.work.current)
	if s.work.current < count {
		operator := s.options.Operators[s.work.current]
		share += min(0.9, float64(now.Sub(s.work.since))/float64(s.updateDuration(operator)))
	}
	done := min(manifests, int(manifests*share/float64(max(1, count))))
	message = fmt.Sprintf("Working towards %s: %d of %d done (%d%% complete)", s.payload.Version, done, manifests, 100*done/manifests)
	switch {
	case done == 0:
		return "", "Working towards " + s.payload.Version
	case len(names) == 0 || now.Sub(s.work.since) < s.options.ProgressInterval:
		return "", message
	case s.degradedSince.IsZero():
		return "ClusterOperatorUpdating", message + ", waiting on " + strings.Join(names, ", ")
	default:
		return "ClusterOperatorDegraded", message + ", waiting up to 40 minutes on " + strings.Join(names, ", ")
	}
}

// problem returns the reason and message of a failing cluster, and the names of the operators that
// an update is waiting for. The reason is empty if the cluster is not failing.
func (s *Simulator) problem(operators []configv1.ClusterOperator, now time.Time) (reason, message string, names []string) {
	candidates := operators
	if s.work != nil {
		candidates = s.blocking(operators)
	}
	var unavailable, degraded []string
	for i := range candidates {
		names = append(names, candidates[i].Name)
		switch blockingReason(&candidates[i]) {
		case "ClusterOperatorNotAvailable":
			unavailable = append(unavailable, candidates[i].Name)
		case "ClusterOperatorDegraded":
			degraded = append(degraded, candidates[i].Name)
		}
	}
	if len(degraded) == 0 {
		s.degradedSince = time.Time{}
	} else if s.degradedSince.IsZero() {
		s.degradedSince = now
	}
	switch {
	case len(unavailable) > 0:
		reason, message = reasonAndMessage("NotAvailable", "not available", unavailable)
	case len(degraded) > 0 && (s.work == nil || now.Sub(s.degradedSince) >= s.options.Speed.Scale(failingAfter)):
		reason, message = reasonAndMessage("Degraded", "degraded", degraded)
	}
	return reason, message, names
}

func reasonAndMessage(suffix, adjective string, names []string) (reason, message string) {
	if len(names) == 1 {
		return "ClusterOperator" + suffix, fmt.Sprintf("Cluster operator %s is %s", names[0], adjective)
	}
	return "ClusterOperators" + suffix, fmt.Sprintf("Cluster operators %s are %s", strings.Join(names, ", "), adjective)
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// reportHistory keeps an entry for the payload at the front: Partial during the update, then
// Completed. As on a real cluster, a superseded update stays Partial and gets a completion time.
func (s *Simulator) reportHistory(version *configv1.ClusterVersion, now time.Time) {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	version.Status.Desired = configv1.Release{
		Version: s.payload.Version, Image: s.payload.Image(), URL: configv1.URL(s.payload.URL()), Channels: s.payload.Channels,
	}
	version.Status.VersionHash = "simulated"
	history := version.Status.History
	if len(history) == 0 || history[0].Image != s.payload.Image() {
		if len(history) > 0 && history[0].CompletionTime == nil {
			history[0].CompletionTime = &stamp
		}
		history = append([]configv1.UpdateHistory{{
			State: configv1.PartialUpdate, StartedTime: stamp, Version: s.payload.Version, Image: s.payload.Image(), Verified: !s.payload.Unsigned,
		}}, history...)
	}
	if s.work == nil && history[0].State != configv1.CompletedUpdate {
		history[0].State, history[0].CompletionTime = configv1.CompletedUpdate, &stamp
	}
	version.Status.History = history
}
