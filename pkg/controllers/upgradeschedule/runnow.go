// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// handleRunNow answers a request to run an upgrade now. It reports whether there was an unanswered
// one.
func (s *scope) handleRunNow(ctx context.Context) (bool, error) {
	token := maintenance.RequestToken(s.cfg, maintenancev1beta1.RunNowAnnotation)
	answered := maintenancev1beta1.RunNowStatus{}
	if s.cfg.Status.RunNow != nil {
		answered = *s.cfg.Status.RunNow
	}
	if token == "" || token == answered.Token {
		return false, nil
	}
	id := maintenancev1beta1.SlotRunNowPrefix + text.Hash(fmt.Sprintf("%q %q %q", answered.Token, answered.Job, token), 8) // the same token may be used again later
	answer := &maintenancev1beta1.RunNowStatus{Token: token}
	job, err := s.findJob(ctx, id)
	if err != nil {
		return true, err
	}
	if refusal := s.refuseRunNow(id); refusal != "" && job == nil {
		s.status.RunNow = answer
		return true, s.publish(ctx, id, corev1.EventTypeWarning, "RunNowRejected", "the requested upgrade cannot run: "+refusal+"; to request it again, set annotation "+maintenancev1beta1.RunNowAnnotation+" to another value")
	}
	if job == nil {
		job, err = s.createJob(ctx, request{slot: id, start: s.now.Truncate(time.Second), release: s.newest.Release, name: string(s.cfg.UID) + id})
	}
	if manager.IsRejected(err) {
		s.status.RunNow = answer
		return true, s.publish(ctx, id, corev1.EventTypeWarning, "RunNowRejected", "the API server rejects the UpgradeJob: "+err.Error())
	}
	if err != nil {
		return true, err
	}
	answer.Job = job.Name
	s.status.RunNow = answer
	s.scheduled(job)
	return true, s.publish(ctx, id, corev1.EventTypeNormal, "JobCreated", describeJob(job))
}

// refuseRunNow returns the reason why no upgrade can run now with the request as its slot, or "" if
// one can.
func (s *scope) refuseRunNow(slot string) string {
	if s.problem.reason != "" {
		return s.problem.message
	}
	if by, suspended := s.window(s.now, slot); suspended {
		return "suspended by " + by.String()
	}
	switch {
	case s.pendingJobs() >= maxPending:
		return fmt.Sprintf("%d UpgradeJobs have not ended", maxPending)
	case s.newest.Release.Version != "":
		return ""
	case s.unknown != "":
		return "the available updates are unknown: " + s.unknown
	case s.cfg.Spec.WhenNoUpdate != maintenancev1beta1.NoUpdateRunHooks:
		return s.noUpdate()
	}
	return ""
}
