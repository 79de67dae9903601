// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are below the ephemeral range (32768 and up on Linux). An outgoing connection from that
// range could occupy the port of the API server while it is down, and a client that dials a closed
// port in that range may even connect to itself.
const (
	firstPort = 20000
	lastPort  = 29999
)

// allocatedPorts are the ports returned by FreePort. They may not be in use yet.
var allocatedPorts sync.Map

// FreePort returns a free loopback port outside the ephemeral range. It never returns the same port
// twice.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // ports need not be secret
		listener, err := net.Listen("tcp", address(port))   //nolint:noctx // it returns at once
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			continue
		}
		if _, twice := allocatedPorts.LoadOrStore(port, true); twice {
			continue
		}
		return port, nil
	}
	return 0, errors.New("finding a free port: 100 ports between 20000 and 29999 are all taken")
}
