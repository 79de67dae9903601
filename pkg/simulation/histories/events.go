// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// event checks that a notification is sent only once and is true.
func (c *checker) event(change simulation.Change, event *corev1.Event) {
	if change.Actor != operatorActor || change.Old != nil || event.InvolvedObject.Kind != "UpgradeConfig" && event.InvolvedObject.Kind != "UpgradeJob" {
		return
	}
	id := event.Namespace + "/" + event.Name
	if c.events[id] {
		c.h.violate("event: %s is sent twice: %s", id, event.Reason)
	}
	c.events[id] = true
	key := client.ObjectKey{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}
	cfg := c.configs[key]
	if cfg == nil || cfg.UID != event.InvolvedObject.UID || len(cfg.Status.History) == 0 || c.tampered[cfg.UID] {
		return
	}
	now := cfg.Status.History[0]
	switch event.Reason {
	case "UpgradeContinues":
		if now.Phase == record.PhaseFailed {
			c.h.violate("event: %q about %s, which has failed", event.Message, key)
		}
		// The record may belong to the previous attempt, because the object was deleted before the next
		// one was saved.
		if !strings.HasPrefix(event.Message, "the upgrade to "+newest(c.version)+" had commenced;") && c.calm(change.Time) {
			c.h.violate("event: %q about %s, but the control plane is at %s", event.Message, key, newest(c.version))
		}
	case "UpgradeCompleted":
		if !c.held(now.Version, change.Time) {
			c.h.violate("event: %q about %s, but the cluster is not", event.Message, key)
		}
	case "UpgradeFailed":
		replaced := cfg.DeletionTimestamp != nil && newest(c.version) != now.Version // detected by the deletion
		if now.Phase != record.PhaseFailed && !replaced {
			c.h.violate("event: %q about %s, whose phase is %s", event.Message, key, now.Phase)
		}
	}
}
