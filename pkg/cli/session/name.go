// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"path/filepath"
	"slices"
	"strings"
)

// commandName returns the name by which the program was invoked, for the commands that it prints: "oc
// update", "kubectl update", "kubectl openshift-update" of krew, or the name of the file. Plugins are
// started by their absolute path; whether by oc or by kubectl is known from the program that the shell
// started.
func commandName(program, invoker string) string {
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	client, plugin, _ := strings.Cut(base, "-")
	plugin = strings.ReplaceAll(plugin, "_", "-") // as plugins are named whose commands have a dash
	if !slices.Contains([]string{"oc", "kubectl"}, client) || !slices.Contains([]string{"update", "openshift-update"}, plugin) {
		return "kubectl-update"
	}
	switch starter := strings.TrimSuffix(filepath.Base(invoker), ".exe"); {
	case starter == "oc", starter == "kubectl":
		return starter + " " + plugin
	case starter == base, !filepath.IsAbs(program):
		return base
	default:
		return client + " " + plugin
	}
}

// kubectlVerbs are the commands of oc that kubectl also has, with the same arguments.
var kubectlVerbs = []string{
	"annotate", "apply", "cordon", "delete", "describe", "drain", "edit", "explain", "get", "label",
	"logs", "patch", "rollout", "scale", "taint", "uncordon",
}

// LocalCommand returns a command of oc under the name by which the program was invoked: "oc update" becomes that name,
// and other commands become commands of kubectl if kubectl invoked the program and has them.
func LocalCommand(command, name string) string {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "oc" {
		return command
	}
	if words[1] == "update" {
		return name + strings.TrimPrefix(command, "oc update")
	}
	if !strings.HasPrefix(name, "kubectl ") || !slices.Contains(kubectlVerbs, verb(words[1:])) {
		return command
	}
	return "kubectl" + strings.TrimPrefix(command, "oc")
}

// verb returns the first word that is neither a flag nor the value of -n.
func verb(words []string) string {
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "-n":
			i++
		case !strings.HasPrefix(words[i], "-"):
			return words[i]
		}
	}
	return ""
}
