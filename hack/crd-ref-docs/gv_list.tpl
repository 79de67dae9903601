{{- define "gvList" -}}
{{- $groupVersions := . -}}

# API Reference

## Packages
{{- range $groupVersions }}
- {{ markdownRenderGVLink . }}
{{- end }}
{{- if not (has (index $groupVersions 0).Group (list "config.openshift.io" "cluster.open-cluster-management.io")) }}
- [history](#history)
{{- end }}

## Permission to create objects
{{ if eq (index $groupVersions 0).Group "managedupgrade.appuio.io" }}
The right to create an UpgradeConfig or an UpgradeJob in a namespace that the operator watches allows a
user to upgrade the cluster, which cannot be undone, and the right to create a ClusterVersion there to
choose its update channel and its update service. The roles `edit` and `admin` include these rights:
have the operator [watch](../namespaces.md) only namespaces whose editors may upgrade the cluster. By
default it watches its own.

The right to create an UpgradeJobHook allows a user to run code, with a ServiceAccount of the namespace.
No role for users includes it: grant it only to administrators of the cluster.
{{ else if eq (index $groupVersions 0).Group "config.openshift.io" }}
The right to create an UpdateInformer allows a user to add insights that all users of the cluster read,
and to have the Update Status Controller connect to a Service. The right to change an UpdatePlan allows
a user to request analyses, and to accept the risks of an update unless the admission policy of update
status limits that to users with the verb accept. The status of each kind, but for the condition Online
of an informer, belongs to the Update Status Controller.
{{ else if eq (index $groupVersions 0).Group "cluster.open-cluster-management.io" }}
The right to create a ManagedClustersUpgrade in a namespace of the hub allows a user to upgrade each
managed cluster of the cluster sets that are bound to the namespace, which cannot be undone, and to
approve upgrades of operators there. Actions, which run anything on these clusters, also need the right
to create manifestworkreplicasets in the namespace, and a Placement of another namespace the right to
create managedclustersupgrades there: admission policies of the hub check both.
{{ else if contains "hub of a fleet" (index $groupVersions 0).Doc }}
The hub creates ClusterUpgradeRuns, in the namespaces of managed clusters. Users need no right but to
read them: a run that a user creates or changes can upgrade the cluster.
{{ else }}
The right to create an UpgradeConfig in a namespace that the operator watches allows a user to upgrade
the cluster, which cannot be undone, to have pods deleted in spite of their PodDisruptionBudgets, to
add nodes for the duration of an upgrade, and to silence alerts of the platform. The roles `edit` and
`admin` include it: have the operator [watch](../namespaces.md) only namespaces whose editors may
upgrade the cluster. By default it watches its own; the API server warns users who create an
UpgradeConfig in another namespace, where it has no effect.
{{ end }}
{{ range $groupVersions }}
{{ template "gvDetails" . }}
{{ end }}
{{ if not (has (index $groupVersions 0).Group (list "config.openshift.io" "cluster.open-cluster-management.io")) }}
## history

The types of the records of upgrades. All API groups share them.

{{ $seen := dict -}}
{{ range $groupVersions -}}
{{ range .SortedTypes -}}
{{ range .Members -}}
{{ template "history" (dict "type" .Type "seen" $seen) }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- end -}}

{{- /* history renders a type of package history, and those that it refers to, unless they were rendered. */ -}}
{{- define "history" -}}
{{- $type := .type -}}
{{- $seen := .seen -}}
{{- if $type -}}
{{- if $type.UnderlyingType -}}
{{ template "history" (dict "type" $type.UnderlyingType "seen" $seen) }}
{{- end -}}
{{- if and (hasSuffix "/api/history" $type.Package) $type.Name (not (hasKey $seen $type.Name)) (or $type.Members $type.EnumValues $type.IsAlias) -}}
{{- $_ := set $seen $type.Name true -}}
{{ template "type" $type }}
{{ range $type.Members -}}
{{ template "history" (dict "type" .Type "seen" $seen) }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
