// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hack tests the scripts in this folder with stubs of their tools.
package hack

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// client is a stub of kubectl. Each file in the folder STATE is the response to a request. The file
// fails contains the beginning of a request that fails the first time.
const client = `#!/usr/bin/env bash
set -euo pipefail
cd "$STATE"
echo "$*" >>requests
if [[ -e fails && "$*" == "$(cat fails)"* ]]; then
  rm fails
  echo "the server is currently unable to handle the request" >&2
  exit 1
fi
case "$*" in
kustomize*) cat manifests ;;
"get customresourcedefinition"*) echo "$3" ;;
"get upgradeconfigs"*) cat upgrades ;;
"get clusterupgraderuns"*) ;;
"get jobs.batch"*) cat jobs ;;
"get deployments --all-namespaces"*) cat available ;;
"get deployments --namespace"*) cat others ;;
"get deployment "*) echo "app.kubernetes.io/name=$3," ;;
"delete deployment"*) [[ ! -e pod-on-dead-node ]] ;;
"delete pods --namespace=home --selector=app.kubernetes.io/name=operator --force --grace-period=0"*) rm pod-on-dead-node ;;
"patch upgradeconfigs"*) : >upgrades ;;
"patch jobs.batch"*) : >jobs ;;
"delete --ignore-not-found -f -") cat >deleted ;;
esac
`

// pause is a stub of sleep, during which the operator undoes the upgrades.
const pause = `#!/usr/bin/env bash
cd "$STATE"
: >upgrades
: >jobs
`

const (
	operatorManifests = `apiVersion: v1
kind: Namespace
metadata:
  name: home
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: upgradeconfigs.upgrade.managed.openshift.io
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: upgradejobs.managedupgrade.appuio.io
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: operator
  namespace: home
`
	hubManifests = `apiVersion: v1
kind: Namespace
metadata:
  name: home
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterupgraderuns.upgrade.managed.openshift.io
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hub
  namespace: home
`
	upgrade = "home cluster upgrade.managed.openshift.io/upgrade\n"
	hookJob = "home hook managedupgrade.appuio.io/hook-result\n"
)

func TestUndeploy(t *testing.T) {
	t.Parallel()
	type state map[string]string
	for name, tc := range map[string]struct {
		state     state
		wantError bool
		// want and reject are parts of the requests, the output, and the deletions.
		want, reject []string
	}{
		"operator undoes the upgrade": {
			state:  state{"available": "operator"},
			want:   []string{"delete deployment operator", "kind: Namespace", "kind: Deployment"},
			reject: []string{"patch "},
		},
		"operator is not available": {
			want: []string{"patch upgradeconfigs.upgrade.managed.openshift.io cluster", "patch jobs.batch hook", "kind: Namespace"},
		},
		"list fails once while the operator undoes the upgrade": {
			state:  state{"available": "operator", "jobs": "", "fails": "get upgradeconfigs"},
			want:   []string{"the API server does not list them", "delete deployment operator", "kind: Namespace"},
			reject: []string{"patch "},
		},
		"list fails without an operator": {
			state:     state{"fails": "get upgradeconfigs"},
			wantError: true,
			reject:    []string{"delete deployment", "patch ", "delete --ignore-not-found"},
		},
		"list of CRDs fails": {
			state:     state{"available": "operator", "fails": "get customresourcedefinition"},
			wantError: true,
			reject:    []string{"delete deployment", "patch ", "delete --ignore-not-found"},
		},
		"patch fails": {
			state:     state{"fails": "patch upgradeconfigs"},
			wantError: true,
			want:      []string{"upgradeconfigs.upgrade.managed.openshift.io cluster keeps its finalizers"},
			reject:    []string{"delete --ignore-not-found"},
		},
		"pod on a node that is down": {
			state: state{"pod-on-dead-node": ""},
			want:  []string{"deleting the pods of deployment operator by force", "patch upgradeconfigs", "kind: Namespace"},
		},
		"no pod is deleted by force": {
			want: []string{"kind: Namespace"}, reject: []string{"--force"},
		},
		"another program in the namespace": {
			state:  state{"others": "deployment.apps/hub\ndeployment.apps/update-status-controller\n"},
			want:   []string{"namespace home stays, because it has deployment.apps/hub,deployment.apps/update-status-controller", "kind: Deployment"},
			reject: []string{"kind: Namespace"},
		},
		"hub beside an operator that upgrades": {
			state:  state{"manifests": hubManifests, "available": "operator", "others": "deployment.apps/operator\n"},
			want:   []string{"delete deployment hub", "kind: Deployment"},
			reject: []string{"kind: Namespace", "patch ", "jobs.batch", "delete deployment operator"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := undeploy(t, tc.state)
			if (err != nil) != tc.wantError {
				t.Errorf("error: %v, want one: %t", err, tc.wantError)
			}
			for _, want := range tc.want {
				if !strings.Contains(all, want) {
					t.Errorf("missing: %s", want)
				}
			}
			for _, reject := range tc.reject {
				if strings.Contains(all, reject) {
					t.Errorf("surplus: %s", reject)
				}
			}
			if t.Failed() {
				t.Log(all)
			}
		})
	}
}

// undeploy runs the script and returns its output, requests, and deletions.
func undeploy(t *testing.T, changed map[string]string) (string, error) {
	t.Helper()
	folder, programs := t.TempDir(), t.TempDir()
	for name, content := range map[string]string{"kubectl": client, "sleep": pause} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{
		"manifests": operatorManifests, "upgrades": upgrade, "jobs": hookJob, "available": "", "others": "",
	}
	maps.Copy(files, changed)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "./undeploy.sh", "folder")
	cmd.Env = slices.Concat(os.Environ(), []string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "KUBECTL=kubectl", "STATE=" + folder, "TIMEOUT=60s",
	})
	printed, err := cmd.CombinedOutput()
	all := printed
	for _, name := range []string{"requests", "deleted"} {
		content, readErr := os.ReadFile(filepath.Join(folder, name))
		if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
			t.Fatal(readErr)
		}
		all = append(all, content...)
	}
	return string(all), err
}
