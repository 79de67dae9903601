// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const decisions = "../docs/decisions"

var (
	decisionName = regexp.MustCompile(`^\d{4}(-[a-z0-9]+)+\.md$`)
	// decisionText has the groups number, title, date, status, and body.
	decisionText   = regexp.MustCompile(`^# (\d{4}): (\S.*)\n\n(\d{4}-\d\d-\d\d)\n\nStatus: (.+)\n\n((?s)## .+)$`)
	decisionStatus = regexp.MustCompile(`^(accepted|superseded( in part)? by (\[\d{4}\]\([^)]+\)(, and | and |, )?)+(: [^:]+)?)$`)
	decisionLink   = regexp.MustCompile(`\[(\d{4})\]\(([^)#]+)\)`)
	// indexRow has the groups number, file, title, status, and area.
	indexRow = regexp.MustCompile(`(?m)^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| (.+) \| (.+) \|$`)
)

// TestDecisions checks that all decision records have the same format, that links to other records
// match their numbers, and that a superseded record refers to a later one. docs/decisions/README.md
// must list every record correctly.
func TestDecisions(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(decisions)
	if err != nil {
		t.Fatal(err)
	}
	index := map[string][]string{}
	for _, row := range indexRow.FindAllStringSubmatch(string(readFile(t, filepath.Join(decisions, "README.md"))), -1) {
		if index[row[2]] != nil || !slices.Contains(decisionAreas(), row[5]) {
			t.Errorf("README.md: %s is listed twice, or its area is none of %v", row[2], decisionAreas())
		}
		index[row[2]] = row
	}
	numbers := map[string]bool{}
	for _, file := range files {
		name := file.Name()
		if name == "README.md" {
			continue
		}
		record := checkDecision(t, name)
		if numbers[name[:4]] {
			t.Errorf("%s: another record has this number", name)
		}
		numbers[name[:4]] = true
		status, _, _ := strings.Cut(record.status, ": ")
		want := fmt.Sprintf("| [%s](%s) | %s | %s |", name[:4], name, record.title, status)
		if row := index[name]; row == nil || !strings.HasPrefix(row[0], want) {
			t.Errorf("README.md must have the line\n%s AREA |", want)
		}
		delete(index, name)
	}
	for name := range index {
		t.Errorf("README.md lists %s, which does not exist", name)
	}
}

func decisionAreas() []string {
	return []string{
		"API", "command line", "controllers", "drains and nodes", "engine", "fleets", "health checks", "installation", "monitoring",
		"scheduled maintenance", "security", "tests", "update status", "upgrades",
	}
}

type decision struct{ title, status string }

func checkDecision(t *testing.T, name string) decision {
	t.Helper()
	text := string(readFile(t, filepath.Join(decisions, name)))
	parts := decisionText.FindStringSubmatch(text)
	if !decisionName.MatchString(name) || parts == nil || parts[1] != name[:4] {
		t.Errorf(`%s must be named NNNN-title.md and begin with "# NNNN: Title", the date, "Status: accepted", and "## Context", `+
			"with an empty line after each", name)
		return decision{}
	}
	if _, err := time.Parse(time.DateOnly, parts[3]); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if !decisionStatus.MatchString(parts[4]) {
		t.Errorf("%s: the status %q is neither accepted nor superseded by [NNNN](FILE)", name, parts[4])
	}
	for _, link := range decisionLink.FindAllStringSubmatch(parts[4], -1) {
		if link[1] <= name[:4] {
			t.Errorf("%s: its successor %s is not later", name, link[1])
		}
	}
	for _, link := range decisionLink.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(decisions, link[2])); err != nil || !strings.HasPrefix(link[2], link[1]) {
			t.Errorf("%s: %s leads to no record with this number", name, link[0])
		}
	}
	checkSections(t, name, parts[5])
	return decision{title: parts[2], status: parts[4]}
}

// checkSections checks that a record has all sections, in their order and not empty.
func checkSections(t *testing.T, name, body string) {
	t.Helper()
	var sections []string
	for section := range strings.SplitSeq("\n"+body, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		if title == "" {
			continue
		}
		sections = append(sections, title)
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s: the section %s is empty", name, title)
		}
	}
	if want := []string{"Context", "Decision", "Alternatives", "Consequences"}; !slices.Equal(sections, want) {
		t.Errorf("%s has the sections %v, want %v", name, sections, want)
	}
}
