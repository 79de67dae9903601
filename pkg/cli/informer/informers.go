// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// informersOptions holds the flags of the command informers.
type informersOptions struct {
	*session.Session
	session.NoArguments

	format *session.Output
}

// NewListCommand returns the command that lists the UpdateInformers.
func NewListCommand(p *session.Session) *cobra.Command {
	o := &informersOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "informers",
		Short: "List the update informers and whether they are responding",
		Args:  manager.NoArgs,
		RunE:  session.RunE(o),
	}
	o.format = session.OutputFlags(cmd)
	return cmd
}

// Validate checks the flags.
func (o *informersOptions) Validate() error { return o.format.Check() }

// Run lists the informers.
func (o *informersOptions) Run(ctx context.Context) error {
	cluster, err := o.Connect()
	if err != nil {
		return err
	}
	list := &updatev1beta1.UpdateInformerList{}
	if err := cluster.List(ctx, list); err != nil {
		return fmt.Errorf("listing UpdateInformers: %w", err)
	}
	if !o.format.IsText() {
		return o.format.Print(o.Streams.Out, list)
	}
	var status updatev1beta1.UpdateStatusList // optional
	if err := cluster.List(ctx, &status); err != nil {
		status.Items = nil
	}
	return o.print(list.Items, aboutInformers(status.Items), o.format.IsWide(), cluster.Clock.Now())
}

// answerStates maps the reasons of the Update Status Controller's insights about answers to the states of
// informers that answer.
var answerStates = map[string]string{
	updatev1beta1.ReasonInformerInvalid: "Invalid", updatev1beta1.ReasonInformerFailed: "Failure", updatev1beta1.ReasonInformerWaiting: "Waiting",
}

// aboutInformers returns the Update Status Controller's insights about the answers of informers, by name.
func aboutInformers(status []updatev1beta1.UpdateStatus) map[string]updatev1beta1.InsightImpact {
	about := map[string]updatev1beta1.InsightImpact{}
	for i := range status {
		if status[i].Status.ControlPlane == nil {
			continue
		}
		for _, of := range status[i].Status.ControlPlane.UpdateInformers {
			for j := range of.Insights {
				in := &of.Insights[j]
				if _, is := answerStates[in.Impact.Reason]; !is || of.Name != updatev1beta1.StatusControllerInformer || in.StaleSince != nil {
					continue
				}
				for _, r := range in.Scope.Resources {
					about[r.Name] = in.Impact
				}
			}
		}
	}
	return about
}

func (o *informersOptions) print(informers []updatev1beta1.UpdateInformer, about map[string]updatev1beta1.InsightImpact, wide bool, now time.Time) error {
	if len(informers) == 0 {
		_, err := fmt.Fprintln(o.Streams.Out, "There are no UpdateInformers. The built-in informers need none.")
		return err
	}
	header := []string{"NAME", "STATE", "LAST ANSWER", "MESSAGE"}
	if wide {
		header = append(header, "SERVICE", "HANDLERS")
	}
	var rows [][]string
	for i := range informers {
		informer := &informers[i]
		state, message := informerState(informer, now)
		if answer, found := about[informer.Name]; found && state == stateAnswers {
			state, message = answerStates[answer.Reason], cmp.Or(answer.Description, answer.Summary)
		}
		row := []string{informer.Name, state, age(informer.Status.LastContactTime, now), message}
		if wide {
			service := informer.Spec.ClientConfig.Service
			row = append(row, fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, service.Port), handlerNames(informer))
		}
		rows = append(rows, row)
	}
	return screen.PrintTable(o.Streams.Out, header, rows)
}

const stateAnswers = "Answers"

// informerState returns a word for the state of an informer and, if it does not answer, a message.
func informerState(informer *updatev1beta1.UpdateInformer, now time.Time) (state, message string) {
	if !informer.IsEnabled() {
		return "Disabled", "spec.enabled is false"
	}
	answers := false
	for _, name := range []string{
		updatev1beta1.ConditionCABundleResolved, updatev1beta1.ConditionReachable, updatev1beta1.ConditionDiscovered, updatev1beta1.ConditionOnline,
	} {
		i := slices.IndexFunc(informer.Status.Conditions, func(c updatev1beta1.InformerCondition) bool { return c.Type == name })
		if i < 0 {
			continue
		}
		condition := &informer.Status.Conditions[i]
		switch {
		case condition.Status != metav1.ConditionTrue:
			return "Not" + name, strings.Join([]string{condition.Reason, condition.Message}, ": ")
		case name == updatev1beta1.ConditionOnline && condition.IsStale(now):
			return "Stale", staleMessage(condition.ConfirmedTime(), now)
		}
		answers = answers || name == updatev1beta1.ConditionReachable
	}
	if !answers {
		return "Unknown", "the Update Status Controller has not queried it yet"
	}
	return stateAnswers, ""
}

// staleMessage describes a heartbeat that is not recent.
func staleMessage(heartbeat, now time.Time) string {
	if heartbeat.After(now) {
		return "the last heartbeat is in the future: " + screen.Date(heartbeat)
	}
	return "the last heartbeat is " + screen.Elapsed(heartbeat, now) + " old"
}

func handlerNames(informer *updatev1beta1.UpdateInformer) string {
	var names []string
	for _, handler := range informer.Status.Handlers {
		names = append(names, handler.Name)
	}
	return strings.Join(names, ",")
}

// age formats the time elapsed since a time. It returns "" for an unknown time.
func age(at *metav1.Time, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return screen.Elapsed(at.Time, now)
}
