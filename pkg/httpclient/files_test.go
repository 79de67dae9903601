// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

func TestFiles_must_be_regular_and_bounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(respondWith(200, "x"))
	t.Cleanup(server.Close)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ca := caPEM(server)
	padded := ca + strings.Repeat("\n", 64<<10-len(ca))
	link := filepath.Join(t.TempDir(), "link") // like a kubelet mounts ConfigMaps and Secrets
	if err := os.Symlink(writeTempFile(t, ca), link); err != nil {
		t.Fatal(err)
	}
	goodCA, goodToken := writeTempFile(t, ca), writeTempFile(t, "token")
	for name, tc := range map[string]struct{ ca, token, want string }{
		"both are right":         {goodCA, goodToken, ""},
		"a CA that is a link":    {link, goodToken, ""},
		"a CA of 64 KiB":         {writeTempFile(t, padded), goodToken, ""},
		"a CA of more":           {writeTempFile(t, padded+"\n"), goodToken, "is longer than 65536 bytes"},
		"a CA without an end":    {"/dev/zero", goodToken, "/dev/zero is not a regular file"},
		"a CA that is a pipe":    {pipe, goodToken, "is not a regular file"},
		"a CA directory":         {t.TempDir(), goodToken, "is not a regular file"},
		"a token of more":        {goodCA, writeTempFile(t, strings.Repeat("t", 64<<10+1)), "is longer than 65536 bytes"},
		"a token without an end": {goodCA, "/dev/zero", "/dev/zero is not a regular file"},
		"a token that is a pipe": {goodCA, pipe, "is not a regular file"},
		"a token directory":      {goodCA, t.TempDir(), "is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, httpclient.Options{URL: server.URL, CAFile: tc.ca, TokenFile: tc.token}).Do(t.Context(), get)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestToken_of_the_ServiceAccount_is_sent_to_cluster_services_only(t *testing.T) {
	t.Parallel()
	const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	for name, tc := range map[string]struct {
		url, tokenFile string
		allowed        bool
	}{
		"a service":                       {"https://thanos-querier.openshift-monitoring.svc:9091", mounted, true},
		"a service by its whole name":     {"https://thanos-querier.openshift-monitoring.svc.cluster.local:9091", mounted, true},
		"a service with a dot at its end": {"https://thanos-querier.openshift-monitoring.svc.:9091", mounted, true},
		"a service in upper case":         {"https://Thanos-Querier.OpenShift-Monitoring.SVC:9091", mounted, true},
		"another host":                    {"https://prometheus.example.com", mounted, false},
		"a name that ends like a service": {"https://svc", mounted, false},
		"a name with too many parts":      {"https://a.b.c.svc", mounted, false},
		"a name with too few parts":       {"https://a.svc", mounted, false},
		"a domain below svc":              {"https://a.b.svc.example.com", mounted, false},
		"a domain that ends with svc":     {"https://a.notsvc", mounted, false},
		"an address":                      {"https://10.0.0.1:9091", mounted, false},
		"by the shorter path":             {"https://prometheus.example.com", "/run/secrets/kubernetes.io/serviceaccount/token", false},
		"by a path with detours":          {"https://prometheus.example.com", "/var/run/../run/secrets//kubernetes.io/serviceaccount/token", false},
		"by a path with a data directory": {"https://prometheus.example.com", "/var/run/secrets/kubernetes.io/serviceaccount/..data/token", false},
		"another token":                   {"https://prometheus.example.com", "/etc/webhook/token", true},
		"a token for another audience":    {"https://prometheus.example.com", "/var/run/secrets/tokens/receiver", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := httpclient.New(httpclient.Options{URL: tc.url, TokenFile: tc.tokenFile})
			if (err == nil) != tc.allowed || err != nil && !strings.Contains(err.Error(), "must be a service of the cluster, for example https://") {
				t.Errorf("got %v, want it allowed: %t", err, tc.allowed)
			}
		})
	}
}

func TestToken_of_the_ServiceAccount_is_recognized_under_another_name(t *testing.T) {
	t.Parallel()
	received := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "token")
	rewrite(t, filepath.Join(dir, "token"), "secret")
	if err := os.Symlink(filepath.Join(dir, "token"), elsewhere); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, httpclient.Options{URL: server.URL, CAFile: writeTempFile(t, caPEM(server)), TokenFile: elsewhere})
	if _, err := c.Do(t.Context(), get); err != nil || received != "Bearer secret" {
		t.Fatalf("a token of another name was not sent: %q, %v", received, err)
	}
	c.SetServiceAccountDir(dir)
	received = ""
	if _, err := c.Do(t.Context(), get); err == nil || !strings.Contains(err.Error(), "the token of the pod's ServiceAccount is not sent elsewhere") || received != "" {
		t.Errorf("sent %q, %v", received, err)
	}
}
