// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// Causes explains why the update in progress is waiting or stuck, like "oc update status" does.
func Causes(ctx context.Context, c *session.Cluster) ([]report.Cause, error) {
	s, err := readStatus(ctx, c, session.ControllerNamespace, nil)
	if err != nil {
		return nil, err
	}
	assessment := s.object.Status.Assessment
	if assessment == nil || !isUpdating(assessment.State) {
		return nil, nil
	}
	var all []report.Cause
	for i := range assessment.Causes {
		cause := &assessment.Causes[i]
		var one report.Cause
		for _, link := range cause.Chain {
			one.Chain = append(one.Chain, link.Message)
		}
		if remedy := cause.Remedy; remedy != nil && remedy.Type != updatev1beta1.RemedyNone {
			one.Remedy, one.Commands = remedy.Text, remedy.Commands
		}
		all = append(all, one)
	}
	return all, nil
}
