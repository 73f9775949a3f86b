{{/* Fails where another release has the objects of the cluster, whose names are the same in every release.
     The cluster is known to `helm install` and `helm upgrade`; to `helm template` it is empty. */}}
{{- define "beckon.refuseSecondRelease" -}}
{{- $role := lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "beckon-operator" }}
{{- $owner := dig "metadata" "annotations" dict $role }}
{{- $name := get $owner "meta.helm.sh/release-name" }}
{{- $namespace := get $owner "meta.helm.sh/release-namespace" }}
{{- if and $name (or (ne $name .Release.Name) (ne $namespace .Release.Namespace)) }}
{{- fail (printf "this cluster has Beckon already, as the release %s in namespace %s, and one cluster has one: its roles, admission policies and webhook are the cluster's. Change that one with `helm upgrade %s … --namespace %s`, where `agent.namespaces` and `brokers` add namespaces, or remove it with `helm uninstall %s --namespace %s`" $name $namespace $name $namespace $name $namespace) }}
{{- end }}
{{- end }}
