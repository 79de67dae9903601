// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

func TestCustom_is_decoded_strictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // an empty string expects 2 hours of quiet
		"":                                     "",
		"custom: null\n":                       "",
		"custom: {}\n":                         "",
		"custom: {quiet: 2h}\n":                "",
		"custom: {quite: 1h}\n":                "custom: quite: Invalid value: unknown field",
		"custom: {quiet: 2h, quiet: 3h}\n":     "invalid configuration: ",
		"custom: [quiet]\n":                    "invalid configuration: custom: Invalid value: must be a mapping",
		"custom: {quiet: 2h}\nquiet: 2h\n":     "invalid configuration: quiet: ",
		"custom: {quiet: soon}\n":              "custom: ",
		"custom: {quiet: 2h, names: [a, b]}\n": "custom: names: Invalid value: unknown field",
	} {
		settings := struct {
			Quiet metav1.Duration `json:"quiet"`
		}{metav1.Duration{Duration: 2 * time.Hour}}
		c, err := config.Parse([]byte(head + text))
		if err == nil {
			err = c.Custom.Decode(&settings)
		}
		switch {
		case want == "" && (err != nil || settings.Quiet.Duration != 2*time.Hour):
			t.Errorf("%q: got %s, %v", text, settings.Quiet.Duration, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: got the error %v, want %s", text, err, want)
		}
	}
}
