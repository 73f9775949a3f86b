{{/* Whether the pods of the Broker class run: "true" or empty. */}}
{{- define "beckon.brokerClass" -}}
{{- if eq (toString .Values.brokerClass.enabled) "auto" -}}
{{- range .Values.brokers }}{{ if eq (toString .class) "Beckon" }}true{{ break }}{{ end }}{{ end -}}
{{- else if .Values.brokerClass.enabled -}}
true
{{- end -}}
{{- end }}

{{/* Whether the chart runs a NATS server: "true" or empty. */}}
{{- define "beckon.ownNats" -}}
{{- if and (include "beckon.brokerClass" .) (not .Values.nats.url) (not .Values.nats.existingSecret) -}}
true
{{- end -}}
{{- end }}

{{/* A Deployment of the Broker class: dict "root" $ "role" ingress|dispatcher "values" those of the role "resources" those of its container */}}
{{- define "beckon.brokerDeployment" -}}
{{- $component := printf "broker-%s" .role }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "beckon.metadata" (dict "root" .root "component" $component) | nindent 2 }}
spec:
  {{- if not (or .values.autoscaling.enabled (dig "keda" "enabled" false .values)) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "beckon.selector" $component | nindent 6 }}
  strategy:
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 1
  template:
    metadata:
      labels:
        {{- include "beckon.selector" $component | nindent 8 }}
    spec:
      serviceAccountName: beckon-broker
      automountServiceAccountToken: true
      enableServiceLinks: false
      {{- include "beckon.pullSecrets" .root | nindent 6 }}
      securityContext:
        {{- include "beckon.podSecurity" .root | nindent 8 }}
        fsGroup: 65532
      containers:
        - name: broker
          {{- include "beckon.image" (dict "root" .root "image" "broker") | nindent 10 }}
          command: [python, -m, beckon_broker]
          env:
            {{- include "beckon.brokerEnvironment" . | nindent 12 }}
          ports:
            - name: http
              containerPort: 8081
          {{- include "beckon.probes" (dict "port" "http") | nindent 10 }}
          # Until every node has heard that this replica goes, it still gets events.
          {{- include "beckon.linger" 5 | nindent 10 }}
          {{- if or .root.Values.nats.credentialsSecret .root.Values.nats.caSecret }}
          volumeMounts:
            - name: nats
              mountPath: /etc/beckon/nats
              readOnly: true
          {{- end }}
          resources:
            {{- toYaml .resources | nindent 12 }}
          securityContext:
            {{- include "beckon.containerSecurity" .root | nindent 12 }}
      {{- with .root.Values.nats }}
      {{- if or .credentialsSecret .caSecret }}
      volumes:
        - name: nats
          projected:
            defaultMode: 0440
            sources:
              {{- if .credentialsSecret }}
              - secret:
                  name: {{ .credentialsSecret }}
                  items:
                    - {key: {{ .credentialsKey }}, path: nats.creds}
              {{- end }}
              {{- if .caSecret }}
              - secret:
                  name: {{ .caSecret }}
                  items:
                    - {key: {{ .caKey }}, path: ca.crt}
              {{- end }}
      {{- end }}
      {{- end }}
      # 5 s before SIGTERM, 25 s for deliveries that are in progress, and some to end.
      terminationGracePeriodSeconds: 45
      {{- include "beckon.spread" $component | nindent 6 }}
      {{- include "beckon.scheduling" (dict "root" .root "key" (printf "broker%s" (title .role))) | nindent 6 }}
{{- end }}

{{/* The environment of a pod of the Broker class. */}}
{{- define "beckon.brokerEnvironment" -}}
- name: BECKON_HOST
  value: 0.0.0.0
- name: BECKON_BROKER_ROLES
  value: {{ .role }}
{{- if eq .role "dispatcher" }}
- name: BECKON_BROKER_REPLY_INBOX
  value: http://{{ include "beckon.host" (dict "root" .root "service" "beckon-shim-inbox") }}:8083/replies
- name: BECKON_BROKER_REPLY_SUBSCRIBER
  value: http://{{ include "beckon.host" (dict "root" .root "service" "beckon-shim-replies") }}/replies
{{- end }}
- name: BECKON_BROKER_SOURCE
  value: cluster
{{- with .root.Values.nats }}
{{- if .existingSecret }}
- name: BECKON_NATS_URL
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .key }}
{{- else }}
- name: BECKON_NATS_URL
  value: {{ .url | default (printf "nats://%s:4222" (include "beckon.host" (dict "root" $.root "service" "beckon-nats"))) | quote }}
{{- end }}
{{- if .credentialsSecret }}
- name: BECKON_NATS_CREDENTIALS
  value: /etc/beckon/nats/nats.creds
{{- end }}
{{- if .caSecret }}
- name: BECKON_NATS_CA
  value: /etc/beckon/nats/ca.crt
{{- end }}
- name: BECKON_NATS_STREAM
  value: {{ .stream | quote }}
- name: BECKON_NATS_REPLICAS
  value: {{ .replicas | quote }}
- name: BECKON_NATS_MAX_BYTES
  value: {{ .maxBytes | int64 | quote }}
{{- end }}
- name: BECKON_DRAIN_SECONDS
  value: "25"
- name: BECKON_LOG_LEVEL
  value: {{ .root.Values.logLevel }}
{{- with include "beckon.tracing" .root }}
{{ . }}
{{- end }}
{{- range $name, $value := .root.Values.brokerClass.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* A Service before the pods of a role: dict "root" $ "role" ingress|dispatcher */}}
{{- define "beckon.brokerService" -}}
{{- $component := printf "broker-%s" .role }}
apiVersion: v1
kind: Service
metadata:
  {{- include "beckon.metadata" (dict "root" .root "component" $component) | nindent 2 }}
spec:
  selector:
    {{- include "beckon.selector" $component | nindent 4 }}
  ports:
    - name: http
      port: 80
      targetPort: http
      appProtocol: http
{{- end }}

{{/* More replicas by CPU: a process uses one core. dict "root" $ "role" ingress|dispatcher "values" those of the role */}}
{{- define "beckon.brokerAutoscaler" -}}
{{- $component := printf "broker-%s" .role }}
{{- $replicas := .values.replicas }}
{{- with .values.autoscaling }}
{{- if lt (int .maxReplicas) (int $replicas) }}
{{- fail (printf "brokerClass.%s.autoscaling.maxReplicas is less than its replicas; raise the one or lower the other" $.role) }}
{{- end }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "beckon.metadata" (dict "root" $.root "component" $component) | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: beckon-{{ $component }}
  minReplicas: {{ $replicas }}
  maxReplicas: {{ .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target:
          type: AverageValue
          averageValue: {{ .cpu | quote }}
  behavior:
    # A replica that goes finishes or hands back what it holds; a burst is often followed by another.
    scaleDown:
      stabilizationWindowSeconds: 300
{{- end }}
{{- end }}

{{/* Where the ingress may connect: the API server, and NATS. */}}
{{- define "beckon.brokerEgress" -}}
- ports:
    - {port: 443, protocol: TCP}
    - {port: 6443, protocol: TCP}
{{- if include "beckon.ownNats" . }}
- to:
    - podSelector:
        matchLabels:
          {{- include "beckon.selector" "nats" | nindent 10 }}
  ports:
    - {port: 4222, protocol: TCP}
{{- else }}
# NATS is where the values say, on whatever port.
- to:
    - namespaceSelector: {}
    - ipBlock:
        cidr: 0.0.0.0/0
        except: [169.254.0.0/16]
    - ipBlock:
        cidr: ::/0
        except: ["fe80::/10", "fd00:ec2::254/128"]
{{- end }}
{{- end }}
