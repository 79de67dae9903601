// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// planScreen prints an UpdatePlan.
type planScreen struct {
	screen.Layout

	plan    *updatev1beta1.UpdatePlan
	now     time.Time
	name    string
	details bool
	// source describes what the plan was computed from. It is empty if the controller published the plan. replay
	// is set if it is a dump.
	source string
	replay bool
}

// render returns the text of a plan with a verdict.
func (s *planScreen) render(code session.ExitCode) string {
	judged := updateplan.JudgePlan(s.plan, s.now)
	rest := updateplan.Unaccepted(judged)
	s.Headline(planHeadline[code], fmt.Sprintf("%s. %s", s.update(), s.summary(code, len(judged), len(rest))))
	if startableReason(s.plan) == updatev1beta1.ReasonNotAnUpdate {
		rest = nil // nothing left to accept
	}
	label := "Risks"
	for _, j := range rest {
		s.risk(label, j, explanation(j.Verdict))
		label = ""
	}
	if s.details {
		label = "Accepted"
		for _, j := range judged {
			if j.Verdict == updateplan.VerdictAccepted {
				s.risk(label, j, s.acceptedBy(j))
				label = ""
			}
		}
	}
	s.do(code, rest)
	s.Text("Data", s.data())
	return s.String()
}

// update names the releases of the update, or only the target if the cluster is at the target or being
// updated to it.
func (s *planScreen) update() string {
	from, to := cmp.Or(text.Excerpt(s.plan.Status.FromRelease), "an unknown release"), s.plan.Spec.TargetRelease
	if from == to {
		return to
	}
	return from + " to " + to
}

// planHeadline maps verdicts to the first words of the screen.
var planHeadline = map[session.ExitCode]string{session.ExitDone: "READY", session.ExitActionRequired: "NOT READY", session.ExitUnknown: "UNKNOWN"}

func (s *planScreen) summary(code session.ExitCode, total, unaccepted int) string {
	switch startable := meta.FindStatusCondition(s.plan.Status.Conditions, updatev1beta1.ConditionStartable); {
	case code == session.ExitDone && total == 0:
		return "No risk was found; the update may be started."
	case code == session.ExitDone && total == 1:
		return "The only risk is accepted; the update may be started."
	case code == session.ExitDone:
		return fmt.Sprintf("All %d risks are accepted; the update may be started.", total)
	case unaccepted > 0 && startableReason(s.plan) != updatev1beta1.ReasonNotAnUpdate:
		return fmt.Sprintf("%d of %s not accepted.", unaccepted, text.Plural(total, "risk is", "risks are"))
	case clocksDiffer(s.plan, s.now) != "":
		return sentence(clocksDiffer(s.plan, s.now))
	case startable != nil:
		return sentence(startable.Message)
	}
	return "The analysis is not complete."
}

// clocksDiffer explains that the analysis of a plan is from the future, or returns "" if it is not. Its age is
// unknown then, so the update cannot be started.
func clocksDiffer(plan *updatev1beta1.UpdatePlan, now time.Time) string {
	at := plan.Status.LastAnalysisTime
	if at == nil || !at.After(now.Add(text.MaxClockSkew)) {
		return ""
	}
	return "the analysis is from the future, from " + text.FormatTime(at.Time) + ": the clocks of this computer and the cluster differ"
}

// sentence converts a condition's message to a sentence.
func sentence(message string) string {
	message = text.Sanitize(message, text.MaxReason)
	if message == "" {
		return ""
	}
	return strings.ToUpper(message[:1]) + message[1:] + "."
}

func explanation(verdict updateplan.AcceptanceVerdict) string {
	switch verdict {
	case updateplan.VerdictRefused:
		return "explicitly not accepted"
	case updateplan.VerdictAmbiguous:
		return "its acceptance matches several risks: accept it by its uuid"
	case updateplan.VerdictStale:
		return "was accepted before it was observed"
	case updateplan.VerdictAhead:
		return "was accepted at a time in the future: the clocks differ"
	case updateplan.VerdictIncomplete:
		return "critical: its acceptance needs a uuid and a reason"
	case updateplan.VerdictAccepted, updateplan.VerdictUnaccepted:
	}
	return ""
}

// risk adds an insight: level and uid, followed by its meaning.
func (s *planScreen) risk(label string, j updateplan.Judged, note string) {
	impact := j.Insight.Impact
	s.Text(label, fmt.Sprintf("%-8s %s", impact.Level, text.Sanitize(j.Insight.UID, text.MaxReason)))
	line := text.Sanitize(impact.Summary, text.MaxReason)
	if j.Informer != "" && !strings.HasPrefix(j.Informer, updatev1beta1.BuiltInPrefix) {
		line += " (" + text.Excerpt(j.Informer) + ")"
	}
	if note != "" {
		line += "; " + note
	}
	s.indented(line)
	if s.details {
		for paragraph := range strings.SplitSeq(impact.Description, "\n") {
			s.paragraph(j.Informer, paragraph)
		}
		s.indented("uuid " + text.Excerpt(j.Insight.UUID))
	}
}

// paragraph adds a paragraph of a description. If a built-in check names a command at the end, the command
// gets its own line for copying.
func (s *planScreen) paragraph(informer, paragraph string) {
	if before, command, found := strings.Cut(paragraph, ": oc "); found && strings.HasPrefix(informer, updatev1beta1.BuiltInPrefix) {
		s.indented(text.Sanitize(before, text.MaxReason) + ":")
		s.Command(session.LocalCommand("oc "+text.Sanitize(command, len(command)), s.name))
		return
	}
	if paragraph = text.Sanitize(paragraph, text.MaxReason); paragraph != "" {
		s.indented(paragraph)
	}
}

func (s *planScreen) indented(line string) {
	s.Hang(screen.Blank(screen.LabelWidth+screen.ColumnGap), line)
}

// acceptedBy says who accepted an insight and why.
func (s *planScreen) acceptedBy(j updateplan.Judged) string {
	for i := range s.plan.Spec.AcceptedInsights {
		e := &s.plan.Spec.AcceptedInsights[i]
		if !e.Accepted || e.UpdateInformer != j.Informer || e.UID != j.Insight.UID || e.UUID != "" && e.UUID != j.Insight.UUID {
			continue
		}
		note := "accepted"
		if e.AcceptedBy != "" {
			note += " by " + text.Excerpt(e.AcceptedBy)
		}
		if e.Reason != "" {
			note += ": " + text.Excerpt(e.Reason)
		}
		return note
	}
	return ""
}

// do adds what the user can do.
func (s *planScreen) do(code session.ExitCode, rest []updateplan.Judged) {
	target := s.plan.Spec.TargetRelease
	what, start := "update", s.name+" start --to "+target
	if s.plan.Status.FromRelease == target {
		what, start = "update of worker nodes", s.name+" worker-nodes start"
	}
	switch {
	case code == session.ExitDone:
		s.Text("Do", "Start the "+what+":")
		s.Command(start)
	case len(rest) > 0 && s.source == "":
		s.Text("Do", "Fix these, or accept them, for example the first one:")
		s.Command(fmt.Sprintf("%s pre-checks --version %s --accept %s --reason WHY", s.name, target, acceptID(updateplan.JudgePlan(s.plan, s.now), rest[0])))
	case len(rest) > 0:
		s.Text("Do", "Fix these before the update.")
	case code == session.ExitUnknown && s.source == "":
		s.Text("Do", "Wait for the analysis:")
		s.Command(fmt.Sprintf("%s pre-checks --version %s --wait=10m", s.name, target))
	case code == session.ExitUnknown && s.replay:
		s.Text("Do", "Check the cluster itself:")
		s.Command(fmt.Sprintf("%s pre-checks --version %s", s.name, target))
	case code == session.ExitUnknown:
		s.Text("Do", "Install the Update Status Controller, or start the "+what+" without pre-checks:")
		s.Command(start + " --pre-checks=false")
	case clocksDiffer(s.plan, s.now) != "":
		s.Text("Do", "Correct the clock of this computer or of the cluster.")
	case s.source == "" && startableReason(s.plan) != updatev1beta1.ReasonNotAnUpdate:
		s.Text("Do", "Request another analysis:")
		s.Command(fmt.Sprintf("%s pre-checks --version %s --max-age=0s", s.name, target))
	default:
		s.Text("Do", "Nothing.")
	}
}

// plainUID matches uids that the shell and --accept parse as a single word. A third party may choose any uid.
var plainUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$`)

// acceptID returns the argument with which a printed command accepts an insight: the uid if it is
// unambiguous, and the UUID otherwise.
func acceptID(judged []updateplan.Judged, j updateplan.Judged) string {
	uid := j.Insight.UID
	if j.Verdict == updateplan.VerdictAmbiguous || !plainUID.MatchString(uid) {
		return j.Insight.UUID
	}
	if found, err := findInsight(judged, uid); err != nil || found.Insight.UUID != j.Insight.UUID {
		return j.Insight.UUID
	}
	return uid
}

func startableReason(plan *updatev1beta1.UpdatePlan) string {
	if c := meta.FindStatusCondition(plan.Status.Conditions, updatev1beta1.ConditionStartable); c != nil {
		return c.Reason
	}
	return ""
}

// data describes what the plan is based on.
func (s *planScreen) data() string {
	complete := meta.FindStatusCondition(s.plan.Status.Conditions, updatev1beta1.ConditionComplete)
	at := s.plan.Status.LastAnalysisTime
	switch {
	case s.source != "":
		return "From " + s.source + "."
	case complete == nil:
		return "The Update Status Controller has not begun the analysis."
	case !isComplete(s.plan) || at == nil:
		return "The analysis is not complete: " + text.Sanitize(complete.Message, text.MaxReason) + "."
	case clocksDiffer(s.plan, s.now) != "":
		return "Analyzed at " + text.FormatTime(at.Time) + "."
	}
	age := screen.Elapsed(at.Time, s.now)
	if end := at.Add(updateplan.MaxAge); s.now.Before(end) {
		return fmt.Sprintf("Analyzed %s ago; valid until %s UTC.", age, end.UTC().Format("15:04"))
	}
	return fmt.Sprintf("Analyzed %s ago, which is too long.", age)
}
