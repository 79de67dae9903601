// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// maxCauses is the number of causes on a screen, and the number of watched facts that are not errors. With
// --details, all of them are shown.
const maxCauses = assessment.ShownCauses

// maxMessageLines limits an operator message without --details.
const maxMessageLines = 3

// origin describes where a status comes from, for the last line of a screen.
type origin struct {
	// published is set if the Update Status Controller computed the status, and not this program.
	published bool
	// installed is set if the Update Status Controller is installed.
	installed bool
	// controllerSeen is the controller's last sign of life, or zero if it is unknown.
	controllerSeen time.Time
	// dump is the folder of the dump, or empty for a cluster.
	dump string
	// problems lists messages about files in the dump.
	problems []string
}

// statusScreen prints a human-readable status.
type statusScreen struct {
	screen.Layout

	status     updatev1beta1.UpdateStatusStatus
	assessment updatev1beta1.Assessment
	origin     origin
	now        time.Time
	name       string // of the program, for commands
	details    bool
}

// headWord returns the first word of a screen and its color.
func headWord(state updatev1beta1.AssessmentState) (string, screen.Color) {
	switch state {
	case updatev1beta1.StateIdle:
		return "UP TO DATE", screen.Green
	case updatev1beta1.StateProgressing:
		return "UPDATING", screen.Cyan
	case updatev1beta1.StateWaiting:
		return "WAITING", screen.Yellow
	case updatev1beta1.StateStuck:
		return "STUCK", screen.Red
	default:
		return "UNKNOWN", screen.Magenta
	}
}

// render returns the text of the screen.
func (s *statusScreen) render() string {
	word, _ := headWord(s.assessment.State)
	s.Headline(word, s.headlineText())
	s.lastKnown()
	s.scheduled("Next", s.assessment.Next)
	s.scheduled("Resumes", s.assessment.Resumes)
	s.timeLeft()
	s.progress()
	s.why()
	s.watch()
	s.missing()
	s.followUp()
	s.do()
	s.Text("Data", s.data())
	return s.String()
}

// isUpdating reports whether the screen shows an update in a known state.
func (s *statusScreen) isUpdating() bool { return isUpdating(s.assessment.State) }

// isUpdating reports whether an update is known to be in progress.
func isUpdating(state updatev1beta1.AssessmentState) bool {
	switch state {
	case updatev1beta1.StateProgressing, updatev1beta1.StateWaiting, updatev1beta1.StateStuck:
		return true
	default:
		return false
	}
}

func (s *statusScreen) headlineText() string {
	a := s.assessment
	summary := ""
	if a.Summary != "" {
		summary = screen.Clean(a.Summary) + s.forSince(a.SummarySince) + "."
	}
	switch a.State {
	case updatev1beta1.StateIdle:
		return sentences(screen.Clean(a.Release)+s.installedSince()+".", screen.OrDefault(summary, "No update is in progress."))
	case updatev1beta1.StateProgressing:
		progressing := "Progressing"
		if a.LastChangeTime != nil {
			progressing += "; last change " + s.ago(a.LastChangeTime.Time)
		}
		return sentences(s.releases(a)+s.forSince(a.StartedTime)+".", progressing+".", summary)
	case updatev1beta1.StateWaiting, updatev1beta1.StateStuck:
		return sentences(s.releases(a)+".", summary)
	default:
		if s.isKnown() && a.Release != "" {
			return sentences(s.releases(a)+".", summary)
		}
		return screen.OrDefault(summary, "Too much data is missing to judge this cluster.")
	}
}

// isKnown reports whether the required sources were read. What they show is then known even if the cluster
// cannot be judged.
func (s *statusScreen) isKnown() bool {
	return len(s.assessment.Sections) > 0 && !slices.ContainsFunc(s.assessment.Sources, func(source updatev1beta1.Source) bool {
		return !source.Current && slices.Contains(checks.Required(), checks.FactSource(source.Name))
	})
}

// installedSince says since when the release has been installed.
func (s *statusScreen) installedSince() string {
	if s.assessment.InstalledTime == nil {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", screen.Date(s.assessment.InstalledTime.Time), s.age(s.assessment.InstalledTime.Time))
}

// releases names the releases of the update.
func (s *statusScreen) releases(a updatev1beta1.Assessment) string {
	if a.FromRelease == "" && a.InstalledTime != nil {
		return screen.Clean(a.Release)
	}
	if a.FromRelease == "" {
		return "to " + screen.OrDefault(screen.Clean(a.Release), "an unknown release")
	}
	if a.FromRelease == a.Release && s.isMigrating() {
		return screen.Clean(a.FromRelease) + " to another image of it"
	}
	if a.FromRelease == a.Release {
		return "back to " + screen.Clean(a.Release)
	}
	return screen.Clean(a.FromRelease) + " to " + screen.Clean(a.Release)
}

// isMigrating reports whether the control plane is being updated to another image of the same version.
func (s *statusScreen) isMigrating() bool {
	return s.status.ControlPlane != nil && slices.ContainsFunc(s.status.ControlPlane.UpdateInformers, func(of updatev1beta1.InformerInsights) bool {
		return slices.ContainsFunc(of.Insights, func(i updatev1beta1.Insight) bool { return i.Impact.Reason == "ControlPlaneMigrating" })
	})
}

func (s *statusScreen) lastKnown() {
	if known := s.assessment.LastKnown; known != nil && !s.isUpdating() {
		s.Text("Last known", fmt.Sprintf("%s (%s)", screen.Clean(known.Text), s.ago(known.Time.Time)))
	}
}

// scheduled adds a scheduled time and the object that schedules it.
func (s *statusScreen) scheduled(label string, at *updatev1beta1.ScheduledTime) {
	if at == nil {
		return
	}
	line := screen.Date(at.Time.Time) + " (" + s.until(at.Time.Time) + ")"
	if at.Release != "" {
		line = screen.Clean(at.Release) + " at " + line
	}
	if at.By != nil {
		line += ", " + reference(*at.By)
	}
	s.Text(label, line)
}

func (s *statusScreen) progress() {
	if !s.isUpdating() && (s.assessment.State != updatev1beta1.StateUnknown || !s.isKnown()) {
		return
	}
	var rows [][3]string
	for _, section := range s.assessment.Sections {
		detail := screen.Clean(section.Detail)
		if section.DetailSince != nil {
			detail = strings.TrimSpace(detail + " (" + s.age(section.DetailSince.Time) + ")")
		}
		rows = append(rows, [3]string{screen.Clean(section.Name), fmt.Sprintf("%d of %d %s", section.Updated, section.Total, screen.Clean(section.Unit)), detail})
	}
	s.Table("Progress", rows)
}

// why adds the causal chains, each from the problem to the affected part of the update.
func (s *statusScreen) why() {
	label := "Why"
	causes := s.assessment.Causes
	if !s.isUpdating() {
		causes = nil
	}
	for i, cause := range causes {
		if i == maxCauses && !s.details {
			s.Text(label, fmt.Sprintf("and %d more: %s status --details", len(causes)-i, s.name))
			return
		}
		for j, link := range cause.Chain {
			prefix := screen.PadRight(label, screen.LabelWidth)
			label = ""
			if j > 0 {
				prefix += "> "
			}
			if s.details {
				s.Hang(prefix, screen.Clean(link.Message))
				s.objects(link)
				continue
			}
			s.HangMost(prefix, screen.Clean(link.Message), maxMessageLines)
		}
	}
}

// objects adds the objects of a link unless its message already names all of them.
func (s *statusScreen) objects(link updatev1beta1.CauseLink) {
	if link.Count <= 1 {
		return
	}
	listed := 0
	for _, group := range link.Objects {
		names := make([]string, len(group.Names))
		for i, name := range group.Names {
			names[i] = screen.Clean(name)
		}
		listed += len(names)
		kind := screen.Clean(group.Kind)
		if group.Namespace != "" {
			kind += " " + screen.Clean(group.Namespace)
		}
		s.Hang(screen.Blank(screen.LabelWidth+screen.ColumnGap), kind+": "+strings.Join(names, ", "))
	}
	if missing := int(link.Count) - listed; missing > 0 {
		s.Hang(screen.Blank(screen.LabelWidth+screen.ColumnGap), fmt.Sprintf("and %d more", missing))
	}
}

// watch adds the facts above level info that are not among the causes.
func (s *statusScreen) watch() {
	facts := s.assessment.Watch
	if len(facts) == 0 {
		return
	}
	var items []string
	errors, separator := 0, ", "
	for i, fact := range facts {
		severe := fact.Level == updatev1beta1.LevelError || fact.Level == updatev1beta1.LevelCritical
		if severe {
			errors++
		}
		if !severe && i >= maxCauses && !s.details {
			continue
		}
		item := s.watched(fact)
		if strings.Contains(item, ",") {
			separator = "; "
		}
		items = append(items, item)
	}
	var counts []string
	for _, count := range []struct {
		n    int
		unit string
	}{{errors, "error"}, {len(facts) - errors, "warning"}} {
		if count.n > 0 {
			counts = append(counts, text.Plural(count.n, count.unit, count.unit+"s"))
		}
	}
	line := strings.Join(counts, ", ") + ": " + strings.Join(items, separator)
	if left := len(facts) - len(items); left > 0 {
		line += fmt.Sprintf("; and %d more: %s status --details", left, s.name)
	}
	s.Text("Watch", line)
}

// watched returns a watched fact as one clause.
func (s *statusScreen) watched(fact updatev1beta1.WatchedFact) string {
	clause := screen.Clean(fact.Message)
	if fact.UpdateInformer != "" {
		return clause + inParentheses(screen.Clean(fact.UpdateInformer))
	}
	if fact.Since != nil {
		if strings.Contains(clause, " been ") {
			clause += s.forSince(fact.Since)
		} else {
			clause += inParentheses(strings.TrimPrefix(s.forSince(fact.Since), " for "))
		}
	}
	switch detail := screen.Clean(fact.Detail); {
	case strings.HasPrefix(detail, "since "):
		return clause + ", " + detail
	default:
		return clause + inParentheses(detail)
	}
}

// missing adds the sources that are outdated or unread, and the malformed files of a dump.
func (s *statusScreen) missing() {
	label := "Missing"
	for _, source := range s.assessment.Sources {
		if source.Current || source.Message == "" || isOptional(source) {
			continue
		}
		line := screen.Clean(source.Name) + ": " + screen.Clean(source.Message) + s.forSince(source.Since)
		if source.Detail != "" {
			line += " (" + screen.Clean(source.Detail) + ")"
		}
		s.Text(label, line)
		label = ""
	}
	for _, lacking := range lacking(s.assessment.Sources) {
		s.Text(label, screen.Clean(lacking))
		label = ""
	}
	for i, problem := range s.origin.problems {
		if i == maxCauses && !s.details {
			s.Text(label, fmt.Sprintf("and %d more files: %s status --details", len(s.origin.problems)-i, s.name))
			return
		}
		s.Text(label, "file "+screen.Clean(problem))
		label = ""
	}
}

// followUp adds the insights of the last update that still need attention.
func (s *statusScreen) followUp() {
	label := "Follow up"
	for i, retained := range s.status.AfterUpdate {
		if i == maxCauses && !s.details {
			s.Text(label, fmt.Sprintf("and %d more: %s status --details", len(s.status.AfterUpdate)-i, s.name))
			return
		}
		s.Text(label, fmt.Sprintf("%s (%s, since %s)", screen.Clean(retained.Insight.Impact.Summary), screen.Clean(string(retained.Insight.Impact.Level)), screen.Date(retained.RetainedSince.Time)))
		if s.details {
			s.Command(s.name + " acknowledge insight/" + screen.Clean(retained.Insight.UUID))
		}
		label = ""
	}
}

// do adds what the user can do.
func (s *statusScreen) do() {
	remedy := s.assessment.Remedy
	if remedy == nil {
		remedy = &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing."}
		if s.assessment.ActionRequired || s.assessment.State == updatev1beta1.StateUnknown || s.assessment.State == updatev1beta1.StateStuck {
			remedy.Text = "Read the details:"
			remedy.Commands = []string{"oc update status --details"}
		}
	}
	line := screen.Clean(remedy.Text)
	commands := make([]string, len(remedy.Commands))
	for i, command := range remedy.Commands {
		commands[i] = session.LocalCommand(screen.Clean(command), s.name)
	}
	if remedy.Type == updatev1beta1.RemedyNone && len(commands) == 1 {
		if joined := line + " " + commands[0]; screen.LabelWidth+screen.Columns(joined) <= s.Width {
			line, commands = joined, nil
		}
	}
	s.Text("Do", line)
	for _, command := range commands {
		s.Command(command)
	}
}

// data describes the sources of the screen and their age.
func (s *statusScreen) data() string {
	current, total := 0, 0
	var names []string
	for _, source := range s.assessment.Sources {
		if !isOptional(source) {
			total++
		}
		if source.Current {
			current++
			name := screen.Clean(source.Name)
			if source.Detail != "" {
				name += " (" + screen.Clean(source.Detail) + ")"
			}
			names = append(names, name)
		}
	}
	if current < total {
		verb := "are"
		if current == 1 {
			verb = "is"
		}
		line := fmt.Sprintf("%d of %d sources %s current", current, total, verb)
		if current > 0 {
			line += ": " + text.JoinNames(names)
		}
		return line + "."
	}
	switch {
	case s.origin.dump != "":
		return fmt.Sprintf("Files of %s, judged as of %s.", screen.Clean(s.origin.dump), screen.Date(s.now))
	case !s.origin.published && !s.origin.installed:
		return "Read just now; Update Status Controller is not installed."
	case !s.origin.published:
		return "Read just now."
	case s.assessment.State == updatev1beta1.StateIdle:
		return "Live" + s.controllerAlive()
	default:
		return fmt.Sprintf("%d of %d sources", current, total) + s.dataAge()
	}
}

// dataAge returns the age of a status. While no update is in progress, the controller does not confirm the
// status, and a living controller is enough.
func (s *statusScreen) dataAge() string {
	observed := s.status.ObservedTime
	if observed == nil || s.now.Sub(observed.Time) > staleStatus && !updatestatus.IsActive(s.status) {
		return s.controllerAlive()
	}
	return ", " + s.age(observed.Time) + " old."
}

func (s *statusScreen) controllerAlive() string {
	if s.origin.controllerSeen.IsZero() {
		return "."
	}
	return "; controller alive " + s.ago(s.origin.controllerSeen) + "."
}

// forSince returns " for" and the time elapsed. It returns "" for nil and for something first seen just now,
// because it may have lasted longer.
func (s *statusScreen) forSince(at *metav1.Time) string {
	if at.IsZero() || s.now.Sub(at.Time) < time.Second {
		return ""
	}
	return " for " + s.age(at.Time)
}

// age formats the time elapsed.
func (s *statusScreen) age(at time.Time) string { return screen.Elapsed(at, s.now) }

func (s *statusScreen) ago(at time.Time) string { return s.age(at) + " ago" }

// until formats the time remaining.
func (s *statusScreen) until(at time.Time) string {
	if left := at.Sub(s.now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return "overdue by " + s.age(at)
}

// reference returns the kind and name of an object.
func reference(r updatev1beta1.ResourceReference) string {
	name := screen.Clean(r.Name)
	if r.Namespace != "" {
		name = screen.Clean(r.Namespace) + "/" + name
	}
	return screen.Clean(r.Kind) + " " + name
}

// sentences joins the non-empty sentences.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}
