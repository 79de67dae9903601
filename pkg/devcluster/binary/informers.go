// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/informer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// informers holds the running update informers by name.
type informers struct {
	mu      sync.Mutex
	running map[string]*informer.Server
}

// SetInformer changes the responses of an update informer and starts it if it is not running. The
// CustomResourceDefinitions of update status are applied before the first one starts.
func (w *World) SetInformer(ctx context.Context, i scenario.Informer) error {
	w.informers.mu.Lock()
	defer w.informers.mu.Unlock()
	server := w.informers.running[i.Name]
	switch {
	case i.Stop && server == nil:
		return nil
	case i.Stop:
		delete(w.informers.running, i.Name)
		return server.Stop()
	case server == nil:
		definitions := os.DirFS(filepath.Join(w.repository, "deploy", "update-status", "crds"))
		if err := w.Cluster.Apply(ctx, definitions); err != nil {
			return fmt.Errorf("applying the definitions of update status: %w", err)
		}
		var err error
		if server, err = informer.Start(ctx, w.objects, scenario.InformerNamespace, i.Name); err != nil {
			return err
		}
		if w.informers.running == nil {
			w.informers.running = map[string]*informer.Server{}
		}
		w.informers.running[i.Name] = server
	}
	server.Behave(i.Behavior)
	return nil
}

func (i *informers) stop() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var errs []error
	for _, server := range i.running {
		errs = append(errs, server.Stop())
	}
	i.running = nil
	return errors.Join(errs...)
}
