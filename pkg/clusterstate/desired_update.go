// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"encoding/json"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DesiredUpdate returns the fields of spec.desiredUpdate that request a release. A client that requests an
// update writes and owns all of them: a field that is left out keeps the value of an earlier request,
// such as the image of the release that is installed, and force.
//
// The fields mode and acceptRisks exist behind feature gates only. Server-side apply of a field that a
// cluster does not declare fails, so they are never applied.
func DesiredUpdate(release Release) map[string]any {
	return map[string]any{"version": release.Version, "image": release.Image, "force": false, "architecture": ""}
}

// RequestPatch returns the patch of a ClusterVersion that requests a release. It replaces an earlier
// request completely, but for the risks that are accepted: it keeps those, and adds acceptedRisks. The
// resource version is its precondition.
func RequestPatch(version *configv1.ClusterVersion, release Release, acceptedRisks ...string) VersionPatch {
	return desiredUpdatePatch(version, requestFields(version.Spec.DesiredUpdate, release, acceptedRisks))
}

// WithdrawalPatch returns the patch of a ClusterVersion that withdraws a request that has not begun.
// spec.desiredUpdate is removed. If risks are accepted in it, they are kept beside a request for the
// current release, which the cluster version operator has nothing to do for: accepted risks alone are
// no valid request. The resource version is its precondition.
func WithdrawalPatch(version *configv1.ClusterVersion) VersionPatch {
	current := VersionOf(version).Current
	if desired := version.Spec.DesiredUpdate; desired != nil && len(desired.AcceptRisks) > 0 && current != (Release{}) {
		return desiredUpdatePatch(version, requestFields(desired, current, nil))
	}
	return desiredUpdatePatch(version, nil)
}

// requestFields returns the fields of a merge patch of spec.desiredUpdate that requests a release.
func requestFields(before *configv1.Update, release Release, acceptedRisks []string) map[string]any {
	fields := DesiredUpdate(release)
	var risks []configv1.AcceptRisk
	if before != nil {
		risks = slices.Clone(before.AcceptRisks)
		if before.Mode != "" {
			fields["mode"] = nil
		}
	}
	kept := len(risks)
	for _, name := range acceptedRisks {
		if !slices.ContainsFunc(risks, func(r configv1.AcceptRisk) bool { return r.Name == name }) {
			risks = append(risks, configv1.AcceptRisk{Name: name})
		}
	}
	if len(risks) > kept {
		fields["acceptRisks"] = risks
	}
	return fields
}

// desiredUpdatePatch returns a merge patch of spec.desiredUpdate; nil removes it.
func desiredUpdatePatch(version *configv1.ClusterVersion, fields map[string]any) VersionPatch {
	var desired any
	if fields != nil {
		desired = fields
	}
	return VersionPatch{
		metadata: map[string]any{"resourceVersion": version.ResourceVersion},
		spec:     map[string]any{"desiredUpdate": desired},
	}
}

// VersionPatch is a JSON merge patch of a ClusterVersion. Its resource version is the precondition.
type VersionPatch struct {
	metadata, spec map[string]any
}

// WithAnnotation returns the patch with an annotation; nil removes it.
func (p VersionPatch) WithAnnotation(key string, value *string) VersionPatch {
	p.metadata = maps.Clone(p.metadata)
	p.metadata["annotations"] = map[string]any{key: value}
	return p
}

// Type implements client.Patch.
func (p VersionPatch) Type() types.PatchType { return types.MergePatchType }

// Data implements client.Patch.
func (p VersionPatch) Data(client.Object) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": p.metadata, "spec": p.spec})
}
