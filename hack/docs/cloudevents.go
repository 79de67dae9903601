// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// cloudEventsIntro is the part of the page that is not generated.
//
//go:embed cloudevents.md
var cloudEventsIntro string

// cloudEvents returns the page about the webhook's CloudEvents and the requirements for a receiver.
func cloudEvents() (string, error) {
	var page strings.Builder
	page.WriteString(strings.Replace(cloudEventsIntro, "WAITING", strconv.Itoa(webhook.MaxQueued), 1))
	page.WriteString("\n## Types\n\n| type | when |\n| --- | --- |\n")
	for _, row := range webhook.Types() {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", row[0], strings.ReplaceAll(row[0], ".", ""), row[1])
	}
	page.WriteString("\n## An example of each\n")
	for _, row := range webhook.Types() {
		example, err := webhook.Example(row[0])
		if err != nil {
			return "", err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, example, "", "  "); err != nil {
			return "", err
		}
		fmt.Fprintf(&page, "\n### %s\n\n%s\n\n```json\n%s\n```\n", row[0], row[1], indented.String())
	}
	return page.String(), nil
}
