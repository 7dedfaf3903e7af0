{{- define "laneway.labels" -}}
app.kubernetes.io/name: laneway
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "laneway.selector" -}}
app.kubernetes.io/name: laneway
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "laneway.image" -}}
{{ required "image.repository: your application's image" .Values.image.repository }}:{{ required "image.tag: the version of your image" .Values.image.tag }}
{{- end -}}

{{/* What all pods have: an account without rights, no root. Kubernetes would set LANEWAY_SERVER_PORT
to an address if the release is named `laneway`. */}}
{{- define "laneway.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {}
{{- end -}}

{{- define "laneway.container" -}}
image: {{ include "laneway.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* The settings of all containers, and the database as the key `key` of the Secret. */}}
{{- define "laneway.env" -}}
- name: LANEWAY_DATABASE_URL
  valueFrom:
    secretKeyRef: {name: {{ .root.Values.database.secret }}, key: {{ .key }}}
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  value: {{ include "laneway.text" $value }}
{{- end }}
{{- end -}}

{{/* A value as text. Helm reads all numbers as floats and would write a million as 1e+06. */}}
{{- define "laneway.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . | quote }}{{ else }}{{ . | quote }}{{ end -}}
{{- end -}}

{{- define "laneway.placement" -}}
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
{{- end -}}
