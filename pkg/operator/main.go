// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Main is Run with the access to the cluster and the log that the options name.
func Main(ctx context.Context, o Options, clk clock.WithTicker, upgraders Upgraders) error {
	if err := o.Validate(); err != nil {
		return err
	}
	restConfig, err := o.restConfig()
	if err != nil {
		return err
	}
	log := o.logger()
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return Run(ctx, o, restConfig, log, clk, upgraders)
}

// restConfig is the access to the API server: that of the pod, or of a kubeconfig.
func (o *Options) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	restConfig, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && o.Kubeconfig != "":
		return nil, fmt.Errorf("--kubeconfig %q: there is no access to a cluster in this file", o.Kubeconfig)
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("--kubeconfig: there is no access to a cluster; name a file with it, outside of a pod and without $KUBECONFIG and ~/.kube/config")
	case err != nil:
		if explained := explainKubeconfigError(o.Kubeconfig); o.Kubeconfig != "" && explained != nil {
			err = explained
		}
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.Kubeconfig, err)
	}
	restConfig.UserAgent = "managed-upgrade-operator"
	restConfig.QPS = -1 // it is the API server that throttles; client-go's default of 5 a second would keep the record behind
	return restConfig, nil
}

// explainKubeconfigError says in words what is wrong with a file that is not a kubeconfig at
// all: what client-go says of it is about types of its own.
func explainKubeconfigError(file string) error {
	_, err := clientcmd.LoadFromFile(file)
	var pathErr *fs.PathError
	if err == nil || errors.As(err, &pathErr) {
		return err
	}
	return errors.New("must be a kubeconfig, with apiVersion: v1, kind: Config, and the clusters, users and contexts")
}

func (o *Options) logger() logr.Logger {
	level := zapcore.InfoLevel
	switch o.LogLevel {
	case "debug":
		level = zapcore.DebugLevel
	case "error":
		level = zapcore.ErrorLevel
	}
	format := zap.JSONEncoder
	if o.LogFormat == "console" {
		format = zap.ConsoleEncoder
	}
	timeEncoder := func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder }
	// An error's text says where it comes from; a stack trace is for what should never happen.
	return zap.New(zap.Level(level), format(timeEncoder), zap.StacktraceLevel(zapcore.DPanicLevel))
}
