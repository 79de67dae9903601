// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import "testing"

func TestCommandName(t *testing.T) {
	t.Parallel()
	tests := []struct{ program, invoker, want string }{
		{"/usr/local/bin/kubectl-update", "/usr/bin/oc", "oc update"},
		{"/usr/local/bin/kubectl-update", "/usr/bin/kubectl", "kubectl update"},
		{"/usr/local/bin/kubectl-update", "", "kubectl update"},
		{"/usr/local/bin/kubectl-update", "/usr/bin/make", "kubectl update"},
		{"/usr/local/bin/oc-update", "", "oc update"},
		{"/usr/local/bin/kubectl-update", "/usr/local/bin/kubectl-update", "kubectl-update"},
		{"kubectl-update", "", "kubectl-update"},
		{"bin/kubectl-update", "bin/kubectl-update", "kubectl-update"},
		{"/home/ann/.krew/bin/kubectl-openshift_update", "/usr/bin/oc", "oc openshift-update"},
		{"/home/ann/.krew/bin/kubectl-openshift_update", "", "kubectl openshift-update"},
		{"/usr/local/bin/kubectl-other", "/usr/bin/oc", "kubectl-update"},
		{"/tmp/renamed", "/usr/bin/oc", "kubectl-update"},
	}
	for _, test := range tests {
		t.Run(test.program+" started by "+test.invoker, func(t *testing.T) {
			t.Parallel()
			if got := commandName(test.program, test.invoker); got != test.want {
				t.Errorf("name %q, want %q", got, test.want)
			}
		})
	}
}

func TestLocalCommand(t *testing.T) {
	t.Parallel()
	tests := []struct{ command, name, want string }{
		{"oc update status", "kubectl update", "kubectl update status"},
		{"oc update status", "kubectl-update", "kubectl-update status"},
		{"oc -n shop scale deployment/api --replicas=3", "oc update", "oc -n shop scale deployment/api --replicas=3"},
		{"oc -n shop scale deployment/api --replicas=3", "kubectl update", "kubectl -n shop scale deployment/api --replicas=3"},
		{"oc adm upgrade", "kubectl update", "oc adm upgrade"},
		{"oc -n adm debug node/a", "kubectl update", "oc -n adm debug node/a"},
		{"oc", "kubectl update", "oc"},
	}
	for _, test := range tests {
		t.Run(test.command+" of "+test.name, func(t *testing.T) {
			t.Parallel()
			if got := LocalCommand(test.command, test.name); got != test.want {
				t.Errorf("command %q, want %q", got, test.want)
			}
		})
	}
}
