// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// newGenerator returns a generator of objects of this package.
func newGenerator() *crdtest.Generator {
	kinds := map[string]string{
		"admissionTime": "time", "cron": "cron", "isoWeek": "isoWeek", "location": "location", "version": "version", "image": "image",
		"upstream": "upstream", "channel": "channel", "operator": "operator", "name": "name", "namespace": "name", "reason": "reason", "uid": "name", "clusterSets": "name",
	}
	for _, name := range []string{
		"minSuccessTime", "duration", "clusterUpgrade", "operatorsUpgrade", "apply", "action", "failing", "stall", "soak",
		"clusterUpgradeTimeout", "operatorsUpgradeTimeout", "stallTimeout", "failingTimeout", "actionTimeout", "applyTimeout",
	} {
		kinds[name] = "duration"
	}
	return &crdtest.Generator{
		Rand: rand.New(rand.NewPCG(2027, 3)), Kinds: kinds,
		Required: []string{"version", "placement", "workload", "manifests"},
		Seldom:   []string{"claimsOnly", "manifestConfigs", "executor", "upgradeConfig", "decisionStrategy", "outcome"},
		Parts: map[string]func(*crdtest.Generator) any{
			"matchExpressions": func(*crdtest.Generator) any {
				return map[string]any{"key": "region", "operator": "In", "values": []any{"eu"}}
			},
		},
	}
}

// convert converts a Duration, and a number or percentage of a strategy.
func convert(value any) error {
	switch value := value.(type) {
	case *intstr.IntOrString:
		if value == nil {
			return nil
		}
		if n, err := intstr.GetScaledValueFromIntOrPercent(value, 1000, true); err != nil || n < 0 {
			return fmt.Errorf("%d, %w", n, err)
		}
	case fleetv1beta1.Duration:
		if value == "" {
			return nil
		}
		if d, err := time.ParseDuration(string(value)); err != nil || d <= 0 || d > 168*time.Hour {
			return fmt.Errorf("%s, %w", d, err)
		}
	}
	return nil
}

func TestAcceptedObjectsDecode(t *testing.T) {
	t.Parallel()
	decoder := crdtest.StrictDecoder(t, fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme)
	validators := crdtest.Validators(t, definitionsFolder, "")
	for kind, crd := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			crdtest.Decoding{Definition: crd, Validator: validators[kind], Decoder: decoder, Convert: convert}.Check(t, newGenerator(), 600)
		})
	}
}
