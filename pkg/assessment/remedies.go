// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
)

const (
	// controllerNamespace is the default namespace of the Update Status Controller.
	controllerNamespace = "managed-upgrade-operator"
	// maxCommands limits the commands of a remedy, which has one command per object.
	maxCommands = 8
)

// validName matches names that are safe to use in commands. API objects have such names, but third-party
// informers may report anything.
var (
	validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?$`)
	validKind = regexp.MustCompile(`^[A-Za-z]{1,63}$`)
)

// advise decides what to do first.
func (c *cluster) advise(out *updatev1beta1.Assessment) {
	switch out.State {
	case updatev1beta1.StateIdle:
		switch {
		case watchesError(out.Watch):
			out.Remedy = &updatev1beta1.Remedy{Type: none, Text: "Look into the errors before the next update:", Commands: []string{allInsights}}
		case c.followUp:
			out.Remedy = &updatev1beta1.Remedy{Type: none, Text: "Follow up on the last update:", Commands: []string{allInsights}}
		case out.Next != nil && out.Next.Release != "" && validName.MatchString(out.Next.Release):
			out.Remedy = &updatev1beta1.Remedy{Type: none, Text: "Nothing. Check it ahead:", Commands: []string{"oc update pre-checks --version " + out.Next.Release}}
		default:
			out.Remedy = &updatev1beta1.Remedy{Type: none, Text: nothing}
		}
	case updatev1beta1.StateProgressing:
		out.Remedy = orErrors(out, nothing)
	case updatev1beta1.StateWaiting:
		out.Remedy = c.adviseWait(out)
	case updatev1beta1.StateStuck:
		out.Remedy = firstRemedy(out.Causes)
	case updatev1beta1.StateUnknown:
		out.Remedy = c.adviseUnknown()
	}
}

func diagnose(what string, commands ...string) *updatev1beta1.Remedy {
	return &updatev1beta1.Remedy{Type: diagnoses, Text: what, Commands: commands}
}

func firstRemedy(causes []updatev1beta1.Cause) *updatev1beta1.Remedy {
	for i := range causes {
		if r := causes[i].Remedy; r != nil && r.Type != none {
			return r
		}
	}
	return diagnose("See all insights:", allInsights)
}

func (c *cluster) adviseWait(out *updatev1beta1.Assessment) *updatev1beta1.Remedy {
	if u := c.waitingUpgrade(); u != nil && out.ActionRequired {
		return adviseUpgrade(u)
	}
	if out.ActionRequired {
		return firstRemedy(out.Causes)
	}
	if out.Resumes != nil {
		return orErrors(out, "Nothing before then.")
	}
	return orErrors(out, nothing)
}

// orErrors returns the given remedy text, or a pointer to the errors if any are being watched.
func orErrors(out *updatev1beta1.Assessment, nothing string) *updatev1beta1.Remedy {
	if watchesError(out.Watch) {
		return &updatev1beta1.Remedy{Type: none, Text: "Look into the errors:", Commands: []string{allInsights}}
	}
	return &updatev1beta1.Remedy{Type: none, Text: nothing}
}

// readCommands maps the required sources to their resources.
var readCommands = map[string]string{
	string(checks.SourceClusterVersion): "clusterversions",
	string(checks.SourceOperators):      "clusteroperators",
	string(checks.SourceNodes):          "nodes",
	string(checks.SourcePools):          "machineconfigpools",
}

// adviseUnknown starts with the controller, because it reads most of the data.
func (c *cluster) adviseUnknown() *updatev1beta1.Remedy {
	if c.in.ControllerForbidden {
		return diagnose("Ask an administrator for the ClusterRole update-viewer.")
	}
	for _, s := range c.sources {
		if s.Name == updatev1beta1.SourceStatusController && !s.Current {
			return diagnose("Start with the controller:", "oc -n "+cmp.Or(c.in.ControllerNamespace, controllerNamespace)+" get pods")
		}
	}
	for _, s := range c.sources {
		resource, required := readCommands[s.Name]
		if !required || s.Current {
			continue
		}
		if c.in.Facts.Missing[checks.FactSource(s.Name)].Reason == checks.MissingForbidden {
			return diagnose("Find out what you may read:", "oc auth can-i list "+resource)
		}
		return diagnose("Find out why they cannot be read:", "oc get "+resource)
	}
	if r := c.adviseUnclear(); r != nil {
		return r
	}
	return diagnose("See what is missing:", allInsights)
}

// remedyOf returns the remedy for the first link of a chain.
func (c *cluster) remedyOf(from *chain) *updatev1beta1.Remedy {
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
	remedy := remedyAbout(r.kind, r.text, first.objects, func(v *vertex) string { return fill(r.command, v) })
	if r.command != "" && len(remedy.Commands) == 0 {
		return describeObjects(first)
	}
	return remedy
}

// remedyAbout returns a remedy with commands for the first objects. It skips empty commands.
func remedyAbout(kind updatev1beta1.RemedyType, what string, objects []*vertex, command func(*vertex) string) *updatev1beta1.Remedy {
	remedy := &updatev1beta1.Remedy{Type: kind, Text: what}
	for _, v := range objects {
		if one := command(v); one != "" && len(remedy.Commands) < maxCommands && !slices.Contains(remedy.Commands, one) {
			remedy.Commands = append(remedy.Commands, one)
		}
	}
	return remedy
}

// fill returns the command for an object, or "" if the object's name is not valid.
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

// describeObjects returns a diagnostic for the first objects.
func describeObjects(l *link) *updatev1beta1.Remedy {
	remedy := remedyAbout(diagnoses, "Look at what is reported:", l.objects, func(v *vertex) string { return fill("oc describe {resource} {object}", v) })
	if len(remedy.Commands) == 0 {
		remedy.Commands = []string{allInsights}
	}
	return remedy
}

// resource returns an object's kind and group in the form that oc accepts.
func resource(v *vertex) string {
	kind := strings.ToLower(v.kind)
	if v.kind == kindPool {
		return kind // no other group has this kind
	}
	group, _, found := strings.Cut(v.apiVersion, "/")
	if !found || !validName.MatchString(group) {
		return kind
	}
	return kind + "." + group
}

// foreignRemedy names the informer and its reference, if any, because only the informer knows what to do.
func foreignRemedy(from *chain, first *link) *updatev1beta1.Remedy {
	remedy := describeObjects(first)
	remedy.Text = clean("Look at what informer " + from.group + " reports:")
	return remedy
}

// budgetRemedy returns a remedy for a drain that a PodDisruptionBudget blocks: one more replica, provided
// that the budget requires a number of pods, all of them are healthy, and a Deployment created them. It
// returns nil if no command is known to help.
func (c *cluster) budgetRemedy(first *link) *updatev1beta1.Remedy {
	remedy := &updatev1beta1.Remedy{Type: fixes, Text: "Add a replica; the update then continues on its own:"}
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

// scaleCommand returns the command that adds a pod to a PodDisruptionBudget, or "" if no command is known to
// help. All pods must be known and belong to one Deployment, because with several Deployments their replica
// counts are unknown.
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

// deploymentOf returns the name of the Deployment that created a pod, derived from the label and name set by
// the ReplicaSet. It returns "" for other pods.
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

// podNamespaces maps operators to the namespaces of the pods that they report about.
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

// aboutPods matches operator messages about pods.
var aboutPods = regexp.MustCompile(`(?i)\bpods?\b`)

// operatorRemedy shows the pods of the first operators if they report about pods, and otherwise the operators
// themselves.
func (c *cluster) operatorRemedy(first *link) *updatev1beta1.Remedy {
	why := "Find out why the operator fails:"
	remedy := remedyAbout(diagnoses, why, first.objects, func(v *vertex) string {
		message := c.operatorClause(v.name)
		namespace, known := podNamespaces[v.name]
		if !known || !aboutPods.MatchString(message) {
			return fill(describeOperator, v)
		}
		if len(first.objects) == 1 && strings.Contains(message, "not ready") {
			why = "Find out why the pod is not ready:"
		}
		return "oc -n " + namespace + " get pods -o wide"
	})
	remedy.Text = why
	if len(remedy.Commands) == 0 {
		return describeObjects(first)
	}
	return remedy
}

// unpause returns the remedy that unpauses the selected paused pools, or nil if there are none.
func (c *cluster) unpause(selected func(clusterstate.Pool) bool) *updatev1beta1.Remedy {
	var paused []*vertex
	for _, pool := range c.in.Facts.Pools {
		if pool.Paused && selected(pool) {
			paused = append(paused, &vertex{object: object{name: pool.Name}})
		}
	}
	r := byReason[reasonPoolPaused]
	remedy := remedyAbout(r.kind, r.text, paused, func(v *vertex) string { return fill(r.command, v) })
	if len(remedy.Commands) == 0 {
		return nil
	}
	return remedy
}

// pauseRemedy returns the remedy for a pause without an end. It returns nil if the chain is not about a pause
// or the pool has its own field for pausing.
func (c *cluster) pauseRemedy(from *chain) *updatev1beta1.Remedy {
	if from.reason != updatev1beta1.ReasonPaused || from.group != "" {
		return nil
	}
	if p := from.section.pool; p != nil && p.Kind == kindPool {
		if r := c.unpause(func(pool clusterstate.Pool) bool { return pool.Name == p.Name }); r != nil {
			return r
		}
	}
	if from.section.controlPlane {
		if r := c.unpause(clusterstate.Pool.Required); r != nil {
			return r
		}
	}
	if pause.IsEndless(c.in.Facts.VersionManagement) {
		return &updatev1beta1.Remedy{Type: fixes, Text: "End the pause when the update may continue:", Commands: []string{
			`oc patch clusterversion version --type=merge -p '{"spec":{"versionManagement":{"pausedUntil":null}}}'`,
		}}
	}
	return nil
}
