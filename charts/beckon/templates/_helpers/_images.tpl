{{/* The image of a program: dict "root" $ "image" agent|shim|operator|tools */}}
{{- define "beckon.image" -}}
image: {{ printf "%s/beckon-%s:%s" .root.Values.image.registry .image (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- end }}

{{- define "beckon.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
