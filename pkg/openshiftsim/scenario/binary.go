// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// binaryKinds returns kinds whose controllers or effects exist only on a dev cluster.
func binaryKinds() []string {
	return []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "CustomResourceDefinition"}
}

// validateBinary returns an error for each part of a scenario that needs the operator's binary or a
// real server but does not declare that.
func (s *Scenario) validateBinary() field.ErrorList {
	if s.Binary {
		return nil
	}
	var allErrs field.ErrorList
	require := func(by *field.Path, needed bool) {
		if needed {
			detail := fmt.Sprintf("%s does not exist in virtual time: write binary: true", by)
			allErrs = append(allErrs, field.Required(field.NewPath("binary"), detail))
		}
	}
	require(field.NewPath("cluster", "cvo"), s.Cluster.CVO == openshiftsim.Real)
	require(field.NewPath("operator", "replicas"), s.Operator.Replicas > 1)
	text, err := json.Marshal(s.Operator.Config)
	require(field.NewPath("operator", "config"), err == nil && strings.Contains(string(text), ReceiverURL))
	for i, object := range s.Objects {
		kind, _ := object["kind"].(string)
		require(field.NewPath("objects").Index(i), slices.Contains(binaryKinds(), kind))
	}
	s.eachPart(
		func(at *field.Path, object Object) { require(at, object.requiresBinary()) },
		func(at *field.Path, action Action) { require(at, action.requiresBinary()) },
	)
	return allErrs
}

func (o Object) requiresBinary() bool {
	return o.Kind == KindAlert || slices.Contains(binaryKinds(), o.Kind)
}

func (a Action) requiresBinary() bool {
	kind, _ := a.Apply["kind"].(string)
	return a.APIServer != "" || a.Etcd != "" || a.Configure != nil || a.Denied != nil || a.Informer != nil || a.Operator == killLeader || slices.Contains(binaryKinds(), kind) ||
		a.Delete != nil && a.Delete.Kind != "CustomResourceDefinition" && a.Delete.requiresBinary() ||
		a.Check != nil && a.Check.For.requiresBinary() || a.Until != nil && a.Until.For.requiresBinary()
}
