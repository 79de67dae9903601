// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken from below the range that the kernel gives to outgoing connections (32768 and up on Linux). From
// within it, somebody's connection could take the API server's port while the API server is down: a client that keeps
// dialling a closed port of that range may even connect to itself.
const (
	firstPort = 20000
	lastPort  = 29999
)

// allocatedPorts are the ports that FreePort has returned: who has one may not listen on it yet.
var allocatedPorts sync.Map

// FreePort returns a loopback port that nobody listens on at this moment, and that outgoing connections do not take. It
// returns none twice.
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
