{{/* What meets the strictest of the Pod Security Standards. */}}
{{- define "beckon.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "beckon.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* What makes a service export traces, where a collector is named. */}}
{{- define "beckon.tracing" -}}
{{- if .Values.tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .Values.tracing.endpoint | quote }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .Values.tracing.ratio | quote }}
{{- end }}
{{- end }}

{{/* A busy node may take a minute to start a container. Alive is not the same as ready: a replica that
     drains is the one and not the other.
     dict "port" NAME "ready" PATH */}}
{{- define "beckon.probes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: {{ .port }}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 90
readinessProbe:
  httpGet:
    path: {{ .ready | default "/readyz" }}
    port: {{ .port }}
  periodSeconds: 5
  timeoutSeconds: 3
livenessProbe:
  httpGet:
    path: /healthz
    port: {{ .port }}
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{/* Until every node has heard that this replica goes, clients still call it: its seconds */}}
{{- define "beckon.linger" -}}
lifecycle:
  preStop:
    sleep:
      seconds: {{ . }}
{{- end }}

{{/* Replicas on different nodes where there are some: the name of the component */}}
{{- define "beckon.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "beckon.selector" . | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
{{- end }}

{{/* Nodes, as the user wants them: dict "root" $ "key" the component's name in values.yaml */}}
{{- define "beckon.scheduling" -}}
{{- with (index .root.Values.scheduling .key) }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* A PodDisruptionBudget, where there is more than one replica: dict "root" $ "component" NAME "replicas" N */}}
{{- define "beckon.disruptionBudget" -}}
{{- if and .root.Values.podDisruptionBudgets.enabled (gt (int .replicas) 1) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "beckon.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "beckon.selector" .component | nindent 6 }}
{{- end }}
{{- end }}

{{/* A ServiceAccount: dict "root" $ "component" NAME */}}
{{- define "beckon.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "beckon.metadata" . | nindent 2 }}
automountServiceAccountToken: false
{{- end }}

{{/* The kind of a component's role, and the ServiceAccount that gets it: dict "root" $ "component" NAME "kind" KIND */}}
{{- define "beckon.grant" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: beckon-{{ .component }}
subjects:
  - kind: ServiceAccount
    name: beckon-{{ .component }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
