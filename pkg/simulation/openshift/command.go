// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Command runs an oc command that changes a Deployment or a machine config pool. args are the
// arguments after "oc": "scale KIND/NAME --replicas=N" or "patch KIND NAME --type=merge -p PATCH".
func (c *Cluster) Command(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("oc", pflag.ContinueOnError)
	namespace := flags.StringP("namespace", "n", "", "")
	replicas := flags.Int32("replicas", -1, "")
	patchType := flags.String("type", "strategic", "")
	patch := flags.StringP("patch", "p", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var kind, name string
	switch rest := flags.Args(); {
	case len(rest) == 2 && rest[0] == "scale" && *replicas >= 0:
		kind, name, _ = strings.Cut(rest[1], "/")
		*patch = fmt.Sprintf(`{"spec":{"replicas":%d}}`, *replicas)
	case len(rest) == 3 && rest[0] == "patch" && *patchType == "merge":
		kind, name = rest[1], rest[2]
	default:
		return fmt.Errorf("%q is neither oc scale nor oc patch --type=merge", args)
	}
	meta := metav1.ObjectMeta{Namespace: *namespace, Name: name}
	objects := map[string]client.Object{
		"deployment": &appsv1.Deployment{ObjectMeta: meta}, "machineconfigpool": &mcfgv1.MachineConfigPool{ObjectMeta: meta},
	}
	object, known := objects[kind]
	if !known {
		return fmt.Errorf("%q: no objects of kind %q can be changed here", args, kind)
	}
	return c.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(*patch)))
}
