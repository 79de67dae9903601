// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// The limits with 50 nodes and 50 pods: anonymous memory in KiB, and the processor time of both replicas for each upgrade.
const (
	maxStandbyMemory = 9 << 10
	maxLeaderMemory  = 22 << 10
	maxProcessorTime = 3 * time.Second
)

func BenchmarkReplicas(b *testing.B) {
	b.Log("Method: two replicas elect a leader on a cluster of 50 nodes and 50 pods, and nine upgrades follow one another." +
		" RssAnon of each replica is read when it has been ready for a minute, and after the upgrades;" +
		" the processor time is utime and stime of both in /proc from then to the end of the upgrades.")
	const upgrades = 9
	for b.Loop() {
		all := releases(upgrades)
		cluster := startCluster(b, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Masters: 3, Workers: 47, Releases: all, Monitoring: &alerting.Spec{}})
		userClient := newUserClient(b, cluster)
		createPods(b, userClient, 50)
		servers := countExternal(b, cluster)
		operator := startOperator(b, cluster, devcluster.OperatorOptions{Config: servers.configuration(alertsInterval), Replicas: 2})
		leader, standby := electedAmong(b, operator)
		sleep(b, time.Minute)
		memory := map[string]int{"leader": statusOf(b, leader.PID(), "RssAnon"), "standby": statusOf(b, standby.PID(), "RssAnon")}
		before := processorTime(b, leader.PID()) + processorTime(b, standby.PID())
		for _, release := range all {
			config := upgradeTo(release.Version)
			applyUpgrade(b, userClient, config)
			eventually(b, 10*time.Minute, "the upgrade to "+release.Version+" is finished", func(ctx context.Context) error {
				var current upgradev1alpha1.UpgradeConfig
				if err := userClient.Get(ctx, client.ObjectKeyFromObject(config), &current); err != nil {
					return err
				}
				if !isFinished(&current, release.Version) || len(current.Finalizers) > 0 {
					return fmt.Errorf("its status is %+v", current.Status)
				}
				return nil
			})
		}
		spent := processorTime(b, leader.PID()) + processorTime(b, standby.PID()) - before
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(memory["standby"])/1024, "MiB-standby")
		b.ReportMetric(float64(memory["leader"])/1024, "MiB-leader")
		b.ReportMetric(float64(statusOf(b, leader.PID(), "RssAnon"))/1024, "MiB-leader-after")
		b.ReportMetric(spent.Seconds()/upgrades, "cpu-s/upgrade")
		if spent > upgrades*maxProcessorTime {
			b.Errorf("each upgrade takes %s of processor time, want at most %s", spent/upgrades, maxProcessorTime)
		}
		if memory["standby"] > maxStandbyMemory || memory["leader"] > maxLeaderMemory {
			b.Errorf("the replicas have %v KiB of anonymous memory, want at most %d (standby) and %d (leader)", memory, maxStandbyMemory, maxLeaderMemory)
		}
	}
}

// The limits of the leader election with the operator's defaults.
const (
	maxLeaseRequests = 6.0 // a minute, of two replicas
	// A standby checks the Lease every 26 to 58 s, because of the jitter of client-go. Its 137 s begin up to that
	// long after the last renewal, and it may check again that long after they end.
	maxTakeover = (58 + 137 + 58) * time.Second
)

func BenchmarkLeases(b *testing.B) {
	b.Log("Method: two replicas with the default times of the leader election are idle for four minutes; the audit log counts their requests for Leases." +
		" Then the leader is killed, and the time is taken until the other one leads.")
	const idle = 4 * time.Minute
	for b.Loop() {
		cluster := startCluster(b, openshiftsim.ClusterSpec{Version: installed, Speed: fast})
		operator := startOperator(b, cluster, devcluster.OperatorOptions{Replicas: 2, DefaultLeases: true})
		leader, standby := electedAmong(b, operator)
		since := time.Now()
		sleep(b, idle)
		leases := slices.DeleteFunc(auditedRequests(b, cluster), func(r request) bool {
			return r.Stage != stageComplete || r.Object.Resource != "leases" || r.Received.Before(since)
		})
		perMinute := float64(len(leases)) / idle.Minutes()
		killed := time.Now()
		if err := leader.Kill(); err != nil {
			b.Fatal(err)
		}
		eventually(b, 2*maxTakeover, "the other replica leads", func(ctx context.Context) error {
			if leads, err := standby.IsLeader(ctx); err != nil || !leads {
				return fmt.Errorf("it leads: %t, %w", leads, err)
			}
			return nil
		})
		takeover := time.Since(killed)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(perMinute, "lease-requests/min")
		b.ReportMetric(takeover.Seconds(), "s-takeover")
		if len(leases) == 0 || perMinute > maxLeaseRequests || takeover > maxTakeover {
			b.Errorf("%.1f requests for Leases a minute and a takeover after %s, want 1 to %.0f requests and at most %s", perMinute, takeover, maxLeaseRequests, maxTakeover)
		}
	}
}

// electedAmong waits until one of two replicas leads.
func electedAmong(tb testing.TB, operator *devcluster.Operator) (leader, standby *devcluster.Replica) {
	tb.Helper()
	eventually(tb, time.Minute, "a replica leads", func(ctx context.Context) error {
		replicas := operator.Replicas()
		for i, replica := range replicas {
			if leads, err := replica.IsLeader(ctx); err == nil && leads {
				leader, standby = replica, replicas[1-i]
				return nil
			}
		}
		return errors.New("no replica leads")
	})
	return leader, standby
}

// processorTime returns the time that the processors have spent on a process; proc(5) gives the
// fields, and Linux counts 100 ticks a second for them on every architecture.
func processorTime(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program may contain spaces
	fields := strings.Fields(rest)
	var ticks int
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}
