// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
)

func TestConformance_of_no_informer(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ca := authorityOf(t, server)
	got := run(t, "conformance", "--url", server.URL, "--ca", ca)
	if got.Code != session.ExitFailed || !strings.HasPrefix(got.Out, "error       discovery: ") || got.ErrOut != "" {
		t.Errorf("exit code %d, findings:\n%s%s", got.Code, got.Out, got.ErrOut)
	}
	clitest.CheckWidth(t, got.Out, screen.DefaultWidth)
	var findings []conformance.Finding
	got = run(t, "conformance", "--url", server.URL, "--ca", ca, "-o", "json")
	if err := json.Unmarshal([]byte(got.Out), &findings); err != nil || len(findings) == 0 || got.Code != session.ExitFailed {
		t.Errorf("exit code %d, error %v, findings:\n%s", got.Code, err, got.Out)
	}
}

// TestConformance_names_each_defect checks an informer that breaks several rules and one that breaks none.
func TestConformance_names_each_defect(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(`{"uid": "disk", "scope": {"type": "ControlPlane"}, "impact": {"level": "warning", "summary": "The disk is slow"}, "acquisitionTime": %q}`,
		clitest.Now.UTC().Format(time.RFC3339))
	for name, tc := range map[string]struct {
		insights []string
		code     session.ExitCode
		want     []string
	}{
		"good": {[]string{good}, session.ExitDone, []string{"The informer follows the protocol."}},
		"bad": {[]string{
			good, good,
			strings.NewReplacer("disk", "memory", "warning", "fatal", "ControlPlane", "Node").Replace(good),
			strings.NewReplacer(`"uid": "disk", `, "", "The disk is slow", "two\\nlines").Replace(good),
		}, session.ExitFailed, []string{"error uids:", "error levels:", "error scopes:", "warning texts:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/discovery"):
					_, _ = io.WriteString(w, `{"apiVersion": "config.openshift.io/v1beta1", "kind": "DiscoveryResponse", "spec": {
						"apiVersions": ["hooks.config.openshift.io/v1alpha"], "handlers": [{"name": "status"}]}}`)
				case strings.HasSuffix(r.URL.Path, "/updateInsights"):
					if content, err := io.ReadAll(r.Body); err != nil || len(content) > 0 && !json.Valid(content) {
						w.WriteHeader(http.StatusBadRequest)
						return
					}
					_, _ = fmt.Fprintf(w, `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "status": {"response": "Success"},
						"spec": {"insights": [%s]}}`, strings.Join(tc.insights, ","))
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			t.Cleanup(server.Close)
			got := run(t, "conformance", "--url", server.URL, "--ca", authorityOf(t, server))
			text := strings.Join(strings.Fields(got.Out), " ")
			if got.Code != tc.code || got.ErrOut != "" {
				t.Errorf("exit code %d, want %d, findings:\n%s%s", got.Code, tc.code, got.Out, got.ErrOut)
			}
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the findings lack %q:\n%s", want, got.Out)
				}
			}
		})
	}
}

// authorityOf writes a server's certificate to a file.
func authorityOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestConformance_flags(t *testing.T) {
	t.Parallel()
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code session.ExitCode
		want string
	}{
		"no URL":         {nil, session.ExitUsage, "--url"},
		"not https":      {[]string{"--url", "http://localhost"}, session.ExitFailed, "https://"},
		"unknown format": {[]string{"--url", "https://localhost", "-o", "yaml"}, session.ExitUsage, "json"},
		"no CA":          {[]string{"--url", "https://localhost", "--ca", "/nowhere"}, session.ExitFailed, "--ca"},
		"large CA":       {[]string{"--url", "https://localhost", "--ca", large}, session.ExitFailed, "64 KiB"},
		"no token":       {[]string{"--url", "https://localhost", "--token-file", "/"}, session.ExitFailed, "--token-file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, append([]string{"conformance"}, test.args...)...); got.Code != test.code || !strings.Contains(got.ErrOut, test.want) {
				t.Errorf("exit code %d, error %q, want %d and %q", got.Code, got.ErrOut, test.code, test.want)
			}
		})
	}
}
