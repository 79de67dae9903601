// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

const (
	// grace is what its Deployment gives the cluster version operator. It needs a second or two to put its Lease down, for
	// the end of which the next one would wait otherwise.
	grace = 130 * time.Second
	// restartDelay is how long it stays down when it ended by itself, as it does when it loses its Lease.
	restartDelay = 2 * time.Second
	// minUptime is how long it runs at least if it is worth another try.
	minUptime = 5 * time.Second
)

// process is what a kubelet makes of the container of the cluster version operator.
type process struct {
	root, log string
	onExit    func(error)

	mu        sync.Mutex
	container *corev1.Container // nil while nothing is to run
	started   time.Time
	running   *controlplane.Process
	ended     bool // for good
}

// runs says whether that is what is to run.
func (p *process) runs(container corev1.Container) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.container != nil && p.container.Image == container.Image && slices.Equal(p.container.Args, container.Args)
}

// run starts the process.
func (p *process) run(container corev1.Container) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.container = &container
	return p.start()
}

func (p *process) start() error {
	if p.ended || p.container == nil || p.running.Running() {
		return nil
	}
	running, err := controlplane.StartProcess(controlplane.Command{
		Path: "/" + program, Args: p.container.Args, Env: []string{}, Root: p.root, Log: p.log, OnExit: p.exited,
	})
	if err != nil {
		return err
	}
	p.running, p.started = running, time.Now()
	return nil
}

// exited is called when the process has ended by itself.
func (p *process) exited(err error) {
	p.mu.Lock()
	crashed := time.Since(p.started) < minUptime
	p.mu.Unlock()
	if crashed && p.onExit != nil {
		p.onExit(err)
		return
	}
	time.AfterFunc(restartDelay, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := p.start(); err != nil && p.onExit != nil {
			p.onExit(err)
		}
	})
}

// stop asks the process to end, and waits until it has.
func (p *process) stop() error {
	p.mu.Lock()
	running := p.running
	p.container = nil
	p.mu.Unlock() // so that it can be killed meanwhile
	return running.Stop(grace)
}

// end kills the process; none is started any more.
func (p *process) end() error {
	p.mu.Lock()
	running := p.running
	p.ended = true
	p.mu.Unlock()
	return running.Kill()
}
