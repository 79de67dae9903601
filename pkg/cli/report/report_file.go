// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// WritePage writes a page to a file and prints what the page is about and what it lacks. The file - is
// standard output.
func WritePage(p *session.Session, file string, page []byte, overwrite bool, about string, lacks []string) error {
	if file == session.StdinPlaceholder {
		_, err := p.Streams.Out.Write(page)
		return err
	}
	if err := writeFile(file, page, overwrite); err != nil {
		return err
	}
	for _, missing := range lacks {
		if _, err := fmt.Fprintln(p.Streams.ErrOut, screen.Clean("The page lacks "+missing)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(p.Streams.Out, screen.Clean("Wrote "+file+": "+about+"."))
	return err
}

// CheckWritable returns an error if a file exists and must not be replaced. It runs before anything is read.
func CheckWritable(file string, overwrite bool) error {
	info, err := os.Stat(file)
	switch {
	case file == session.StdinPlaceholder || errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return session.UsageError("%s is a folder: name a file, for example %s", file, filepath.Join(file, "upgrade.html"))
	case !overwrite:
		return session.UsageError("%s exists: name another file, or replace it with --overwrite", file)
	}
	return nil
}

// writeFile writes a file. It replaces an existing file only if overwrite is set.
func writeFile(file string, content []byte, overwrite bool) error {
	mode := os.O_EXCL
	if overwrite {
		mode = os.O_TRUNC
	}
	out, err := os.OpenFile(filepath.Clean(file), os.O_WRONLY|os.O_CREATE|mode, 0o644) //nolint:gosec // A report is made to be passed on.
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return errors.Join(err, out.Close())
}
