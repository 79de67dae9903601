// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"net"
	"net/netip"
	"strconv"
)

// The service network of the n-th control plane on a machine is 127.(64+n).0.0/16. A process that
// listens on the cluster IP of a Service acts as the Service does on a cluster with a network.
const (
	firstNetwork = 64
	lastNetwork  = 254
	// claimPort marks a network as in use: the process that uses the network listens on this port at
	// its last address. It is below the ports of FreePort.
	claimPort = 19999
)

// undialable is the service network on machines whose only loopback address is 127.0.0.1, such as
// macOS. No process can listen on its cluster IPs.
var undialable = netip.MustParsePrefix("10.0.0.0/24")

// claimServiceNetwork returns a service network that no other control plane on the machine uses
// until the listener is closed. The listener is nil if it is impossible to listen on the network.
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

// ServiceNetwork returns the network of the Services' cluster IPs. It is part of the loopback
// network unless the machine's only loopback address is 127.0.0.1. A process serves a Service by
// listening on its cluster IP; ports below 1024 require root.
func (c *ControlPlane) ServiceNetwork() netip.Prefix { return c.serviceNetwork }
