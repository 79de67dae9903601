// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// maxCauses is how many causes a screen lists. Option --details lists all.
const maxCauses = 3

// maxLine bounds a text from the cluster, in bytes.
const maxLine = 2048

// origin is where a status is from, for the last line of a screen.
type origin struct {
	// published reports that the Update Status Controller computed the status; otherwise, this program
	// did.
	published bool
	// installed reports that the Update Status Controller is installed.
	installed bool
	// controllerSeen is the last sign of life of the controller; zero means that it is unknown.
	controllerSeen time.Time
	// lacking are the optional sources that could not be read, with the reason.
	lacking []string
	// dump is the folder of a dump; empty means a cluster.
	dump string
	// problems are messages about files of the dump.
	problems []string
}

// screen prints a status for people.
type screen struct {
	layout

	status     updatev1beta1.UpdateStatusStatus
	assessment updatev1beta1.Assessment
	origin     origin
	now        time.Time
	name       string // of the program, in commands
	details    bool
}

// headWord returns the first word of a screen and its color.
func headWord(state updatev1beta1.AssessmentState) (string, color) {
	switch state {
	case updatev1beta1.StateIdle:
		return "UP TO DATE", green
	case updatev1beta1.StateProgressing:
		return "UPDATING", cyan
	case updatev1beta1.StateWaiting:
		return "WAITING", yellow
	case updatev1beta1.StateStuck:
		return "STUCK", red
	default:
		return "UNKNOWN", magenta
	}
}

// render returns the lines of the screen.
func (s *screen) render() string {
	word, _ := headWord(s.assessment.State)
	s.headline(word, s.headlineText())
	s.lastKnown()
	s.scheduled("Next", s.assessment.Next)
	s.scheduled("Resumes", s.assessment.Resumes)
	s.timeLeft()
	s.progress()
	s.why()
	s.missing()
	s.followUp()
	s.do()
	s.text("Data", s.data())
	return s.String()
}

// isUpdating reports whether the screen is about an update whose state is known.
func (s *screen) isUpdating() bool {
	switch s.assessment.State {
	case updatev1beta1.StateProgressing, updatev1beta1.StateWaiting, updatev1beta1.StateStuck:
		return true
	default:
		return false
	}
}

func (s *screen) headlineText() string {
	a := s.assessment
	summary := ""
	if a.Summary != "" {
		summary = clean(a.Summary) + s.forSince(a.SummarySince) + "."
	}
	switch a.State {
	case updatev1beta1.StateIdle:
		return sentences(clean(a.Release)+s.installedSince()+".", orDefault(summary, "No update is in progress."))
	case updatev1beta1.StateProgressing:
		progressing := "Progressing"
		if a.LastChangeTime != nil {
			progressing += "; last change " + s.ago(a.LastChangeTime.Time)
		}
		return sentences(releases(a)+s.forSince(a.StartedTime)+".", progressing+".", summary)
	case updatev1beta1.StateWaiting, updatev1beta1.StateStuck:
		return sentences(releases(a)+".", summary)
	default:
		return orDefault(summary, "Too much data is missing to judge this cluster.")
	}
}

// installedSince returns since when the release has been installed.
func (s *screen) installedSince() string {
	if s.assessment.InstalledTime == nil {
		return ""
	}
	return fmt.Sprintf(" since %s (%s)", date(s.assessment.InstalledTime.Time), s.age(s.assessment.InstalledTime.Time))
}

// releases returns the releases of the update.
func releases(a updatev1beta1.Assessment) string {
	if a.FromRelease == "" {
		return "to " + orDefault(clean(a.Release), "an unknown release")
	}
	return clean(a.FromRelease) + " to " + clean(a.Release)
}

func (s *screen) lastKnown() {
	if known := s.assessment.LastKnown; known != nil && !s.isUpdating() {
		s.text("Last known", fmt.Sprintf("%s (%s)", clean(known.Text), s.ago(known.Time.Time)))
	}
}

// scheduled adds when something is scheduled, and by which object.
func (s *screen) scheduled(label string, at *updatev1beta1.ScheduledTime) {
	if at == nil {
		return
	}
	line := date(at.Time.Time) + " (" + s.until(at.Time.Time) + ")"
	if at.Release != "" {
		line = clean(at.Release) + " at " + line
	}
	if at.By != nil {
		line += ", " + reference(*at.By)
	}
	s.text(label, line)
}

func (s *screen) progress() {
	if !s.isUpdating() {
		return
	}
	var rows [][3]string
	for _, section := range s.assessment.Sections {
		detail := clean(section.Detail)
		if section.DetailSince != nil {
			detail = strings.TrimSpace(detail + " (" + s.age(section.DetailSince.Time) + ")")
		}
		rows = append(rows, [3]string{clean(section.Name), fmt.Sprintf("%d of %d %s", section.Updated, section.Total, clean(section.Unit)), detail})
	}
	s.table("Progress", rows)
}

// why adds the causes, from what is wrong to the part of the update that it affects.
func (s *screen) why() {
	label := "Why"
	causes := s.assessment.Causes
	if !s.isUpdating() {
		causes = nil
	}
	for i, cause := range causes {
		if i == maxCauses && !s.details {
			s.text(label, fmt.Sprintf("and %d more: %s status --details", len(causes)-i, s.name))
			return
		}
		for j, link := range cause.Chain {
			prefix := padRight(label, labelWidth)
			label = ""
			if j > 0 {
				prefix += "> "
			}
			s.hang(prefix, clean(link.Message))
			if s.details {
				s.objects(link)
			}
		}
	}
}

// objects adds the objects of a link of a chain, if its message does not name all of them.
func (s *screen) objects(link updatev1beta1.CauseLink) {
	if link.Count <= 1 {
		return
	}
	listed := 0
	for _, group := range link.Objects {
		names := make([]string, len(group.Names))
		for i, name := range group.Names {
			names[i] = clean(name)
		}
		listed += len(names)
		kind := clean(group.Kind)
		if group.Namespace != "" {
			kind += " " + clean(group.Namespace)
		}
		s.hang(blank(labelWidth+columnGap), kind+": "+strings.Join(names, ", "))
	}
	if missing := int(link.Count) - listed; missing > 0 {
		s.hang(blank(labelWidth+columnGap), fmt.Sprintf("and %d more", missing))
	}
}

// missing adds the sources that are not current, those that were not read, and broken files of a dump.
func (s *screen) missing() {
	label := "Missing"
	for _, source := range s.assessment.Sources {
		if source.Current || source.Message == "" {
			continue
		}
		line := clean(source.Name) + ": " + clean(source.Message) + s.forSince(source.Since)
		if source.Detail != "" {
			line += " (" + clean(source.Detail) + ")"
		}
		s.text(label, line)
		label = ""
	}
	for _, lacking := range s.origin.lacking {
		s.text(label, clean(lacking))
		label = ""
	}
	for i, problem := range s.origin.problems {
		if i == maxCauses && !s.details {
			s.text(label, fmt.Sprintf("and %d more files: %s status --details", len(s.origin.problems)-i, s.name))
			return
		}
		s.text(label, "file "+clean(problem))
		label = ""
	}
}

// followUp adds the insights of the last update that still need attention.
func (s *screen) followUp() {
	label := "Follow up"
	for i, retained := range s.status.AfterUpdate {
		if i == maxCauses && !s.details {
			s.text(label, fmt.Sprintf("and %d more: %s status --details", len(s.status.AfterUpdate)-i, s.name))
			return
		}
		s.text(label, fmt.Sprintf("%s (%s, since %s)", clean(retained.Insight.Impact.Summary), clean(string(retained.Insight.Impact.Level)), date(retained.RetainedSince.Time)))
		if s.details {
			s.command(s.name + " acknowledge insight/" + clean(retained.Insight.UUID))
		}
		label = ""
	}
}

// do adds what a person can do.
func (s *screen) do() {
	remedy := s.assessment.Remedy
	if remedy == nil {
		remedy = &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing."}
		if s.assessment.ActionRequired || s.assessment.State == updatev1beta1.StateUnknown || s.assessment.State == updatev1beta1.StateStuck {
			remedy.Text = "Read the details:"
			remedy.Commands = []string{"oc update status --details"}
		}
	}
	line := clean(remedy.Text)
	commands := make([]string, len(remedy.Commands))
	for i, command := range remedy.Commands {
		commands[i] = localCommand(clean(command), s.name)
	}
	if remedy.Type == updatev1beta1.RemedyNone && len(commands) == 1 {
		if joined := line + " " + commands[0]; labelWidth+columns(joined) <= s.width {
			line, commands = joined, nil
		}
	}
	s.text("Do", line)
	for _, command := range commands {
		s.command(command)
	}
}

// data returns what the screen is based on, and how old that is.
func (s *screen) data() string {
	current, total := 0, len(s.assessment.Sources)
	var names []string
	for _, source := range s.assessment.Sources {
		if source.Current {
			current++
			name := clean(source.Name)
			if source.Detail != "" {
				name += " (" + clean(source.Detail) + ")"
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
		return fmt.Sprintf("Files of %s, judged as of %s.", clean(s.origin.dump), date(s.now))
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

// dataAge returns how old a status is. The controller does not confirm a status while nothing is being
// updated; it then counts that the controller is alive.
func (s *screen) dataAge() string {
	observed := s.status.ObservedTime
	if observed == nil || s.now.Sub(observed.Time) > staleStatus && !updatestatus.IsActive(s.status) {
		return s.controllerAlive()
	}
	return ", " + s.age(observed.Time) + " old."
}

func (s *screen) controllerAlive() string {
	if s.origin.controllerSeen.IsZero() {
		return "."
	}
	return "; controller alive " + s.ago(s.origin.controllerSeen) + "."
}

// forSince returns " for" and how long ago a time is. It returns "" for nil, and for what was first seen
// just now: since when it is so is then unknown.
func (s *screen) forSince(at *metav1.Time) string {
	if at.IsZero() || s.now.Sub(at.Time) < time.Second {
		return ""
	}
	return " for " + s.age(at.Time)
}

// age returns how long ago a time is. A time in the future, by a clock that differs, is now.
func (s *screen) age(at time.Time) string { return duration.HumanDuration(max(s.now.Sub(at), 0)) }

func (s *screen) ago(at time.Time) string { return s.age(at) + " ago" }

// until returns how far away a time is.
func (s *screen) until(at time.Time) string {
	if left := at.Sub(s.now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}
	return "overdue by " + s.age(at)
}

// date returns a time as screens print it.
func date(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") + " UTC" }

// reference returns the kind and the name of an object.
func reference(r updatev1beta1.ResourceReference) string {
	name := clean(r.Name)
	if r.Namespace != "" {
		name = clean(r.Namespace) + "/" + name
	}
	return clean(r.Kind) + " " + name
}

// clean makes a text from the cluster harmless.
func clean(value string) string { return text.Sanitize(value, maxLine) }

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// sentences joins sentences, without empty ones.
func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}
