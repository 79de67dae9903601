// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxWindowReason bounds the reason of a window in a message, in bytes.
const maxWindowReason = 200

// LabelsTooLong is the key of a label that replaces labels that are too long for the cache. The API server
// would reject it.
const LabelsTooLong = "too long/"

// Selected is the kind of object that a selector of an UpgradeSuspensionWindow selects.
type Selected int

const (
	// SelectedConfigs are UpgradeConfigs, by configSelector.
	SelectedConfigs Selected = iota
	// SelectedJobs are UpgradeJobs, by jobSelector.
	SelectedJobs
)

// Suspension is an UpgradeSuspensionWindow that suspends an upgrade.
type Suspension struct {
	// Window is the name of the UpgradeSuspensionWindow.
	Window string
	// Reason is the reason of the author, or empty.
	Reason string
	// End is the first instant after the window.
	End time.Time
	// LabelsTooLong reports that the labels of the object are too long to match the selector of the window.
	LabelsTooLong bool
}

// String returns the window with its end and its reason, for messages.
func (s Suspension) String() string {
	name := "UpgradeSuspensionWindow " + s.Window + " until " + text.FormatTime(s.End)
	if s.LabelsTooLong {
		name += ": the labels of the object are too long to match the selector, so it is treated as suspended; remove some labels"
	}
	return text.WithReason(name, text.Sanitize(s.Reason, maxWindowReason))
}

// SuspendedBy returns the window that suspends an upgrade of an object with these labels at that time. If there
// are several, it returns the last to end. The windows belong to the namespace of the object. A window with
// invalid times contains no time. A window with an invalid selector selects all objects, because it may be
// meant to select any.
func SuspendedBy(windows []maintenancev1beta1.UpgradeSuspensionWindow, objectLabels map[string]string, at time.Time, kind Selected) (Suspension, bool) {
	var last Suspension
	found := false
	_, tooLong := objectLabels[LabelsTooLong]
	for i := range windows {
		window := &windows[i]
		start, end, err := WindowTimes(window)
		if err != nil || at.Before(start) || !at.Before(end) || !Selects(window, objectLabels, kind) {
			continue
		}
		if !found || end.After(last.End) || end.Equal(last.End) && window.Name < last.Window {
			last, found = Suspension{Window: window.Name, Reason: window.Spec.Reason, End: end, LabelsTooLong: tooLong}, true
		}
	}
	return last, found
}

// WindowTimes returns the first instant of a window and the first instant after it. It returns an error if the
// API server would not have accepted the window.
func WindowTimes(window *maintenancev1beta1.UpgradeSuspensionWindow) (start, end time.Time, err error) {
	if start, err = Time(window.Spec.Start); err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("spec.start: %w", err)
	}
	if end, err = Time(window.Spec.End); err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("spec.end: %w", err)
	}
	return start, end, nil
}

// Selects reports whether a window selects an object with these labels, at any time. An absent selector selects
// no object, and one that is invalid or does not decode selects all. Any other selects objects whose labels are
// too long.
func Selects(window *maintenancev1beta1.UpgradeSuspensionWindow, objectLabels map[string]string, kind Selected) bool {
	selector, field := window.Spec.ConfigSelector, "spec.configSelector"
	if kind == SelectedJobs {
		selector, field = window.Spec.JobSelector, "spec.jobSelector"
	}
	if window.IsIncomplete(field) {
		return true
	}
	if selector == nil {
		return false
	}
	if _, tooLong := objectLabels[LabelsTooLong]; tooLong {
		return true
	}
	parsed, err := Selector(selector)
	return err != nil || parsed.Matches(labels.Set(objectLabels))
}

// Selector returns a selector of labels. It returns an error for an invalid key, value, or operator.
func Selector(selector *maintenancev1beta1.LabelSelector) (labels.Selector, error) {
	parsed, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{
		MatchLabels: selector.MatchLabels, MatchExpressions: selector.MatchExpressions,
	})
	if err != nil {
		return nil, fmt.Errorf("reading a label selector: %w", err)
	}
	return parsed, nil
}
