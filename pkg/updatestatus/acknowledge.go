// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"strings"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Acknowledge returns the acknowledged insights of an UpdateStatus with one more, as the value of the
// annotation. It removes the entries of earlier updates. The new entry comes first, because the controller
// reads only the beginning of a long value.
func Acknowledge(object *updatev1beta1.UpdateStatus, uuid string) string {
	var completed time.Time
	if assessment := object.Status.Assessment; assessment != nil {
		completed = text.TimeOf(assessment.InstalledTime)
	}
	entries := []string{uuid + acknowledgedAfter(completed)}
	for _, known := range acknowledged(object.Annotations[updatev1beta1.AcknowledgedAnnotation], completed) {
		if known != uuid {
			entries = append(entries, known+acknowledgedAfter(completed))
		}
	}
	return strings.Join(entries, ",")
}

// acknowledgedAfter returns the end of an entry about the update that was completed at the given time.
func acknowledgedAfter(completed time.Time) string { return "=" + text.FormatTime(completed) }

// acknowledged returns the UUIDs of the insights that an annotation acknowledges after the update that was
// completed at the given time.
func acknowledged(annotation string, completed time.Time) []string {
	var uuids []string
	for entry := range strings.SplitSeq(annotation, ",") {
		if uuid, is := strings.CutSuffix(entry, acknowledgedAfter(completed)); is {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}
