// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// conformanceOptions holds the flags of the command conformance.
type conformanceOptions struct {
	*session.Session
	session.NoArguments

	url, ca, serverName, tokenFile, release, format string
	maxWait                                         time.Duration
}

// maxFileBytes limits the size of files given in flags.
const maxFileBytes = 64 << 10

// NewConformanceCommand returns the command that checks an update informer from the outside. It does not need
// a cluster.
func NewConformanceCommand(p *session.Session) *cobra.Command {
	o := &conformanceOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "conformance --url URL",
		Short: "Check whether an update informer conforms to the protocol",
		Long: "Check whether an update informer conforms to the protocol of the Update Status Controller, and report what to change.\n\n" +
			"The command does not need a cluster. The exit code is 1 if the controller would reject an answer.",
		Example: "  oc -n my-informer port-forward service/update-informer 8443:443\n" +
			"  oc update conformance --url https://localhost:8443 --ca ca.crt --server-name update-informer.my-informer.svc",
		Args: manager.NoArgs,
		RunE: session.RunE(o),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.url, "url", "", "address of the informer, for example https://localhost:8443")
	flags.StringVar(&o.ca, "ca", "", "file with the PEM-encoded CA certificates that verify the informer's certificate (default: the system's CA certificates)")
	flags.StringVar(&o.serverName, "server-name", "", "server name in the informer's certificate (default: the host of --url)")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with a token for the informer; if not set, authentication is not checked")
	flags.StringVar(&o.release, "release", "", "target release to use in requests")
	flags.DurationVar(&o.maxWait, "max-wait", 0, "how long the informer may answer Wait (default: 2m for the status, 10m for a plan)")
	flags.StringVarP(&o.format, "output", "o", "", "print the findings as json")
	return cmd
}

// Validate checks the flags.
func (o *conformanceOptions) Validate() error {
	switch {
	case o.url == "":
		return session.UsageError("--url: is required, for example https://localhost:8443")
	case !slices.Contains([]string{"", "json"}, o.format):
		return session.UsageError("--output: is %q, must be json", o.format)
	}
	return nil
}

func (o *conformanceOptions) target() (conformance.Target, error) {
	target := conformance.Target{URL: o.url, ServerName: o.serverName, Release: o.release, MaxWait: o.maxWait}
	if o.ca != "" {
		ca, err := readBounded(o.ca)
		if err != nil {
			return target, fmt.Errorf("--ca: %w", err)
		}
		target.CA = ca
	}
	if o.tokenFile != "" {
		token, err := readBounded(o.tokenFile)
		if err != nil {
			return target, fmt.Errorf("--token-file: %w", err)
		}
		target.Token = strings.TrimSpace(string(token))
	}
	return target, nil
}

// readBounded reads a regular file of limited size.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%s must be a file of at most %d KiB", path, maxFileBytes>>10)
	}
	return fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
}

// Run checks the informer.
func (o *conformanceOptions) Run(ctx context.Context) error {
	target, err := o.target()
	if err != nil {
		return err
	}
	target.Clock = o.Clock
	findings, err := conformance.Run(ctx, target)
	if err != nil {
		return err
	}
	if o.format == "json" {
		encoder := json.NewEncoder(o.Streams.Out)
		encoder.SetIndent("", "    ")
		if err := encoder.Encode(append([]conformance.Finding{}, findings...)); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(o.Streams.Out, o.findings(findings)); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f conformance.Finding) bool { return f.Level == conformance.Error }) {
		return session.ExitWith(session.ExitFailed)
	}
	return nil
}

// findings formats the findings.
func (o *conformanceOptions) findings(findings []conformance.Finding) string {
	l := screen.Layout{Width: o.Terminal.Columns()}
	for _, f := range findings {
		l.Text(string(f.Level), screen.Clean(f.Check+": "+f.Request+": "+f.Problem+"."))
		l.Text("", screen.Clean(f.Change+"."))
	}
	if len(findings) == 0 {
		l.Hang("", "The informer follows the protocol.")
	}
	return l.String()
}
