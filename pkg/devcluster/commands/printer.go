// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// progressAfter is how long nothing must have been printed before a progress line appears.
const progressAfter = 10 * time.Second

// printer prints a line for every change of an upgrade.
type printer struct {
	out io.Writer
	now func() time.Time

	mu      sync.Mutex
	last    map[string]string // the last line printed for each phase and step
	waiting *waitingStep      // the step that is waiting; nil if there is none
	printed time.Time         // when the last line was printed
}

// waitingStep is a step that has started but not ended.
type waitingStep struct{ name, started, message string }

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
		p.line("%s  %-30s %-8s %6s  still: %s", p.clock(), waiting.name, "waiting", p.took(waiting.started, ""), waiting.message)
	}
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// upgrade prints the changes of the phase and the steps since the last call. For an UpgradeConfig
// that creates UpgradeJobs, it prints the changes of the schedule.
func (p *printer) upgrade(object *unstructured.Unstructured) {
	p.schedule(object)
	newest := scenario.Newest(object)
	conditions, _, _ := unstructured.NestedSlice(newest, "conditions")
	for _, item := range conditions {
		if condition, is := item.(map[string]any); is {
			p.step(object.GetName(), condition)
		}
	}
	phase, _, _ := unstructured.NestedString(newest, "phase")
	version, _, _ := unstructured.NestedString(newest, "version")
	if phase != "" && p.changed(object.GetName(), phase+version) {
		p.line("%s  %-30s %-8s %6s  %s", p.clock(), object.GetName(), phase, "", version)
	}
}

// schedule prints changes of the Scheduled condition.
func (p *printer) schedule(object *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		condition, is := item.(map[string]any)
		if !is || condition["type"] != "Scheduled" {
			continue
		}
		what := fmt.Sprintf("%v: %v", condition["reason"], condition["message"])
		if p.changed(object.GetName()+"/Scheduled", what) {
			p.line("%s  %-30s %-8s %6s  %s", p.clock(), object.GetName(), "schedule", "", what)
		}
	}
}

func (p *printer) step(of string, condition map[string]any) {
	text := func(key string) string {
		value, _ := condition[key].(string)
		return value
	}
	p.track(condition)
	if text("reason") == "Started" {
		return // its first result follows at once
	}
	what := text("status") + text("reason") + text("message") + text("completeTime")
	if !p.changed(of+"/"+text("type"), what) {
		return
	}
	message := text("message")
	if reason := text("reason"); reason != "" && reason != "Done" {
		message = reason + ": " + message
	}
	p.line("%s  %-30s %-8s %6s  %s", p.clock(), text("type"), state(text("status"), text("reason"), text("completeTime")), p.took(text("startTime"), text("completeTime")), message)
}

// track remembers which step is waiting.
func (p *printer) track(condition map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name, _ := condition["type"].(string)
	if complete, _ := condition["completeTime"].(string); complete == "" {
		p.waiting = &waitingStep{name: name}
		p.waiting.started, _ = condition["startTime"].(string)
		p.waiting.message, _ = condition["message"].(string)
	} else if p.waiting != nil && p.waiting.name == name {
		p.waiting = nil
	}
}

// state describes the state of a step in one word.
func state(status, reason, completed string) string {
	switch {
	case completed == "" && status == "Unknown":
		return "unknown"
	case completed == "":
		return "waiting"
	case status == "True" && reason == "Done":
		return "done"
	case status == "True":
		return "skipped"
	default:
		return "failed"
	}
}

// took returns the time from the start of a step until its end, or until now.
func (p *printer) took(started, completed string) string {
	start, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return ""
	}
	end, err := time.Parse(time.RFC3339, completed)
	if err != nil {
		end = p.now()
	}
	return duration(end.Sub(start))
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
