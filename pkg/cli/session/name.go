// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"path/filepath"
	"slices"
	"strings"
)

// commandName returns the name that the user ran, for printed commands: "oc update", "kubectl update", krew's
// "kubectl openshift-update", or the file name. Plugins are started by their absolute path. The program
// started by the shell shows whether that was oc or kubectl.
func commandName(program, invoker string) string {
	base := strings.TrimSuffix(filepath.Base(program), ".exe")
	client, plugin, _ := strings.Cut(base, "-")
	plugin = strings.ReplaceAll(plugin, "_", "-") // plugin files have underscores for dashes in the command
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

// kubectlVerbs lists the commands of oc that kubectl also has with the same arguments.
var kubectlVerbs = []string{
	"annotate", "apply", "cordon", "delete", "describe", "drain", "edit", "explain", "get", "label",
	"logs", "patch", "rollout", "scale", "taint", "uncordon",
}

// LocalCommand converts an oc command to the client that the user ran. "oc update" becomes the name of the
// program, and other commands become kubectl commands if kubectl ran the program and has the command.
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

// verb returns the first word that is not a flag or the value of -n.
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
