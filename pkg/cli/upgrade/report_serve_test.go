// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// TestServeReport serves the page, checks that it follows the upgrade, and stops with the context.
func TestServeReport(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t, clitest.AnUpgrade(clitest.CommencedRecord()))
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := withProgram(t, func(_ context.Context, p *session.Session) error {
			p.Cluster, p.Streams.Out = cluster.Cluster, writer
			return (&reportOptions{Session: p, ServeFlags: report.ServeFlags{Port: 0}, args: nil}).serveReport(ctx)
		})
		ended <- errors.Join(err, writer.Close())
	}()
	line := make([]byte, 100)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err, <-ended)
	}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).Find(line[:n])
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, string(address), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.Body.Close() != nil || !bytes.Contains(page, []byte(`<meta http-equiv="refresh" content="30"/>`)) || !bytes.Contains(page, []byte("upgrade/cluster")) {
		t.Errorf("%v: the page is %s", err, page)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestReportServer(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(clitest.Now)
	cluster := clitest.NewFakeCluster(t, clitest.AnUpgrade(clitest.CommencedRecord()))
	cluster.Clock = clock
	found := 0
	var failure error
	s := reportPages(cluster.Cluster, func(context.Context) (upgradeTarget, error) {
		found++
		return targetOf(clitest.AnUpgrade(clitest.CommencedRecord())), failure
	})
	get := func(method, url string) (int, string) {
		w := httptest.NewRecorder()
		report.Pages(s.page).Handler("127.0.0.1:8000").ServeHTTP(w, httptest.NewRequest(method, url, http.NoBody))
		return w.Code, w.Body.String()
	}
	for _, tc := range []struct {
		method, url string
		code        int
	}{
		{http.MethodGet, "http://127.0.0.1:8000/", http.StatusOK},
		{http.MethodGet, "http://rebound.example.com:8000/", http.StatusNotFound},
		{http.MethodPost, "http://127.0.0.1:8000/", http.StatusNotFound},
		{http.MethodGet, "http://127.0.0.1:8000/other", http.StatusNotFound},
	} {
		if code, body := get(tc.method, tc.url); code != tc.code {
			t.Errorf("%s %s: %d, want %d: %s", tc.method, tc.url, code, tc.code, body)
		}
	}
	if found != 1 {
		t.Errorf("the cluster was read %d times for one page", found)
	}
	clock.Step(report.MaxPageAge)
	failure = errors.New("down")
	if code, body := get(http.MethodGet, "http://127.0.0.1:8000/"); code != http.StatusBadGateway || !strings.Contains(body, "down") {
		t.Errorf("while the API server is down: %d, %s", code, body)
	}
	failure = nil
	clock.Step(time.Second)
	if code, _ := get(http.MethodGet, "http://127.0.0.1:8000/"); code != http.StatusOK || found != 3 {
		t.Errorf("afterwards: %d, and the cluster was read %d times", code, found)
	}
}
