// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// server is a process that serves HTTP at a fixed address.
type server struct {
	address string
	process *childprocess.Process
}

// grace is how long a server may take to exit. Alertmanager needs the time to write its silences.
const grace = 5 * time.Second

func (s *server) url() string { return "http://" + s.address }

// run starts a server program unless it is running, and waits until it is ready.
func (m *Monitoring) run(ctx context.Context, s *server, name string, args ...string) error {
	process, err := childprocess.Start(childprocess.Command{
		Path: filepath.Join(m.options.BinDir, name),
		Args: append(args,
			"--config.file="+m.path(name, "config.yaml"),
			"--web.listen-address="+s.address,
			"--web.external-url="+s.url(),
		),
		Log:    m.path("logs", name+".log"),
		OnExit: m.options.OnExit,
	})
	if err != nil {
		return err
	}
	s.process = process
	if err := controlplane.Await(ctx, process, &http.Transport{}, s.url()+"/-/ready"); err != nil {
		return fmt.Errorf("waiting for %s: %w", name, err)
	}
	return nil
}
