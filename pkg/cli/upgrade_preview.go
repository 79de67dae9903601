// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// previewCommand prints the steps of an upgrade before they run.
func (p *Program) previewCommand() *cobra.Command {
	return p.upgradeCommand("preview", "Shows the steps that an upgrade runs, before it runs them.",
		"Shows the steps that an upgrade runs, in order, with the gates that must pass and the steps that run if one fails.\n"+
			"Steps that do not apply to the cluster are skipped when they run. It knows the types OSD and ARO, and UpgradeJobs.",
		isOpen(kindUpgrade, kindSchedule, kindJob), func(_ context.Context, _ *Cluster, target upgradeTarget) error {
			book, err := runbookOf(target)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(p.Streams.Out, p.previewScreen(target, book))
			return err
		})
}

// runbookOf returns the table of the steps of an upgrade.
func runbookOf(target upgradeTarget) (engine.Runbook, error) {
	deps := runbooks.Deps{Config: config.Default()}
	switch target.kind {
	case kindUpgrade:
		switch target.upgrade.Spec.Type {
		case "OSD":
			return runbooks.OSD{Deps: deps}.Runbook(target.upgrade), nil
		case "ARO":
			return runbooks.ARO{Deps: deps}.Runbook(target.upgrade), nil
		}
		return engine.Runbook{}, fmt.Errorf("the steps of type %q are known to the operator only: its runbook page lists them", target.upgrade.Spec.Type)
	case kindJob:
		var record history.Record
		if current := target.current(); current != nil {
			record = *current
		}
		return jobRunbook(target.job, record), nil
	default:
		return jobRunbook(nextJob(target.schedule), history.Record{}), nil
	}
}

func jobRunbook(job *v1beta1.UpgradeJob, record history.Record) engine.Runbook {
	acquire := func(context.Context, engine.Run) (engine.Result, error) { return engine.Result{}, nil }
	return runbooks.Job{Deps: runbooks.Deps{Config: config.Default()}}.Runbook(job, record, acquire)
}

// nextJob returns an UpgradeJob as the schedule creates it, with an example of a version.
func nextJob(schedule *v1beta1.UpgradeConfig) *v1beta1.UpgradeJob {
	job := &v1beta1.UpgradeJob{Spec: v1beta1.UpgradeJobSpec{
		StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6"},
		Config: schedule.Spec.JobTemplate.Spec.Config,
	}}
	return job
}

// previewScreen returns the steps of an upgrade.
func (p *Program) previewScreen(target upgradeTarget, book engine.Runbook) string {
	l := &layout{width: p.Terminal.columns()}
	l.hang("", clean(fmt.Sprintf("%s in namespace %s: %s", target, target.object.GetNamespace(), startOf(target))))
	if state := clean(target.progress()); state != "" {
		l.hang("", state)
	}
	var started []history.StepCondition
	if record := target.current(); record != nil && record.InProgress() {
		started = record.Conditions
	}
	for _, part := range []struct {
		title string
		steps []engine.Step
	}{{"Steps", book.Steps}, {"If a step fails, in place of the remaining ones", book.Cleanup}, {"At the end, whatever the outcome", book.Finally}} {
		if len(part.steps) == 0 {
			continue
		}
		l.hang("", "")
		l.hang("", part.title+":")
		for i, step := range part.steps {
			previewStep(l, i+1, step, started)
		}
	}
	return l.String()
}

// startOf describes when an upgrade starts.
func startOf(target upgradeTarget) string {
	switch target.kind {
	case kindUpgrade:
		return fmt.Sprintf("to %s from %s on", target.upgrade.Spec.Desired.Version, target.upgrade.Spec.UpgradeAt)
	case kindJob:
		version := target.job.Spec.DesiredVersion.Version
		if version == "" {
			version = "no other version"
		}
		return fmt.Sprintf("to %s from %s, before %s", version, target.job.Spec.StartAfter, target.job.Spec.StartBefore)
	default:
		if next := target.schedule.Status.NextPossibleSchedules; len(next) > 0 {
			return "to the version that is selected, next at " + date(next[0].Time.Time)
		}
		return "no start is scheduled"
	}
}

// stateOf returns the state of a step that has started.
func stateOf(step history.StepCondition) string {
	switch engine.Classify(step) {
	case engine.ClassDone:
		return "done"
	case engine.ClassSkipped:
		return "skipped"
	case engine.ClassFailed:
		return "failed"
	default:
		return "runs"
	}
}

// previewStep adds a step: its number, name, state, and what it does.
func previewStep(l *layout, number int, step engine.Step, started []history.StepCondition) {
	state := ""
	if i := slices.IndexFunc(started, func(c history.StepCondition) bool { return c.Type == step.Name }); i >= 0 {
		state = " (" + stateOf(started[i]) + ")"
	}
	l.hang(fmt.Sprintf("%3d  ", number), step.Name+state)
	doc := step.Doc
	if step.Commits {
		doc += " The point of no return."
	}
	l.hang(blank(5), doc)
	if len(step.Gates) > 0 {
		var gates []string
		for _, gate := range step.Gates {
			gates = append(gates, gate.Name)
		}
		l.hang(blank(5), "Gates: "+strings.Join(gates, ", ")+".")
	}
}
