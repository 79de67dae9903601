// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// previewOptions holds the flags and the argument of the command preview.
type previewOptions struct {
	targetOptions

	operator string
}

// NewPreviewCommand returns the command that prints the steps of an upgrade before they run.
func NewPreviewCommand(p *session.Session) *cobra.Command {
	o := &previewOptions{targetOptions: targetOptions{Session: p, among: isOpen(kindUpgrade, kindSchedule, kindJob)}}
	cmd := targetCommand(p, o.among, &cobra.Command{
		Use: "preview", Short: "Show the steps of an upgrade before they run", RunE: session.RunE(o),
		Long: "Show the steps of an upgrade in order, the gates that must pass, and the cleanup steps that run after a failure.\n" +
			"Steps that do not apply to the cluster will be skipped.\n\n" +
			"UpgradeJobs and the types OSD and ARO are supported. For other types, use --operator to name the operator binary that\n" +
			"implements the type.",
	})
	cmd.Flags().StringVar(&o.operator, "operator", "", "path of an operator binary with custom upgraders; it is queried for the steps of its types")
	return cmd
}

// Run prints the steps.
func (o *previewOptions) Run(ctx context.Context) error {
	_, target, err := o.find(ctx)
	if err != nil {
		return err
	}
	book, err := runbookOf(ctx, target, o.operator)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.Streams.Out, previewScreen(o.Session, target, book))
	return err
}

// runbookOf returns the steps of an upgrade. program is the operator to ask for custom types, if any.
func runbookOf(ctx context.Context, target upgradeTarget, program string) (engine.Runbook, error) {
	deps := upgraders.Deps{Config: config.Default()}
	switch target.kind {
	case kindUpgrade:
		switch target.upgrade.Spec.Type {
		case "OSD":
			return upgraders.OSD{Deps: deps}.Runbook(upgraders.AttemptAt(target.upgrade)), nil
		case "ARO":
			return upgraders.ARO{Deps: deps}.Runbook(upgraders.AttemptAt(target.upgrade)), nil
		}
		if program == "" {
			return engine.Runbook{}, fmt.Errorf("the steps of type %q are known to the operator only: name its program by --operator", target.upgrade.Spec.Type)
		}
		return runbookFrom(ctx, program, target.upgrade.Spec.Type)
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

// runbookFrom asks an operator's program for the steps of a type.
func runbookFrom(ctx context.Context, program, upgradeType string) (engine.Runbook, error) {
	var book engine.Runbook
	printed, err := exec.CommandContext(ctx, program, "docs", "--output=json", "--", upgradeType).Output() //nolint:gosec // the user names the program
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return book, fmt.Errorf("asking %s for the steps of type %q: %s", program, upgradeType, bytes.TrimSpace(failed.Stderr))
	}
	if err == nil {
		err = json.Unmarshal(printed, &book)
	}
	if err != nil {
		return book, fmt.Errorf("asking %s for the steps of type %q: %w", program, upgradeType, err)
	}
	return book, nil
}

func jobRunbook(job *maintenancev1beta1.UpgradeJob, record history.Record) engine.Runbook {
	return upgraders.Job{Deps: upgraders.Deps{Config: config.Default()}}.Runbook(upgraders.Attempt{Job: job, Record: record})
}

// nextJob returns an UpgradeJob as the schedule would create it, with an example version.
func nextJob(schedule *maintenancev1beta1.UpgradeConfig) *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{Spec: maintenancev1beta1.UpgradeJobSpec{
		StartAfter: "2027-03-02T21:00:00Z", StartBefore: "2027-03-02T22:00:00Z", DesiredVersion: maintenancev1beta1.DesiredVersion{Version: "4.20.6"},
		Config: schedule.Spec.JobTemplate.Spec.Config,
	}}
	return job
}

// previewScreen returns the steps of an upgrade.
func previewScreen(p *session.Session, target upgradeTarget, book engine.Runbook) string {
	l := &screen.Layout{Width: p.Terminal.Columns()}
	l.Hang("", screen.Clean(fmt.Sprintf("%s in namespace %s: %s", target, target.object.GetNamespace(), startOf(target))))
	if state := screen.Clean(target.progress()); state != "" {
		l.Hang("", state)
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
		l.Hang("", "")
		l.Hang("", part.title+":")
		for i, step := range part.steps {
			previewStep(l, i+1, step, started)
		}
	}
	return l.String()
}

// startOf says when an upgrade starts.
func startOf(target upgradeTarget) string {
	switch target.kind {
	case kindUpgrade:
		start := target.upgrade.Spec.UpgradeAt
		if at, err := maintenance.UpgradeStart(target.upgrade); err == nil {
			start = text.FormatTime(at)
		}
		return fmt.Sprintf("to %s from %s on", target.upgrade.Spec.Desired.Version, start)
	case kindJob:
		version := target.job.Spec.DesiredVersion.Version
		if version == "" {
			version = "no other version"
		}
		return fmt.Sprintf("to %s from %s, before %s", version, target.job.Spec.StartAfter, target.job.Spec.StartBefore)
	default:
		if next := target.schedule.Status.NextPossibleSchedules; len(next) > 0 {
			return "to the version that is selected, next at " + screen.Date(next[0].Time.Time)
		}
		return "no start is scheduled"
	}
}

// stateOf returns the state of a started step.
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

// previewStep adds a step with its number, name, state, and description.
func previewStep(l *screen.Layout, number int, step engine.Step, started []history.StepCondition) {
	state := ""
	if i := slices.IndexFunc(started, func(c history.StepCondition) bool { return c.Type == step.Name }); i >= 0 {
		state = " (" + stateOf(started[i]) + ")"
	}
	l.Hang(fmt.Sprintf("%3d  ", number), step.Name+state)
	doc := step.Doc
	if step.Commit != nil {
		doc += " The point of no return."
	}
	l.Hang(screen.Blank(5), doc)
	if len(step.Gates) > 0 {
		var gates []string
		for _, gate := range step.Gates {
			gates = append(gates, gate.Name)
		}
		l.Hang(screen.Blank(5), "Gates: "+strings.Join(gates, ", ")+".")
	}
}
