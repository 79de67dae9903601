// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

func logs(opts *globalOptions) *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:   "logs [NAME]",
		Short: "Print a log of the cluster, or the names of all logs.",
		Args: func(cmd *cobra.Command, args []string) error {
			return manager.NoArgs(cmd, args[min(len(args), 1):]) // besides the name
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			names, _ := logNames(opts.dir) // without a cluster, there are no names
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := logNames(opts.dir)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				for _, name := range names {
					cmd.Println(name)
				}
				return nil
			}
			file, err := os.Open(filepath.Join(opts.dir, "logs", args[0]+".log"))
			if err != nil {
				return fmt.Errorf("there is no log named %s; logs: %s", args[0], strings.Join(names, ", "))
			}
			defer file.Close()
			return copyLog(cmd.Context(), cmd.OutOrStdout(), file, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until Ctrl-C")
	return cmd
}

func logNames(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "logs", "*.log"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no logs in %s: start a cluster with \"devcluster up\", or name its folder by --dir", dir)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".log"))
	}
	return names, nil
}

func copyLog(ctx context.Context, out io.Writer, file io.Reader, follow bool) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := io.Copy(out, file); err != nil {
			return fmt.Errorf("printing the log: %w", err)
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
