// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// progressAfter is how long nothing must have been printed before a progress line appears.
const progressAfter = 10 * time.Second

// printer prints a line for every change of an upgrade.
type printer struct {
	out io.Writer
	now func() time.Time

	mu      sync.Mutex
	last    map[string]string      // the last line printed for each phase and step
	waiting *history.StepCondition // the step that has started but not ended; nil if there is none
	printed time.Time              // when the last line was printed
}

// Write prints the text unchanged.
func (p *printer) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printed = p.now()
	return p.out.Write(text)
}

// startProgress prints a progress line whenever nothing was printed about a waiting step for a
// while, until stop is called or the context ends.
func (p *printer) startProgress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				p.progress()
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// progress prints that a step is still waiting if nothing was printed for progressAfter.
func (p *printer) progress() {
	p.mu.Lock()
	waiting, due := p.waiting, p.now().Sub(p.printed) >= progressAfter
	p.mu.Unlock()
	if due && waiting != nil {
		p.line("%s  %-30s %-8s %6s  still: %s", p.clock(), waiting.Type, "waiting", p.took(waiting), waiting.Message)
	}
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// upgrade prints the changes of the phase and the steps since the last call. For an UpgradeConfig
// that creates UpgradeJobs, it prints the changes of the schedule.
func (p *printer) upgrade(object *unstructured.Unstructured) {
	var upgrade struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
			History    []history.Record   `json:"history"`
		} `json:"status"`
	}
	name := object.GetName()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &upgrade); err != nil {
		p.line("%s  %-30s %-8s %6s  %s", p.clock(), name, "unknown", "", err)
		return
	}
	if c := apimeta.FindStatusCondition(upgrade.Status.Conditions, "Scheduled"); c != nil && p.changed(name+"/Scheduled", c.Reason+c.Message) {
		p.line("%s  %-30s %-8s %6s  %s: %s", p.clock(), name, "schedule", "", c.Reason, c.Message)
	}
	if len(upgrade.Status.History) == 0 {
		return
	}
	newest := &upgrade.Status.History[0]
	for i := range newest.Conditions {
		p.step(name, &newest.Conditions[i])
	}
	if newest.Phase != "" && p.changed(name, string(newest.Phase)+newest.Version) {
		p.line("%s  %-30s %-8s %6s  %s", p.clock(), name, newest.Phase, "", newest.Version)
	}
}

func (p *printer) step(of string, c *history.StepCondition) {
	p.track(c)
	if c.Reason == "Started" {
		return // its first result follows at once
	}
	if !p.changed(of+"/"+c.Type, fmt.Sprint(c.Status, c.Reason, c.Message, c.CompleteTime)) {
		return
	}
	message := c.Message
	if c.Reason != "" && c.Reason != "Done" {
		message = c.Reason + ": " + message
	}
	p.line("%s  %-30s %-8s %6s  %s", p.clock(), c.Type, state(c), p.took(c), message)
}

// track remembers which step is waiting.
func (p *printer) track(c *history.StepCondition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.CompleteTime == nil {
		p.waiting = c
	} else if p.waiting != nil && p.waiting.Type == c.Type {
		p.waiting = nil
	}
}

// state describes the state of a step in one word.
func state(c *history.StepCondition) string {
	switch {
	case c.CompleteTime == nil && c.Status == metav1.ConditionUnknown:
		return "unknown"
	case c.CompleteTime == nil:
		return "waiting"
	case c.Status == metav1.ConditionTrue && c.Reason == "Done":
		return "done"
	case c.Status == metav1.ConditionTrue:
		return "skipped"
	default:
		return "failed"
	}
}

// took returns the time from the start of a step until its end, or until now.
func (p *printer) took(c *history.StepCondition) string {
	if c.StartTime == nil {
		return ""
	}
	end := p.now()
	if c.CompleteTime != nil {
		end = c.CompleteTime.Time
	}
	return duration(end.Sub(c.StartTime.Time))
}

func (p *printer) changed(of, now string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]string{}
	}
	changed := p.last[of] != now
	p.last[of] = now
	return changed
}

func (p *printer) result(problems []string, took time.Duration) {
	if len(problems) == 0 {
		p.line("It ended as expected, after %s in all.", duration(took))
		return
	}
	p.line("It did not end as expected:")
	for _, problem := range problems {
		p.line("  - %s", problem)
	}
}

func (p *printer) clock() string { return p.now().Format("15:04:05") }
