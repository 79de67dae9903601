// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"context"
	"net/http"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// serveReport serves the page of an upgrade on the loopback address until the context is canceled.
func (o *reportOptions) serveReport(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	server := reportPages(cluster, func(ctx context.Context) (upgradeTarget, error) { return findStarted(ctx, o.Session, cluster, o.args) })
	if _, err := server.Get(ctx); err != nil {
		return err
	}
	return report.Serve(ctx, o.Session, o.Port, server.page)
}

// reportServer serves the page of an upgrade.
type reportServer struct{ report.Cached[[]byte] }

func reportPages(cluster *session.Cluster, find func(context.Context) (upgradeTarget, error)) *reportServer {
	return &reportServer{report.Cached[[]byte]{Clock: cluster.Clock, Read: func(ctx context.Context) ([]byte, error) {
		target, err := find(ctx)
		if err != nil {
			return nil, err
		}
		made := gatherReport(ctx, cluster, target)
		made.Refresh = report.RefreshInterval
		var page bytes.Buffer
		if err := report.Write(&page, made); err != nil {
			return nil, err
		}
		return page.Bytes(), nil
	}}}
}

// page returns the page at /.
func (s *reportServer) page(r *http.Request) ([]byte, error) {
	if r.URL.Path != "/" {
		return nil, report.ErrNoPage
	}
	return s.Get(r.Context())
}
