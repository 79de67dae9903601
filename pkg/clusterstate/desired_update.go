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
// update must write and own all of them. An omitted field would keep the value of an earlier request, for
// example force or the image of the installed release.
//
// The fields mode and acceptRisks exist only behind feature gates. They are never applied, because
// server-side apply fails for fields that the cluster does not declare.
func DesiredUpdate(release Release) map[string]any {
	return map[string]any{"version": release.Version, "image": release.Image, "force": false, "architecture": ""}
}

// RequestPatch returns a patch that requests a release. It replaces an earlier request completely, but keeps
// its accepted risks and adds acceptedRisks. The resource version is a precondition.
func RequestPatch(version *configv1.ClusterVersion, release Release, acceptedRisks ...string) VersionPatch {
	return desiredUpdatePatch(version, requestFields(version.Spec.DesiredUpdate, release, acceptedRisks))
}

// WithdrawalPatch returns a patch that withdraws a request that has not started. It removes
// spec.desiredUpdate. If the request accepts risks, the patch keeps them and requests the current release
// instead, which is a no-op for the cluster version operator. A request with only accepted risks would be
// invalid. The resource version is a precondition.
func WithdrawalPatch(version *configv1.ClusterVersion) VersionPatch {
	current := VersionOf(version).Current
	if desired := version.Spec.DesiredUpdate; desired != nil && len(desired.AcceptRisks) > 0 && current != (Release{}) {
		return desiredUpdatePatch(version, requestFields(desired, current, nil))
	}
	return desiredUpdatePatch(version, nil)
}

// requestFields returns the merge patch fields of spec.desiredUpdate that request a release.
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

// desiredUpdatePatch returns a merge patch of spec.desiredUpdate. If fields is nil, it removes the request.
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

// VersionPatch is a JSON merge patch of a ClusterVersion with its resource version as a precondition.
type VersionPatch struct {
	metadata, spec map[string]any
}

// WithAnnotation adds an annotation to the patch. If value is nil, the annotation is removed.
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
