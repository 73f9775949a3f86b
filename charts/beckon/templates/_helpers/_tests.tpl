{{/* What belongs to `helm test`; made for it, and gone when it has passed:
     dict "root" $ "name" NAME "weight" ORDER "namespace" (that of the release without one) */}}
{{- define "beckon.testMetadata" -}}
name: {{ .name }}
namespace: {{ .namespace | default .root.Release.Namespace }}
annotations:
  helm.sh/hook: test
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* Not `beckon`: the NetworkPolicies of the release are none of theirs. */}}
{{- define "beckon.testSelector" -}}
app.kubernetes.io/name: beckon-test
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "beckon.testResources" -}}
requests: {cpu: 10m, memory: 48Mi, ephemeral-storage: 16Mi}
limits: {memory: 192Mi, ephemeral-storage: 64Mi}
{{- end }}
