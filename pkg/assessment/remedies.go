// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
)

const (
	// controllerNamespace is the default namespace of the Update Status Controller.
	controllerNamespace = "managed-upgrade-operator"
	// maxCommands bounds the commands of a remedy: one for each object.
	maxCommands = 8
)

// validName matches the names that are put into commands. Objects of the API have such names; what a
// third party invents may be anything.
var (
	validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?$`)
	validKind = regexp.MustCompile(`^[A-Za-z]{1,63}$`)
)

// advise decides what to do first.
func (c *cluster) advise(out *v1beta1.Assessment) {
	switch out.State {
	case v1beta1.StateIdle:
		out.Remedy = &v1beta1.Remedy{Type: none, Text: nothing}
		if out.Next != nil && out.Next.Release != "" && validName.MatchString(out.Next.Release) {
			out.Remedy = &v1beta1.Remedy{Type: none, Text: "Nothing. Check it ahead:", Commands: []string{"oc update pre-checks --version " + out.Next.Release}}
		}
	case v1beta1.StateProgressing:
		out.Remedy = &v1beta1.Remedy{Type: none, Text: nothing}
	case v1beta1.StateWaiting:
		out.Remedy = c.adviseWait(out)
	case v1beta1.StateStuck:
		out.Remedy = firstRemedy(out.Causes)
	case v1beta1.StateUnknown:
		out.Remedy = c.adviseUnknown()
	}
}

func firstRemedy(causes []v1beta1.Cause) *v1beta1.Remedy {
	for i := range causes {
		if r := causes[i].Remedy; r != nil && r.Type != none {
			return r
		}
	}
	return &v1beta1.Remedy{Type: diagnoses, Text: "See all insights:", Commands: []string{allInsights}}
}

func (c *cluster) adviseWait(out *v1beta1.Assessment) *v1beta1.Remedy {
	if out.ActionRequired {
		return firstRemedy(out.Causes)
	}
	if out.Resumes != nil {
		return &v1beta1.Remedy{Type: none, Text: "Nothing before then."}
	}
	return &v1beta1.Remedy{Type: none, Text: nothing}
}

// readCommands are the resources of the required sources.
var readCommands = map[string]string{
	string(informers.SourceClusterVersion): "clusterversions",
	string(informers.SourceOperators):      "clusteroperators",
	string(informers.SourceNodes):          "nodes",
	string(informers.SourcePools):          "machineconfigpools",
}

// adviseUnknown begins with the controller, which reads most of the data.
func (c *cluster) adviseUnknown() *v1beta1.Remedy {
	for _, s := range c.sources {
		if s.Name == v1beta1.SourceStatusController && !s.Current {
			return &v1beta1.Remedy{Type: diagnoses, Text: "Start with the controller:", Commands: []string{"oc -n " + cmp.Or(c.in.ControllerNamespace, controllerNamespace) + " get pods"}}
		}
	}
	for _, s := range c.sources {
		resource, required := readCommands[s.Name]
		if !required || s.Current {
			continue
		}
		if c.in.Facts.Missing[informers.Source(s.Name)].Reason == informers.MissingForbidden {
			return &v1beta1.Remedy{Type: diagnoses, Text: "Find out what you may read:", Commands: []string{"oc auth can-i list " + resource}}
		}
		return &v1beta1.Remedy{Type: diagnoses, Text: "Find out why they cannot be read:", Commands: []string{"oc get " + resource}}
	}
	if r := c.adviseUnclear(); r != nil {
		return r
	}
	return &v1beta1.Remedy{Type: diagnoses, Text: "See what is missing:", Commands: []string{allInsights}}
}

// remedyOf returns what to do about the first link of a chain.
func (c *cluster) remedyOf(from *chain) *v1beta1.Remedy {
	if len(from.links) == 0 {
		return nil
	}
	first := &from.links[0]
	if from.group != "" {
		return foreignRemedy(from, first)
	}
	if first.kind == kindBudget && from.reason != reasonSelectedByBudgets {
		if r := c.budgetRemedy(first); r != nil {
			return r
		}
	}
	if first.kind == kindOperator && !stalledReason(from.reason) {
		return c.operatorRemedy(first)
	}
	if r := c.pauseRemedy(from); r != nil {
		return r
	}
	r, found := byReason[from.reason]
	if !found || r.text == "" {
		return describeObjects(first)
	}
	remedy := &v1beta1.Remedy{Type: r.kind, Text: r.text}
	if r.command == "" {
		return remedy
	}
	for _, v := range first.objects {
		command := fill(r.command, v)
		if command == "" || len(remedy.Commands) == maxCommands || slices.Contains(remedy.Commands, command) {
			continue
		}
		remedy.Commands = append(remedy.Commands, command)
	}
	if len(remedy.Commands) == 0 {
		return describeObjects(first)
	}
	return remedy
}

// fill returns a command about an object; it is empty if the object has no valid name.
func fill(command string, v *vertex) string {
	if v.namespace != "" && strings.Contains(command, "{resource}") && !strings.Contains(command, "{namespace}") {
		command = strings.Replace(command, "oc ", "oc -n {namespace} ", 1)
	}
	if strings.Contains(command, "{object}") && (!validName.MatchString(v.name) || v.none) ||
		strings.Contains(command, "{namespace}") && !validName.MatchString(v.namespace) ||
		strings.Contains(command, "{resource}") && !validKind.MatchString(v.kind) {
		return ""
	}
	return strings.NewReplacer("{object}", v.name, "{namespace}", v.namespace, "{resource}", resource(v)).Replace(command)
}

// describeObjects returns a diagnostic that shows the first objects.
func describeObjects(l *link) *v1beta1.Remedy {
	remedy := &v1beta1.Remedy{Type: diagnoses, Text: "Look at what is reported:"}
	for _, v := range l.objects {
		if len(remedy.Commands) == maxCommands || v.none || !validKind.MatchString(v.kind) || !validName.MatchString(v.name) ||
			v.namespace != "" && !validName.MatchString(v.namespace) {
			continue
		}
		command := "oc "
		if v.namespace != "" {
			command += "-n " + v.namespace + " "
		}
		remedy.Commands = append(remedy.Commands, command+"describe "+resource(v)+" "+v.name)
	}
	if len(remedy.Commands) == 0 {
		remedy.Commands = []string{allInsights}
	}
	return remedy
}

// resource returns the kind of an object with its group, as oc accepts it.
func resource(v *vertex) string {
	kind := strings.ToLower(v.kind)
	if v.kind == kindPool {
		return kind // no other group has it
	}
	group, _, found := strings.Cut(v.apiVersion, "/")
	if !found || !validName.MatchString(group) {
		return kind
	}
	return kind + "." + group
}

// foreignRemedy names the informer, and its reference if it has one: only the informer knows what to
// do.
func foreignRemedy(from *chain, first *link) *v1beta1.Remedy {
	remedy := describeObjects(first)
	remedy.Text = clean("Look at what informer " + from.group + " reports:")
	return remedy
}

// budgetRemedy returns how to let a drain continue that a budget holds: one more pod, if the budget
// demands a number of pods, all of them are healthy, and a Deployment has created them. nil means that
// no command is known to help.
func (c *cluster) budgetRemedy(first *link) *v1beta1.Remedy {
	remedy := &v1beta1.Remedy{Type: fixes, Text: "Add a replica; the update then continues on its own:"}
	for _, v := range first.objects {
		command := ""
		for i := range c.in.Facts.PDBs {
			if b := &c.in.Facts.PDBs[i]; b.Namespace == v.namespace && b.Name == v.name {
				command = c.scaleCommand(b)
			}
		}
		if command == "" {
			return nil
		}
		if len(remedy.Commands) < maxCommands {
			remedy.Commands = append(remedy.Commands, command)
		}
	}
	return remedy
}

// scaleCommand returns the command that adds a pod to those that a budget counts; empty means that
// there is none that is known to help. All of these pods must be known, and one Deployment must have
// created them: how many replicas one of several has is unknown.
func (c *cluster) scaleCommand(b *clusterstate.PDB) string {
	if b.MinAvailable == 0 || b.Expected <= 0 || b.Healthy != b.Expected || b.Desired != b.Expected || !validName.MatchString(b.Namespace) {
		return ""
	}
	deployment, pods := "", int32(0)
	for _, pod := range c.in.Facts.BudgetPods[b.Namespace] {
		if !b.Selects(pod) {
			continue
		}
		name := deploymentOf(pod)
		if name == "" || deployment != "" && name != deployment {
			return ""
		}
		deployment = name
		pods++
	}
	if deployment == "" || pods != b.Expected {
		return ""
	}
	return fmt.Sprintf("oc -n %s scale deployment/%s --replicas=%d", b.Namespace, deployment, b.Expected+1)
}

// deploymentOf returns the name of the Deployment that has created a pod, by the label and the name
// that its ReplicaSet gives it; empty means that none has.
func deploymentOf(pod clusterstate.Pod) string {
	hash := pod.Labels["pod-template-hash"]
	if hash == "" {
		return ""
	}
	at := strings.LastIndex(pod.Name, "-"+hash+"-")
	if at <= 0 || strings.Contains(pod.Name[at+len(hash)+2:], "-") || !validName.MatchString(pod.Name[:at]) {
		return ""
	}
	return pod.Name[:at]
}

// podNamespaces are where the operators run the pods that they report about.
var podNamespaces = map[string]string{
	"authentication":          "openshift-authentication",
	"console":                 "openshift-console",
	"dns":                     "openshift-dns",
	"etcd":                    "openshift-etcd",
	"image-registry":          "openshift-image-registry",
	"ingress":                 "openshift-ingress",
	"kube-apiserver":          "openshift-kube-apiserver",
	"kube-controller-manager": "openshift-kube-controller-manager",
	"kube-scheduler":          "openshift-kube-scheduler",
	"machine-api":             "openshift-machine-api",
	"machine-config":          "openshift-machine-config-operator",
	"monitoring":              "openshift-monitoring",
	"network":                 "openshift-ovn-kubernetes",
	"openshift-apiserver":     "openshift-apiserver",
	"service-ca":              "openshift-service-ca",
}

// aboutPods matches the messages of operators about pods.
var aboutPods = regexp.MustCompile(`(?i)\bpods?\b`)

// operatorRemedy returns how to see what is wrong with the first operators: their pods, if that is what
// they report about, else the operators themselves.
func (c *cluster) operatorRemedy(first *link) *v1beta1.Remedy {
	remedy := &v1beta1.Remedy{Type: diagnoses, Text: "Find out why the operator fails:"}
	for _, v := range first.objects {
		if len(remedy.Commands) == maxCommands || !validName.MatchString(v.name) {
			continue
		}
		message := c.operatorClause(v.name)
		namespace, known := podNamespaces[v.name]
		if !known || !aboutPods.MatchString(message) {
			remedy.Commands = append(remedy.Commands, "oc describe clusteroperator "+v.name)
			continue
		}
		if len(first.objects) == 1 && strings.Contains(message, "not ready") {
			remedy.Text = "Find out why the pod is not ready:"
		}
		remedy.Commands = append(remedy.Commands, "oc -n "+namespace+" get pods -o wide")
	}
	if len(remedy.Commands) == 0 {
		return describeObjects(first)
	}
	return remedy
}

// pauseRemedy returns how to end a pause without an end; nil means that the chain is about none, or that
// the pool has a field of its own that pauses it.
func (c *cluster) pauseRemedy(from *chain) *v1beta1.Remedy {
	if from.reason != v1beta1.ReasonPaused || from.group != "" {
		return nil
	}
	if p := from.section.pool; p != nil && p.Kind == kindPool {
		for i := range c.in.Facts.Pools {
			if pool := &c.in.Facts.Pools[i]; pool.Name == p.Name && pool.Paused && validName.MatchString(p.Name) {
				return &v1beta1.Remedy{Type: fixes, Text: "Unpause the pool when its nodes may reboot:", Commands: []string{
					"oc patch machineconfigpool " + p.Name + ` --type=merge -p '{"spec":{"paused":false}}'`,
				}}
			}
		}
	}
	if pause.IsEndless(c.in.Facts.VersionManagement) {
		return &v1beta1.Remedy{Type: fixes, Text: "End the pause when the update may continue:", Commands: []string{
			`oc patch clusterversion version --type=merge -p '{"spec":{"versionManagement":{"pausedUntil":null}}}'`,
		}}
	}
	return nil
}
