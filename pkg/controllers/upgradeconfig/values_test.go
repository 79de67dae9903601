// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// What the lifecycle promises to its users.
const (
	upgradeConfigKind = "UpgradeConfig"
	maxRequeue        = 5 * time.Minute
	publishTimeout    = 5 * time.Minute

	reasonClusterLocked        = "ClusterLocked"
	reasonConfigurationInvalid = "ConfigurationInvalid"
)

func isFinished(record history.Record) bool { return record.CompleteTime != nil }

func toMetaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	return &at
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
