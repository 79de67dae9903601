// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// TestRun_needs_no_service checks that the operator started by `make run`, which runs outside the
// cluster, does not connect to any service in it, not even by default.
func TestRun_needs_no_service(t *testing.T) {
	t.Parallel()
	parsed, err := config.Parse(readFile(t, "run.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	effective, err := yaml.Marshal(parsed)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(effective)) {
		if strings.Contains(line, "https://") {
			t.Errorf("the operator connects to %s", strings.TrimSpace(line))
		}
	}
}
