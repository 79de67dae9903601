// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// TestChatRecipe runs Alertmanager with the configuration of docs/chat.md, and checks what Slack and Microsoft Teams get for
// an alert, and that they get no alert of others.
func TestChatRecipe(t *testing.T) {
	t.Parallel()
	messages := make(chan string, 10)
	chat := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		messages <- r.URL.Path + " " + string(body)
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(chat.Close)
	page, err := os.ReadFile("../../docs/chat.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)[1]
	configuration := strings.NewReplacer(
		"https://hooks.slack.com/services/EXAMPLE", chat.URL+"/slack", "https://example.webhook.office.com/EXAMPLE", chat.URL+"/teams", "group_wait: 30s", "group_wait: 0s",
	).Replace(string(recipe))
	url := startAlertmanager(t, configuration)

	alert := func(name string) map[string]any {
		return map[string]any{
			"labels": map[string]string{"alertname": name, "namespace": "managed-upgrade-operator", "name": "cluster"},
			"annotations": map[string]string{
				"summary": "A cluster upgrade failed.", "description": "The upgrade to 4.20.6 failed.", "runbook_url": "https://example.com/ManagedUpgradeFailed.md",
			},
		}
	}
	body, err := json.Marshal([]any{alert("KubePodCrashLooping"), alert("ManagedUpgradeFailed")})
	if err != nil {
		t.Fatal(err)
	}
	post := func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v2/alerts", bytes.NewReader(body))
		if err != nil {
			return false, err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(request)
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, post); err != nil {
		t.Fatalf("Alertmanager does not accept alerts: %v", err)
	}
	got := map[string]string{}
	for range 2 {
		select {
		case message := <-messages:
			path, text, _ := strings.Cut(message, " ")
			got[path] = text
		case <-time.After(30 * time.Second):
			t.Fatalf("the chats got %v only", got)
		}
	}
	for path, link := range map[string]string{"/slack": `\u003chttps://example.com/ManagedUpgradeFailed.md|What to do\u003e`, "/teams": "[What to do](https://example.com/ManagedUpgradeFailed.md)"} {
		for _, want := range []string{"A cluster upgrade failed.", "The upgrade to 4.20.6 failed.", link} {
			if !strings.Contains(got[path], want) {
				t.Errorf("%s got %s, want %s", path, got[path], want)
			}
		}
	}
	if len(messages) > 0 {
		t.Errorf("the chats also got %s", <-messages)
	}
}

// startAlertmanager starts Alertmanager with a configuration, and returns its URL.
func startAlertmanager(t *testing.T, configuration string) string {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.RequireBuilt(bin, "make bin/alertmanager", "alertmanager"); err != nil {
		t.Fatal(err)
	}
	port, err := controlplane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	folder, address := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", port)
	file, log := filepath.Join(folder, "alertmanager.yaml"), filepath.Join(folder, "log")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := childprocess.Start(childprocess.Command{Path: filepath.Join(bin, "alertmanager"), Log: log, Args: []string{
		"--config.file=" + file, "--storage.path=" + folder, "--web.listen-address=" + address, "--cluster.listen-address=",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Stop(10 * time.Second)
		if t.Failed() {
			printed, _ := os.ReadFile(log)
			t.Logf("Alertmanager printed:\n%s", printed)
		}
	})
	return "http://" + address
}
