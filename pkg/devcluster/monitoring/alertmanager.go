// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"os"
)

// Alertmanager keeps alerts and silences but notifies no receiver.
const alertmanagerConfig = `
route: {receiver: none}
receivers: [{name: none}]
`

// StartAlertmanager starts Alertmanager with its previous address and silences and waits until it
// is ready. It does nothing if Alertmanager is running.
func (m *Monitoring) StartAlertmanager(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.alertmanager.process.Running() {
		return nil
	}
	if err := os.WriteFile(m.path("alertmanager", "config.yaml"), []byte(alertmanagerConfig), 0o600); err != nil {
		return fmt.Errorf("configuring Alertmanager: %w", err)
	}
	return m.run(ctx, &m.alertmanager, "alertmanager",
		"--storage.path="+m.path("alertmanager", "data"),
		"--cluster.listen-address=", // a single instance
	)
}

// StopAlertmanager stops Alertmanager: clients get "connection refused" until StartAlertmanager. It
// does nothing if Alertmanager is not running.
func (m *Monitoring) StopAlertmanager() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.alertmanager.process.Stop(grace)
}
