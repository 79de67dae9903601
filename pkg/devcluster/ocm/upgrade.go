// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/stored"
)

//go:embed upgrade.yaml
var upgrade string

// UpgradeYAML returns the manifest of an upgrade of all clusters: first the canaries, then two
// groups.
func UpgradeYAML() string { return strings.TrimSpace(upgrade) }

// NewUpgrade returns the upgrade of UpgradeYAML.
func NewUpgrade() (*fleetv1beta1.ManagedClustersUpgrade, error) {
	parsed := &fleetv1beta1.ManagedClustersUpgrade{}
	content, err := yaml.YAMLToJSONStrict([]byte(upgrade))
	if err == nil {
		err = stored.DecodeStrict(content, parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("decoding the upgrade: %w", err)
	}
	return parsed, nil
}
