// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime exceeds the lifetime of any dev cluster.
const tokenLifetime = 24 * time.Hour

func (c *ControlPlane) configFor(client pair) *rest.Config {
	return &rest.Config{
		Host: "https://" + address(c.apiPort),
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: c.authority.caFile, CertFile: client.certFile, KeyFile: client.keyFile,
		},
		QPS: -1,
	}
}

// ServiceAccountConfig returns a client configuration with exactly the permissions of an existing
// ServiceAccount. Its token is valid for a day.
func (c *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLifetime.Seconds())),
	}}
	answer, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.RESTConfig())
	config.BearerToken = answer.Status.Token
	return config, nil
}

// ServiceAccountKubeconfig writes a kubeconfig with the configuration of ServiceAccountConfig.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, path, namespace, name string) error {
	config, err := c.ServiceAccountConfig(ctx, namespace, name)
	if err != nil {
		return err
	}
	return WriteKubeconfig(path, config)
}

// WriteKubeconfig writes a client configuration as a kubeconfig that only the current user can
// read.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "devcluster"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthority:     config.CAFile,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificate:     config.CertFile,
		ClientKey:             config.KeyFile,
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
	}
	return nil
}

// LoadKubeconfig reads a client configuration from a kubeconfig.
func LoadKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	return config, nil
}
