// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

const (
	// grace is the termination grace period of the Deployment. The cluster version operator needs a
	// second or two to release its Lease; otherwise, its successor has to wait until the Lease
	// expires.
	grace = 130 * time.Second
	// restartDelay is the delay before a restart after an unexpected exit, for example after the loss
	// of the Lease.
	restartDelay = 2 * time.Second
	// minUptime is how long a process must have run to be restarted.
	minUptime = 5 * time.Second
)

// process is the process of the container of the cluster version operator.
type process struct {
	root, log string
	onExit    func(error)

	mu        sync.Mutex
	container *corev1.Container // nil if none runs
	started   time.Time
	running   *childprocess.Process
	ended     bool // must not be started again
}

// runs reports whether the process runs this container.
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
	running, err := childprocess.Start(childprocess.Command{
		Path: "/" + program, Args: p.container.Args, Env: []string{}, Root: p.root, Log: p.log, OnExit: p.exited,
	})
	if err != nil {
		return err
	}
	p.running, p.started = running, time.Now()
	return nil
}

// exited is called when the process ends unexpectedly.
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

// stop terminates the process and waits for it to exit.
func (p *process) stop() error {
	p.mu.Lock()
	running := p.running
	p.container = nil
	p.mu.Unlock() // it may be killed concurrently
	return running.Stop(grace)
}

// end kills the process and prevents further starts.
func (p *process) end() error {
	p.mu.Lock()
	running := p.running
	p.ended = true
	p.mu.Unlock()
	return running.Kill()
}
