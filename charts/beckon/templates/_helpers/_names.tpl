{{/* The host of a Service of the release: dict "root" $ "service" NAME */}}
{{- define "beckon.host" -}}
{{ .service }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}

{{/* Whether the demo model runs: "true" or empty. */}}
{{- define "beckon.demoModel" -}}
{{- if eq (toString .Values.demoModel.enabled) "auto" -}}
{{- if not .Values.model.baseURL }}true{{ end -}}
{{- else if .Values.demoModel.enabled -}}
true
{{- end -}}
{{- end }}

{{/* Where models are asked; nowhere, where every Agent has to name its own. */}}
{{- define "beckon.modelURL" -}}
{{- if .Values.model.baseURL -}}
{{ .Values.model.baseURL }}
{{- else if include "beckon.demoModel" . -}}
http://{{ include "beckon.host" (dict "root" . "service" "beckon-demo-model") }}/v1
{{- end -}}
{{- end }}

{{/* The Secret with the keys of the shim. */}}
{{- define "beckon.shimKeys" -}}
{{ .Values.shim.existingSecret | default "beckon-shim-keys" }}
{{- end }}

{{/* The Secret with the API keys of the agent. */}}
{{- define "beckon.agentKeys" -}}
{{ .Values.access.existingSecret | default "beckon-agent-keys" }}
{{- end }}

{{/* The Secret with the certificate of the agent; empty without HTTPS. */}}
{{- define "beckon.agentTls" -}}
{{- .Values.agent.tls.existingSecret | default (ternary "beckon-agent-tls" "" (not (empty .Values.agent.tls.issuer.name))) -}}
{{- end }}

{{/* The Brokers whose time limit the operator may write, NAMESPACE/NAME, as a JSON array. */}}
{{- define "beckon.timeoutBrokers" -}}
{{- $found := list }}
{{- range .Values.brokers }}
{{- if and (eq (.class | default "") "Kafka") (not .deliveryTimeout) }}
{{- $found = append $found (printf "%s/%s" .namespace .name) }}
{{- end }}
{{- end }}
{{- toJson $found }}
{{- end }}

{{/* Whether the agent serves every namespace: "true" or empty. */}}
{{- define "beckon.agentEverywhere" -}}
{{- if has "*" .Values.agent.namespaces }}true{{ end -}}
{{- end }}

{{/* The namespace of the agent that needs no Agent resource. */}}
{{- define "beckon.agentNamespace" -}}
{{- without .Values.agent.namespaces "*" | first | default "default" -}}
{{- end }}

{{/* Whether the agent serves a namespace: dict "root" $ "namespace" NAME; "true" or empty. */}}
{{- define "beckon.agentServes" -}}
{{- if or (include "beckon.agentEverywhere" .root) (has .namespace .root.Values.agent.namespaces) }}true{{ end -}}
{{- end }}

{{/* The Secrets that the operator makes, as a JSON array. */}}
{{- define "beckon.madeSecrets" -}}
{{- $made := list }}
{{- if not .Values.shim.existingSecret }}
{{- $made = append $made "beckon-shim-keys" }}
{{- end }}
{{- if not (or .Values.access.existingSecret .Values.access.anonymous) }}
{{- $made = concat $made (list "beckon-agent-keys" "beckon-first-key") }}
{{- end }}
{{- toJson $made }}
{{- end }}
