// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// Action is when an action is applied to a cluster.
type Action string

const (
	// PreUpgrade is the action before the upgrade.
	PreUpgrade Action = "pre"
	// PostUpgrade is the action after the upgrade.
	PostUpgrade Action = "post"
)

// ActionWork returns the work of an action for the cluster of a run. nil means that there is no such
// action. Its deletion keeps the ClusterVersion, even without such a deleteOption of the user.
func ActionWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) (*workv1.ManifestWork, error) {
	spec, err := ActionSpec(mcu, action)
	if spec == nil || err != nil {
		return nil, err
	}
	work := newWork(run, ActionName(run.Spec.ManagedClustersUpgrade.UID, action), FormApply)
	work.Spec = *spec
	if !KeepsClusterVersion(work) {
		work = KeepClusterVersion(work)
	}
	return work, nil
}

// HasAction reports whether an upgrade has an action.
func HasAction(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) bool {
	return sourceOf(mcu, action) != nil
}

func sourceOf(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) *fleetv1beta1.UpgradeAction {
	if action == PostUpgrade {
		return mcu.Spec.PostUpgradeAction
	}
	return mcu.Spec.PreUpgradeAction
}

// ActionSpec returns the spec of the works of an action: that of the user, with feedback about each Job.
// nil means that there is no such action.
func ActionSpec(mcu *fleetv1beta1.ManagedClustersUpgrade, action Action) (*workv1.ManifestWorkSpec, error) {
	source := sourceOf(mcu, action)
	if source == nil {
		return nil, nil
	}
	spec := source.ManifestWork.DeepCopy()
	var jobs []workv1.ManifestConfigOption
	for i := range spec.Workload.Manifests {
		var manifest metav1.PartialObjectMetadata
		if err := json.Unmarshal(spec.Workload.Manifests[i].Raw, &manifest); err != nil {
			return nil, fmt.Errorf("decoding manifest %d of the %s-upgrade action: %w", i, action, err)
		}
		if group := manifest.GroupVersionKind().Group; group == "batch" && manifest.Kind == "Job" {
			jobs = append(jobs, jobConfig(&manifest, spec.ManifestConfigs))
		}
	}
	// The agent uses the first configuration with feedback rules that matches.
	spec.ManifestConfigs = append(jobs, spec.ManifestConfigs...)
	return spec, nil
}

// jobConfig returns the configuration of a Job of an action: the feedback that the user has configured
// for it, and that about its result.
func jobConfig(job *metav1.PartialObjectMetadata, configs []workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	meta := workv1.ManifestResourceMeta{Group: "batch", Resource: "jobs", Namespace: job.Namespace, Name: job.Name}
	option := workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: meta.Group, Resource: meta.Resource, Namespace: meta.Namespace, Name: meta.Name},
		FeedbackScrapeType: workv1.FeedbackPollType,
	}
	for i := range configs {
		if len(configs[i].FeedbackRules) > 0 && feedback.Matches(&meta, &configs[i].ResourceIdentifier) {
			option.FeedbackRules = configs[i].DeepCopy().FeedbackRules
			break
		}
	}
	option.FeedbackRules = append(option.FeedbackRules, feedback.ActionJobRules()...)
	return option
}
