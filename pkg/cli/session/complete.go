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

// Completions returns what a shell may complete a word with; nil means nothing.
type Completions func(cmd *cobra.Command, cluster *Cluster) []string

// Completion returns the function of cobra that completes with what a cluster has. A cluster that cannot be read has nothing.
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

// First returns a completion of the first argument alone.
func First(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, word)
	}
}

// ThenFile completes the first argument, and the second one with files.
func ThenFile(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, args, word)
	}
}

// NamesOf returns the names of the objects of a list.
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
