// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Linux limits for starting a process: the size of a single string, including its terminating zero
// byte, and the total size of all strings (a quarter of the default stack size).
const (
	maxArgument  = 128 << 10
	maxArguments = 2 << 20
)

// checkArgumentSizes returns the error that Linux would return if the environment and the arguments
// of a container are too large. Values from other objects are not counted.
func checkArgumentSizes(pod *corev1.Pod) error {
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		env := expandEnvironment(container.Env, func(*corev1.EnvVarSource) string { return "" })
		values := env.values()
		strs := env.strings()
		for _, argument := range append(append([]string{}, container.Command...), container.Args...) {
			strs = append(strs, expand(argument, values))
		}
		if err := checkSizes(strs); err != nil {
			return fmt.Errorf("container %s: %w", container.Name, err)
		}
	}
	return nil
}

func checkSizes(strs []string) error {
	total := 0
	for _, s := range strs {
		total += len(s) + 1
		if len(s)+1 > maxArgument {
			name, _, _ := strings.Cut(s, "=")
			return fmt.Errorf("starting the process: argument list too long: %.40q has %d bytes", name, len(s))
		}
	}
	if total > maxArguments {
		return fmt.Errorf("starting the process: argument list too long: %d bytes in all", total)
	}
	return nil
}

// environment is the ordered environment of a container.
type environment []corev1.EnvVar

// expandEnvironment computes the variables of a container like a kubelet: a value may refer to
// previous variables. The function resolves values with a source.
func expandEnvironment(vars []corev1.EnvVar, from func(*corev1.EnvVarSource) string) environment {
	var env environment
	values := map[string]string{}
	for _, v := range vars {
		value := expand(v.Value, values)
		if v.ValueFrom != nil {
			value = from(v.ValueFrom)
		}
		values[v.Name] = value
		env = append(env, corev1.EnvVar{Name: v.Name, Value: value})
	}
	return env
}

// values returns the values of the variables. If a name is repeated, the last value counts.
func (e environment) values() map[string]string {
	values := map[string]string{}
	for _, v := range e {
		values[v.Name] = v.Value
	}
	return values
}

// strings returns the environment in the form that a process receives.
func (e environment) strings() []string {
	values, seen := e.values(), map[string]bool{}
	var all []string
	for _, v := range e {
		if !seen[v.Name] {
			seen[v.Name] = true
			all = append(all, v.Name+"="+values[v.Name])
		}
	}
	return all
}

// expand replaces $(NAME) with the value of a variable and $$ with $, like a kubelet does in
// values, commands, and arguments. References to unknown variables stay unchanged.
func expand(text string, values map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		switch {
		case strings.HasPrefix(rest, "$"):
			out.WriteString("$")
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && strings.Contains(rest, ")"):
			name, after, _ := strings.Cut(rest[1:], ")")
			if value, known := values[name]; known {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			text = after
		default:
			out.WriteString("$")
			text = rest
		}
	}
}
