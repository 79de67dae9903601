// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"net/netip"
	"strconv"
)

// The service network of the n-th control plane of a machine is 127.(64+n).0.0/16: a process that listens on the
// cluster IP of a Service takes the place of the Service on a cluster with a network.
const (
	firstNetwork = 64
	lastNetwork  = 254
	// claimPort is listened on, at the last address of a network, by the process that uses the
	// network. It is below the ports of FreePort.
	claimPort = 19999
)

// undialable is the service network where the machine has no loopback address but 127.0.0.1, as on
// macOS. Services then have cluster IPs that no process can listen on.
var undialable = netip.MustParsePrefix("10.0.0.0/24")

// claimServiceNetwork returns a service network that no other control plane of the machine uses
// until the listener is closed, which is nil if the network cannot be listened on.
func claimServiceNetwork() (netip.Prefix, net.Listener) {
	for n := firstNetwork; n <= lastNetwork; n++ {
		last := netip.AddrFrom4([4]byte{127, byte(n), 255, 254})
		claim, err := net.Listen("tcp", net.JoinHostPort(last.String(), strconv.Itoa(claimPort))) //nolint:noctx // it returns at once
		if err == nil {
			return netip.PrefixFrom(last, 16).Masked(), claim
		}
	}
	return undialable, nil
}

// ServiceNetwork returns the network from which Services get their cluster IPs. It is within
// loopback, unless the machine has no loopback address but 127.0.0.1. A process that listens on the
// cluster IP of a Service serves it; ports below 1024 require root.
func (c *ControlPlane) ServiceNetwork() netip.Prefix { return c.serviceNetwork }
