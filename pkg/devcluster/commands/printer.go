// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
)

// printer prints what happens, one line for each change.
type printer struct {
	out io.Writer

	mu   sync.Mutex
	last map[string]string // the last line about each phase and step
}

// Write prints as it is.
func (p *printer) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// upgradeConfig prints what has changed of the phase and of the steps since the object was seen last.
func (p *printer) upgradeConfig(object *unstructured.Unstructured) {
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
		p.line("%s  %-30s %-8s %6s  %s", clock(), object.GetName(), phase, "", version)
	}
}

func (p *printer) step(of string, condition map[string]any) {
	text := func(key string) string {
		value, _ := condition[key].(string)
		return value
	}
	if text("reason") == "Started" {
		return // the next thing that is known of it follows at once
	}
	what := text("status") + text("reason") + text("message") + text("completeTime")
	if !p.changed(of+"/"+text("type"), what) {
		return
	}
	message := text("message")
	if reason := text("reason"); reason != "" && reason != "Done" {
		message = reason + ": " + message
	}
	p.line("%s  %-30s %-8s %6s  %s", clock(), text("type"), state(text("status"), text("reason"), text("completeTime")), took(text("startTime"), text("completeTime")), message)
}

// state says in a word how a step is. One that has no completion time is being tried.
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

func took(started, completed string) string {
	start, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return ""
	}
	end, err := time.Parse(time.RFC3339, completed)
	if err != nil {
		end = time.Now()
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

func clock() string { return time.Now().Format("15:04:05") }
