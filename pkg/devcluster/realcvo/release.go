// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Folders of a release image, and the annotations that decide which manifests the cluster version
// operator excludes.
const (
	operatorManifests = "manifests"
	releaseManifests  = "release-manifests"
	included          = "include.release.openshift.io/self-managed-high-availability"
	managed           = "openshift-config-managed" // read-only for users
)

// unpack writes the content of a release image to a folder below the root folder of the process.
func (o *Operator) unpack(release updategraph.Release, folder string) error {
	objects, err := o.manifests(release)
	if err != nil {
		return err
	}
	content := map[string]any{
		releaseManifests + "/image-references": map[string]any{
			"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": map[string]any{"name": release.Version},
		},
		releaseManifests + "/release-metadata": map[string]any{
			"kind": "cincinnati-metadata-v0", "version": release.Version, "metadata": map[string]any{
				updategraph.MetadataURL:      release.URL(),
				updategraph.MetadataChannels: strings.Join(release.Channels, ","),
			},
		},
	}
	for file, object := range objects {
		object.SetAnnotations(with(object.GetAnnotations(), included, "true"))
		content[file] = object
	}
	target := filepath.Join(o.options.Dir, folder)
	for file, what := range content {
		if err := write(filepath.Join(target, file), what); err != nil {
			return fmt.Errorf("unpacking release %s: %w", release.Version, err)
		}
	}
	return nil
}

// write writes JSON, which is valid YAML.
func write(file string, what any) error {
	text, err := yaml.Marshal(what)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o750)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func with(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

// manifests returns the objects of a release by file name. An update applies files in numerical
// order and finishes all files with one number before it starts the next.
func (o *Operator) manifests(release updategraph.Release) (map[string]client.Object, error) {
	const own = operatorManifests + "/0000_00_cluster-version-operator_"
	files := map[string]client.Object{
		own + "00_namespace.yaml":          namespace(Namespace),
		own + "00_namespace_managed.yaml":  namespace(managed),
		own + "01_priorityclass.yaml":      priorityClass(),
		own + "01_admin_gates.yaml":        configMap(managed, "admin-gates", nil), // they block minor updates
		own + "01_admin_acks.yaml":         configMap("openshift-config", "admin-acks", nil),
		own + "02_clusterrolebinding.yaml": ClusterRoleBinding(),
		own + "03_deployment.yaml":         o.deployment(release),
	}
	public, err := o.options.Key.Public()
	if err != nil {
		return nil, err
	}
	verification := configMap(managed, "release-verification", map[string]string{
		"verifier-public-key-devcluster": public, "store-local": o.options.Signatures,
	})
	verification.Annotations = map[string]string{"release.openshift.io/verification-config-map": ""}
	files[releaseManifests+"/0000_01_signatures_verification.yaml"] = verification
	for i, operator := range o.options.Operators {
		prefix := fmt.Sprintf("%s/0000_%d_%s_", releaseManifests, 10+i, operator.Name)
		images := releaseConfigMap(operator.Name)
		files[prefix+"00_namespace.yaml"] = namespace(images.Namespace)
		files[prefix+"01_images.yaml"] = configMap(images.Namespace, images.Name, map[string]string{cvo.ReleaseVersionKey: release.Version})
		files[prefix+"02_clusteroperator.yaml"] = clusterOperator(operator.Name, release)
	}
	return files, nil
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       data,
	}
}

// priorityClass returns the priority class of the pods that unpack releases.
func priorityClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "openshift-user-critical"},
		Value:      1000000000,
	}
}

// ClusterRoleBinding returns a binding that grants all permissions to the cluster version operator.
func ClusterRoleBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: program},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: ServiceAccount}},
	}
}

// clusterOperator returns the manifest of a ClusterOperator. An update considers it complete when
// it reports the version of the release.
func clusterOperator(name string, release updategraph.Release) *configv1.ClusterOperator {
	operator := &configv1.ClusterOperator{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	cvo.SetVersion(operator, release.Version)
	return operator
}

// deployment returns the Deployment of the cluster version operator. Applying the next release's
// Deployment replaces the running operator.
func (o *Operator) deployment(release updategraph.Release) *appsv1.Deployment {
	labels := map[string]string{"k8s-app": program}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: program},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:   []corev1.Container{o.container(release)},
					NodeSelector: map[string]string{masterRole: ""},
					Tolerations:  []corev1.Toleration{{Key: masterRole, Operator: corev1.TolerationOpExists}},
				},
			},
		},
	}
}

const masterRole = "node-role.kubernetes.io/master"

// container returns the container. Unlike the real one, it uses other addresses for the API server
// and Prometheus, and serves no metrics.
func (o *Operator) container(release updategraph.Release) corev1.Container {
	args := []string{
		"start",
		"--release-image=" + release.Image(),
		"--enable-auto-update=false",
		"--listen=",
		"--v=2",
		"--always-enable-capabilities=Ingress",
		"--kubeconfig=" + kubeconfigPath,
		"--node-name=master-0",
	}
	if o.options.Prometheus != "" {
		args = append(args, "--metrics-url="+o.options.Prometheus, "--use-dns-for-services", "--metrics-ca-bundle-file=", "--metrics-token-file=")
	}
	return corev1.Container{Name: program, Image: release.Image(), Args: args}
}
