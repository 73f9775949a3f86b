{{/* The labels of every object: dict "root" $ "component" NAME (empty where it belongs to none) */}}
{{- define "beckon.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: beckon
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* The labels by which a component's pods are found: its name */}}
{{- define "beckon.selector" -}}
app.kubernetes.io/name: beckon
app.kubernetes.io/component: {{ . }}
{{- end }}

{{/* Name, namespace and labels of an object of a component: dict "root" $ "component" NAME */}}
{{- define "beckon.metadata" -}}
name: beckon-{{ .component }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "beckon.labels" . | nindent 2 }}
{{- end }}

{{/* The same of an object that is in no namespace. */}}
{{- define "beckon.clusterMetadata" -}}
name: beckon-{{ .component }}
labels:
  {{- include "beckon.labels" . | nindent 2 }}
{{- end }}

{{/* Name and labels of a component's admission policy: dict "root" $ "component" NAME "name" NAME */}}
{{- define "beckon.policyMetadata" -}}
name: {{ .name }}
labels:
  {{- include "beckon.labels" . | nindent 2 }}
{{- end }}
