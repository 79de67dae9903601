// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Options are the flags of a binary.
type Options struct {
	Version         string // of the program; not a flag
	Kubeconfig      string
	Namespace       string
	WatchNamespaces []string
	ConfigFile      string
	// WithoutMaintenance disables everything that needs the scheduled maintenance kinds, so these need
	// not be installed.
	WithoutMaintenance bool

	MetricsBind    string
	MetricsSecure  bool
	MetricsCerts   string
	HealthBind     string
	LeaderElection LeaderElection
	LogLevel       string
	LogFormat      string
}

// AllNamespaces in --watch-namespaces stands for all namespaces of the cluster.
const AllNamespaces = "*"

// Bind adds the flags to a flag set.
func (o *Options) Bind(flags *pflag.FlagSet) {
	o.BindShared(flags)
	flags.StringSliceVar(&o.WatchNamespaces, "watch-namespaces", nil, "namespaces whose objects are reconciled, separated by commas; * means all namespaces, empty means the operator's namespace; in every other one bind the ClusterRole managed-upgrade-operator-watched-namespace to the operator")
	flags.BoolVar(&o.WithoutMaintenance, "without-scheduled-maintenance", false, "leave out the kinds of managedupgrade.appuio.io, which need not be installed then; see deploy/without-scheduled-maintenance")
	flags.StringVar(&o.ConfigFile, "config", "", "path to the configuration file; empty means the defaults")
}

// BindShared adds the flags common to all binaries to a flag set, without those for namespaces and
// the configuration file.
func (o *Options) BindShared(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "path to a kubeconfig; empty means the ServiceAccount of the pod, $KUBECONFIG, or ~/.kube/config")
	flags.StringVar(&o.Namespace, "operator-namespace", "managed-upgrade-operator", "namespace in which the operator runs and keeps its leases")
	flags.StringVar(&o.MetricsBind, "metrics-bind-address", ":8443", "address of the metrics server; 0 disables it")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "serve the metrics over HTTPS to clients that may get /metrics; without it they are served on loopback addresses only")
	flags.StringVar(&o.MetricsCerts, "metrics-cert-path", "", "directory with tls.crt and tls.key of the metrics server, which may be added and changed later; empty, and until then, means a self-signed certificate")
	flags.StringVar(&o.HealthBind, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 disables them")
	o.LeaderElection.bind(flags)
	flags.StringVar(&o.LogLevel, "log-level", "info", "log level: debug, info, or error")
	flags.StringVar(&o.LogFormat, "log-format", "json", "log format: json or console")
}

// Watched returns the namespaces whose objects are reconciled. It returns nil for all namespaces.
func (o *Options) Watched() []string {
	switch {
	case slices.Contains(o.WatchNamespaces, AllNamespaces):
		return nil
	case len(o.WatchNamespaces) == 0:
		return []string{o.Namespace}
	}
	return o.WatchNamespaces
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate returns all errors in the flags.
func (o *Options) Validate() error {
	const namespace = "is not the name of a namespace: up to 63 lower case letters, digits, and hyphens"
	var errs []error
	if !namespaceName.MatchString(o.Namespace) {
		errs = append(errs, fmt.Errorf("--operator-namespace: %q %s", o.Namespace, namespace))
	}
	for _, name := range o.WatchNamespaces {
		if name != AllNamespaces && !namespaceName.MatchString(name) {
			errs = append(errs, fmt.Errorf("--watch-namespaces: %q %s, or * for all", name, namespace))
		}
	}
	if len(o.WatchNamespaces) > 1 && slices.Contains(o.WatchNamespaces, AllNamespaces) {
		errs = append(errs, errors.New("--watch-namespaces: * stands alone, since it means all namespaces"))
	}
	if err := validateBindAddress(o.MetricsBind); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-bind-address: %w", err))
	} else if !o.MetricsSecure && o.MetricsBind != "0" && !isLoopback(o.MetricsBind) {
		errs = append(errs, fmt.Errorf("--metrics-bind-address: %s is not a loopback address, and with --metrics-secure=false it must be one, for example 127.0.0.1:8080", o.MetricsBind))
	}
	if err := validateCertDir(o.MetricsCerts); err != nil {
		errs = append(errs, fmt.Errorf("--metrics-cert-path: %w", err))
	}
	if err := validateBindAddress(o.HealthBind); err != nil {
		errs = append(errs, fmt.Errorf("--health-probe-bind-address: %w", err))
	}
	if err := o.LeaderElection.validate(); err != nil {
		errs = append(errs, err)
	}
	if o.LogLevel != "debug" && o.LogLevel != "info" && o.LogLevel != "error" {
		errs = append(errs, fmt.Errorf("--log-level: is %q, must be debug, info, or error", o.LogLevel))
	}
	if o.LogFormat != "json" && o.LogFormat != "console" {
		errs = append(errs, fmt.Errorf("--log-format: is %q, must be json or console", o.LogFormat))
	}
	return errors.Join(errs...)
}

// maxConfigBytes is the maximum size of the configuration file. It equals the limit of a ConfigMap.
const maxConfigBytes = 1 << 20

// ReadConfig parses the configuration file. Without --config, or while the folder of the file is
// empty, it returns the defaults, because the ConfigMap is optional.
func ReadConfig[C any](o *Options, defaults C, parse func([]byte) (C, error)) (C, error) {
	var none C
	if o.ConfigFile == "" {
		return defaults, nil
	}
	info, err := os.Stat(o.ConfigFile)
	switch {
	case errors.Is(err, fs.ErrNotExist) && isEmptyFolder(filepath.Dir(o.ConfigFile)):
		return defaults, nil
	case err != nil:
		return none, fmt.Errorf("--config: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxConfigBytes:
		return none, fmt.Errorf("--config %s: must be a regular file of at most %d bytes", o.ConfigFile, maxConfigBytes)
	}
	data, err := os.ReadFile(o.ConfigFile)
	if err != nil {
		return none, fmt.Errorf("--config: %w", err)
	}
	cfg, err := parse(data)
	if err != nil {
		return none, fmt.Errorf("--config %s: %w", o.ConfigFile, err)
	}
	return cfg, nil
}

// isEmptyFolder reports whether a path is a folder without files. It ignores the hidden entries
// that a kubelet uses to update the files of a ConfigMap.
func isEmptyFolder(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") })
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
		return fmt.Errorf("%q is not an address such as :8443 or 127.0.0.1:8443, nor 0 for none: %w", bind, err)
	}
	return nil
}

func isLoopback(bind string) bool {
	host, _, err := net.SplitHostPort(bind)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
