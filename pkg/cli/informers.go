// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// informersCommand lists the UpdateInformers.
func (p *Program) informersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "informers",
		Short: "Lists the update informers and whether they answer.",
		Args:  manager.NoArgs,
	}
	format := outputFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := format.check(); err != nil {
			return err
		}
		cluster, err := p.connect()
		if err != nil {
			return err
		}
		list := &updatev1beta1.UpdateInformerList{}
		if err := cluster.List(cmd.Context(), list); err != nil {
			return fmt.Errorf("listing UpdateInformers: %w", err)
		}
		if !format.isText() {
			return format.print(p.Streams.Out, list)
		}
		return printInformers(p, list.Items, format.isWide(), cluster.Clock.Now())
	}
	return cmd
}

func printInformers(p *Program, informers []updatev1beta1.UpdateInformer, wide bool, now time.Time) error {
	if len(informers) == 0 {
		_, err := fmt.Fprintln(p.Streams.Out, "There are no UpdateInformers. The built-in informers need none.")
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
		row := []string{informer.Name, state, age(informer.Status.LastContactTime, now), message}
		if wide {
			service := informer.Spec.ClientConfig.Service
			row = append(row, fmt.Sprintf("%s/%s:%d", service.Namespace, service.Name, service.Port), handlerNames(informer))
		}
		rows = append(rows, row)
	}
	return printTable(p.Streams.Out, header, rows)
}

// informerState returns a word for the state of an informer, and a message if it does not answer.
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
	return "Answers", ""
}

// staleMessage describes a heartbeat that is not of the last minutes.
func staleMessage(heartbeat, now time.Time) string {
	if heartbeat.After(now) {
		return "the last heartbeat is of the future: " + date(heartbeat)
	}
	return "the last heartbeat is " + duration.HumanDuration(now.Sub(heartbeat)) + " old"
}

func handlerNames(informer *updatev1beta1.UpdateInformer) string {
	var names []string
	for _, handler := range informer.Status.Handlers {
		names = append(names, handler.Name)
	}
	return strings.Join(names, ",")
}

// age returns how long ago a time is; an unknown time is empty.
func age(at *metav1.Time, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(at.Time))
}
