// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:7]
}

func TestJobName(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"weekly", strings.Repeat("a", 253), strings.Repeat("a", 233) + ".b", strings.Repeat("a", 230) + "-.-.b"} {
		name := jobName(config, tuesday, "uid")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %q", name, problems)
		}
		if !strings.HasSuffix(name, "-1804021200-"+hashOf("uid")) {
			t.Errorf("the name is %s", name)
		}
	}
}

func TestLabelValue(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"4.20.6": "4.20.6", "4.21.0-rc.1": "4.21.0-rc.1",
		"4.20.6+build": labelValue("4.20.6+build"), strings.Repeat("4", 64): "",
	} {
		got := labelValue(version)
		if valid := validation.IsValidLabelValue("version-" + got); len(valid) > 0 {
			t.Errorf("%s: %q", got, valid)
		}
		if len(version) < 12 && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
