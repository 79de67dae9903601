// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// report writes the decisive InstallPlans to the Job if they have changed.
func (a *Approver) report(ctx context.Context, concerned []*clusterstate.Subscription) error {
	if a.Options.Report.Name == "" {
		return nil
	}
	plans := make([]types.NamespacedName, len(concerned))
	for i, s := range concerned {
		plans[i] = types.NamespacedName{Namespace: s.Namespace, Name: s.Plan.Name}
	}
	written := report.New(len(concerned), plans)
	annotations, err := written.Annotations()
	if err != nil {
		return fmt.Errorf("reporting the InstallPlans: %w", err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if a.reported == string(patch) {
		return nil
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: a.Options.Report.Namespace, Name: a.Options.Report.Name}}
	if err := a.Client.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("reporting to Job %s: %w", job.Name, err)
	}
	a.reported = string(patch)
	return nil
}
