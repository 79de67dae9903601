// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
)

// timeLeft adds the remaining time and the basis of the estimate.
func (s *statusScreen) timeLeft() {
	estimate := s.assessment.Estimate
	if estimate == nil || !s.isUpdating() {
		return
	}
	s.Text("Time left", s.estimateText(*estimate))
}

func (s *statusScreen) estimateText(e updatev1beta1.Estimate) string {
	seconds := secondsRange(e.MinSeconds, e.MaxSeconds)
	switch e.From {
	case updatev1beta1.EstimateFromRemedy:
		if seconds == "" {
			return "Unknown until this is fixed."
		}
		return "Unknown until this is fixed; then " + seconds
	case updatev1beta1.EstimateFromResumption:
		if seconds == "" {
			return "Unknown: " + screen.OrDefault(screen.Clean(e.Reason), "no data") + "."
		}
		return seconds + " from then" + s.parts(e)
	default:
		if e.Earliest == nil || e.Latest == nil {
			return "Unknown: " + screen.OrDefault(screen.Clean(e.Reason), "no data") + "."
		}
		line := s.timeRange(*e.Earliest, *e.Latest) + s.parts(e)
		if e.Extended != "" {
			line += "; extended: " + screen.Clean(e.Extended)
		}
		return line
	}
}

// parts describes the sections of an estimate. A single section needs no name, because it is the whole
// estimate.
func (s *statusScreen) parts(e updatev1beta1.Estimate) string {
	if len(e.Sections) == 1 {
		return inParentheses(screen.Clean(screen.OrDefault(e.Sections[0].Basis, e.Sections[0].Reason)))
	}
	var parts []string
	for _, section := range e.Sections {
		left := secondsRange(section.MinSeconds, section.MaxSeconds)
		if section.Earliest != nil && section.Latest != nil {
			left = s.timeRange(*section.Earliest, *section.Latest)
		}
		if left == "" {
			left = "unknown"
		}
		parts = append(parts, screen.Clean(section.Name)+" "+left+inParentheses(screen.Clean(screen.OrDefault(section.Basis, section.Reason))))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

func inParentheses(value string) string {
	if value == "" {
		return ""
	}
	return " (" + value + ")"
}

// timeRange formats the range of time remaining until two times, or the time since the later one has passed.
func (s *statusScreen) timeRange(earliest, latest metav1.Time) string {
	if latest.Time.Before(s.now) {
		return "overdue by " + s.age(latest.Time)
	}
	return durations(max(earliest.Sub(s.now), 0), latest.Sub(s.now))
}

// secondsRange formats a range of durations, or returns "" if it is unknown.
func secondsRange(least, most int64) string {
	if most <= 0 {
		return ""
	}
	return durations(time.Duration(least)*time.Second, time.Duration(most)*time.Second)
}

// durations formats a range of durations. If both are equal, it prints one.
func durations(least, most time.Duration) string {
	from, to := duration.HumanDuration(least), duration.HumanDuration(most)
	if from == to {
		return to
	}
	return fmt.Sprintf("%s to %s", from, to)
}
