// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Ports are below the ephemeral range (32768 and up on Linux). An outgoing connection from that
// range could occupy the port of the API server while it is down, and a client that dials a closed
// port in that range may even connect to itself.
const (
	firstPort = 20000
	lastPort  = 29999
	blockSize = 100
)

// ports are what is left of the last block of ports that this process has locked. A port may be used long
// after it was returned, so another process must not find it free. The locks end with the process.
var ports struct {
	mu    sync.Mutex
	left  []int
	locks []*os.File
}

// FreePort returns a free loopback port outside the ephemeral range. It never returns the same port
// twice, in no process of this user.
func FreePort() (int, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for {
		if len(ports.left) == 0 {
			if err := lockBlock(); err != nil {
				return 0, fmt.Errorf("finding a free port: %w", err)
			}
		}
		port := ports.left[0]
		ports.left = ports.left[1:]
		if isFree(port) {
			return port, nil
		}
	}
}

// isFree reports whether no process listens on a port. It does not listen on the port itself: a child that is forked
// meanwhile has a copy of the socket until it executes its program, and the caller could not listen on the port.
func isFree(port int) bool {
	conn, err := net.DialTimeout("tcp", address(port), time.Second) //nolint:noctx // loopback answers at once
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// lockBlock locks a block of ports that no other process has.
func lockBlock() error {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("devcluster-ports-%d", os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	blocks := (lastPort - firstPort + 1) / blockSize
	for _, block := range rand.Perm(blocks) {
		first := firstPort + block*blockSize
		file, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(first)), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the folder is ours
		if err != nil {
			return err
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
			_ = file.Close()
			continue
		}
		ports.locks = append(ports.locks, file)
		for port := range blockSize {
			ports.left = append(ports.left, first+port)
		}
		return nil
	}
	return errors.New("all ports between 20000 and 29999 are reserved by processes that run")
}
