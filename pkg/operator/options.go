// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// Options are the flags of the operator.
type Options struct {
	// Version is that of the binary. It is no flag.
	Version       string
	Kubeconfig    string
	Namespace     string
	ConfigFile    string
	MetricsBind   string
	MetricsSecure bool
	MetricsCerts  string
	HealthBind    string
	LeaderElect   bool
	LogLevel      string
	LogFormat     string
}

// Bind adds the flags to a set of flags.
func (o *Options) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "file with the access to the cluster; empty: that of the pod, or else $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&o.Namespace, "operator-namespace", "managed-upgrade-operator", "namespace of the operator, where its leases are")
	flags.StringVar(&o.ConfigFile, "config", "", "file with the configuration of the operator; empty: the defaults")
	flags.StringVar(&o.MetricsBind, "metrics-bind-address", ":8443", "address of the metrics; 0: none")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve the metrics over HTTPS, to those who may get /metrics; without it they are served on loopback addresses only")
	flags.StringVar(&o.MetricsCerts, "metrics-cert-path", "", "folder with tls.crt and tls.key for the metrics, which may come and change later; empty, and until then: a self-signed certificate")
	flags.StringVar(&o.HealthBind, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0: none")
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "let one of several replicas work at a time")
	flags.StringVar(&o.LogLevel, "log-level", "info", "what is logged: debug, info or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "how it is logged: json or console")
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate says what is wrong with the flags, all of it.
func (o *Options) Validate() error {
	var errs []error
	if !namespaceName.MatchString(o.Namespace) {
		errs = append(errs, fmt.Errorf("--operator-namespace: %q is not the name of a namespace, which is of up to 63 lower case letters, digits and hyphens", o.Namespace))
	}
	if err := validateBindAddress(o.MetricsBind); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-bind-address: %w", err))
	} else if !o.MetricsSecure && o.MetricsBind != "0" && !isLoopback(o.MetricsBind) {
		errs = append(errs, fmt.Errorf("--metrics-bind-address: %s is not a loopback address, and with --metrics-secure=false it must be one, such as 127.0.0.1:8080", o.MetricsBind))
	}
	if err := validateCertDir(o.MetricsCerts); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-cert-path: %w", err))
	}
	if err := validateBindAddress(o.HealthBind); err != nil {
		errs = append(errs, fmt.Errorf("--health-probe-bind-address: %w", err))
	}
	if o.LogLevel != "debug" && o.LogLevel != "info" && o.LogLevel != "error" {
		errs = append(errs, fmt.Errorf("--log-level: is %q, must be debug, info or error", o.LogLevel))
	}
	if o.LogFormat != "json" && o.LogFormat != "console" {
		errs = append(errs, fmt.Errorf("--log-format: is %q, must be json or console", o.LogFormat))
	}
	return errors.Join(errs...)
}

// maxConfig is how long the configuration may be, in bytes: as long as a ConfigMap.
const maxConfig = 1 << 20

// config reads the configuration.
func (o *Options) config() (config.Config, error) {
	if o.ConfigFile == "" {
		return config.Default(), nil
	}
	info, err := os.Stat(o.ConfigFile)
	switch {
	case err != nil:
		return config.Config{}, fmt.Errorf("--config: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxConfig:
		return config.Config{}, fmt.Errorf("--config %s: must be a file of at most %d bytes", o.ConfigFile, maxConfig)
	}
	data, err := os.ReadFile(o.ConfigFile)
	if err != nil {
		return config.Config{}, fmt.Errorf("--config: %w", err)
	}
	cfg, err := config.Parse(data)
	if err != nil {
		return config.Config{}, fmt.Errorf("--config %s: %w", o.ConfigFile, err)
	}
	return cfg, nil
}

func validateBindAddress(bind string) error {
	if bind == "0" {
		return nil
	}
	host, port, err := net.SplitHostPort(bind)
	if err == nil && host != "" && host != "localhost" && net.ParseIP(host) == nil {
		err = fmt.Errorf("%q is not an IP address", host)
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address such as :8443, 127.0.0.1:8443 or 0 for none: %w", bind, err)
	}
	return nil
}

func isLoopback(bind string) bool {
	host, _, err := net.SplitHostPort(bind)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
