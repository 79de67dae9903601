// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// plansScreen compares the risks of several releases in one column each.
type plansScreen struct {
	screen.Layout

	plans []updatev1beta1.UpdatePlan
	now   time.Time
	name  string
}

// comparedRisk is a risk of at least one release.
type comparedRisk struct {
	first updateplan.Judged
	// cells holds the risk's level in each release, or "" if the release does not have it.
	cells []string
}

// render returns the text of the plans.
func (s *plansScreen) render() string {
	names, verdicts := make([]string, len(s.plans)), make([]string, len(s.plans))
	for i := range s.plans {
		names[i], verdicts[i] = s.plans[i].Spec.TargetRelease, planHeadline[planVerdict(&s.plans[i], s.now)]
	}
	width := screen.Columns("NOT READY")
	for _, name := range names {
		width = max(width, screen.Columns(name))
	}
	row := func(label string, cells []string, rest string) {
		padded := []string{screen.PadRight(label, screen.LabelWidth)}
		for _, cell := range cells {
			padded = append(padded, screen.PadRight(screen.OrDefault(cell, "-"), width+screen.ColumnGap))
		}
		prefix := strings.Join(padded, "")
		if s.Width-screen.Columns(prefix) < screen.MinDetail {
			s.Lines = append(s.Lines, strings.TrimRight(prefix, " "))
			prefix = screen.Blank(screen.LabelWidth + screen.ColumnGap)
		}
		s.Hang(prefix, rest)
	}
	row("Release", names, "")
	row("Update", verdicts, "")
	label := "Risks"
	for _, risk := range s.risks() {
		impact := risk.first.Insight.Impact
		row(label, risk.cells, text.Sanitize(risk.first.Insight.UID, text.MaxReason)+": "+text.Sanitize(impact.Summary, text.MaxReason))
		label = ""
	}
	s.Text("Do", "Look at one release, for example:")
	s.Command(fmt.Sprintf("%s pre-checks --version %s", s.name, names[0]))
	return s.String()
}

// risks returns the risks of all releases, most severe first.
func (s *plansScreen) risks() []comparedRisk {
	var all []comparedRisk
	for i := range s.plans {
		for _, judged := range updateplan.JudgePlan(&s.plans[i], s.now) {
			at := slices.IndexFunc(all, func(r comparedRisk) bool {
				return r.first.Informer == judged.Informer && r.first.Insight.UUID == judged.Insight.UUID && r.first.Insight.UID == judged.Insight.UID
			})
			if at < 0 {
				at, all = len(all), append(all, comparedRisk{first: judged, cells: make([]string, len(s.plans))})
			}
			all[at].cells[i] = string(judged.Insight.Impact.Level)
			if judged.Verdict == updateplan.VerdictAccepted {
				all[at].cells[i] = "accepted"
			}
		}
	}
	slices.SortStableFunc(all, func(a, b comparedRisk) int {
		return b.first.Insight.Impact.Level.Rank() - a.first.Insight.Impact.Level.Rank()
	})
	return all
}
