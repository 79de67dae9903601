// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Completions returns the possible completions of a word, or nil.
type Completions func(cmd *cobra.Command, cluster *Cluster) []string

// Completion returns a cobra function that completes words from the cluster. If the cluster cannot be read,
// there are no completions.
func (p *Session) Completion(values Completions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		cluster, err := p.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all := slices.DeleteFunc(values(cmd, cluster), func(value string) bool { return !strings.HasPrefix(value, word) })
		slices.Sort(all)
		return slices.Compact(all), cobra.ShellCompDirectiveNoFileComp
	}
}

// First limits a completion to the first argument.
func First(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// ThenFile completes the first argument with the given function and the second with files.
func ThenFile(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, word)
	}
}

// NamesOf completes the names of the objects in a list.
func NamesOf(list client.ObjectList) Completions {
	return func(cmd *cobra.Command, cluster *Cluster) []string {
		found := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has the type of its original
		if err := cluster.List(cmd.Context(), found); err != nil {
			return nil
		}
		var names []string
		_ = meta.EachListItem(found, func(object runtime.Object) error {
			names = append(names, object.(client.Object).GetName()) //nolint:forcetypeassert // a list of objects
			return nil
		})
		return names
	}
}
