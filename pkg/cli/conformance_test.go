// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
)

func TestConformance_of_no_informer(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t, "conformance", "--url", server.URL, "--ca", ca)
	if got.code != ExitFailed || !strings.HasPrefix(got.out, "error       discovery: ") || got.errOut != "" {
		t.Errorf("exit code %d, findings:\n%s%s", got.code, got.out, got.errOut)
	}
	checkWidth(t, got.out, defaultWidth)
	var findings []conformance.Finding
	got = run(t, "conformance", "--url", server.URL, "--ca", ca, "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &findings); err != nil || len(findings) == 0 || got.code != ExitFailed {
		t.Errorf("exit code %d, error %v, findings:\n%s", got.code, err, got.out)
	}
}

func TestConformance_flags(t *testing.T) {
	t.Parallel()
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code ExitCode
		want string
	}{
		"no URL":         {nil, ExitUsage, "--url"},
		"not https":      {[]string{"--url", "http://localhost"}, ExitFailed, "https://"},
		"unknown format": {[]string{"--url", "https://localhost", "-o", "yaml"}, ExitUsage, "json"},
		"no CA":          {[]string{"--url", "https://localhost", "--ca", "/nowhere"}, ExitFailed, "--ca"},
		"large CA":       {[]string{"--url", "https://localhost", "--ca", large}, ExitFailed, "64 KiB"},
		"no token":       {[]string{"--url", "https://localhost", "--token-file", "/"}, ExitFailed, "--token-file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, append([]string{"conformance"}, test.args...)...); got.code != test.code || !strings.Contains(got.errOut, test.want) {
				t.Errorf("exit code %d, error %q, want %d and %q", got.code, got.errOut, test.code, test.want)
			}
		})
	}
}
