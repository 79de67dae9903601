// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// The limits of a due upgrade behind a backlog: how long it waits after the operator is ready, and how many
// objects of the backlog are served before it.
const (
	maxDueWait    = 5 * time.Second
	maxServedDue  = 50
	backlogLength = 1000
)

// BenchmarkBacklog measures how long a due upgrade waits for others that are not due.
func BenchmarkBacklog(b *testing.B) {
	b.Logf("Method: %d UpgradeConfigs for tomorrow, and one that is due, the last by name, exist before the operator starts. Its first step,"+
		" and the statuses of the others, after the operator is ready.", backlogLength)
	for b.Loop() {
		cluster := startCluster(b, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(1)})
		user := newUserClient(b, cluster)
		for i := range backlogLength + 1 {
			config := upgradeTo("4.20.6")
			config.Name = fmt.Sprintf("tomorrow-%04d", i)
			config.Spec.UpgradeAt = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
			if i == backlogLength {
				config.Name, config.Spec.UpgradeAt = "until-today", time.Now().UTC().Format(time.RFC3339)
			}
			if err := user.Create(b.Context(), config); err != nil {
				b.Fatal(err)
			}
		}
		startOperator(b, cluster, devcluster.OperatorOptions{})
		ready := time.Now()
		var all upgradev1alpha1.UpgradeConfigList
		served := func(ctx context.Context) (due bool, others int, err error) {
			err = user.List(ctx, &all, client.InNamespace(devcluster.OperatorNamespace))
			for i := range all.Items {
				switch config := &all.Items[i]; {
				case config.Name == "until-today":
					due = len(config.Status.History) > 0 && config.Status.History[0].StartTime != nil
				case len(config.Status.Conditions) > 0:
					others++
				}
			}
			return due, others, err
		}
		before := 0
		eventually(b, 5*time.Minute, "the upgrade that is due has begun", func(ctx context.Context) error {
			due, others, err := served(ctx)
			if before = others; err == nil && !due {
				err = fmt.Errorf("%d others are served", others)
			}
			return err
		})
		waited := time.Since(ready)
		eventually(b, 10*time.Minute, "the backlog is served", func(ctx context.Context) error {
			_, others, err := served(ctx)
			if err == nil && others < backlogLength {
				err = fmt.Errorf("%d are served", others)
			}
			return err
		})
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(waited.Seconds(), "s-due")
		b.ReportMetric(float64(before), "served-before")
		b.ReportMetric(time.Since(ready).Seconds(), "s-backlog")
		if waited > maxDueWait || before > maxServedDue {
			b.Errorf("the upgrade that is due waits %s behind %d others, want at most %s and %d", waited, before, maxDueWait, maxServedDue)
		}
	}
}
