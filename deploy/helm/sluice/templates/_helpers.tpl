{{- define "sluice.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Arguments of those below: root, name (of the component). */}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "sluice.image" -}}
{{ printf "%s/%s:%s" .root.Values.image.repository .name (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
{{- end }}

{{- define "sluice.secretName" -}}
{{ .Values.secrets.existingSecret | default (include "sluice.fullname" .) }}
{{- end }}

{{- define "sluice.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "sluice.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* One variable from the secret: root, key, and optional: the pod starts without it. */}}
{{- define "sluice.secretEnv" -}}
- name: {{ .key }}
  valueFrom:
    secretKeyRef:
      name: {{ include "sluice.secretName" .root }}
      key: {{ .key }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end }}

{{/* What every process has to know. */}}
{{- define "sluice.env" -}}
{{- $v := .root.Values }}
{{ include "sluice.secretEnv" (dict "root" .root "key" "DATABASE_URL") }}
{{ include "sluice.secretEnv" (dict "root" .root "key" "ELASTICSEARCH_URL") }}
{{- range list "S3_ACCESS_KEY" "S3_SECRET_KEY" "MILVUS_TOKEN" "EMBED_API_KEY" }}
{{ include "sluice.secretEnv" (dict "root" $.root "key" . "optional" true) }}
{{- end }}
- {name: KAFKA_BOOTSTRAP, value: {{ required "kafka.bootstrap: where is Kafka?" $v.kafka.bootstrap | quote }}}
- {name: KAFKA_IDEMPOTENCE, value: "true"}
{{- if ne $v.kafka.securityProtocol "PLAINTEXT" }}
- {name: KAFKA_SECURITY_PROTOCOL, value: {{ $v.kafka.securityProtocol | quote }}}
{{- if $v.kafka.caSecret }}
- {name: KAFKA_SSL_CAFILE, value: /etc/sluice/kafka/ca.crt}
{{- end }}
{{- end }}
{{- if hasPrefix "SASL" $v.kafka.securityProtocol }}
- {name: KAFKA_SASL_MECHANISM, value: {{ required "kafka.saslMechanism: how do clients authenticate?" $v.kafka.saslMechanism | quote }}}
{{ include "sluice.secretEnv" (dict "root" .root "key" "KAFKA_SASL_USERNAME") }}
{{ include "sluice.secretEnv" (dict "root" .root "key" "KAFKA_SASL_PASSWORD") }}
{{- end }}
- {name: S3_ENDPOINT, value: {{ required "objects.endpoint: where is the object store?" $v.objects.endpoint | quote }}}
- {name: S3_BUCKET, value: {{ $v.objects.bucket | quote }}}
- {name: MILVUS_URI, value: {{ required "milvus.uri: where is Milvus?" $v.milvus.uri | quote }}}
{{- with $v.tika.url }}
- {name: TIKA_URL, value: {{ . | quote }}}
{{- end }}
{{- with $v.schemaRegistry.url }}
- {name: SCHEMA_REGISTRY_URL, value: {{ . | quote }}}
{{- end }}
{{- with $v.embedding.baseUrl }}
- {name: EMBED_BASE_URL, value: {{ . | quote }}}
- {name: EMBED_MODEL, value: {{ required "embedding.model: which model?" $v.embedding.model | quote }}}
{{- end }}
{{- with $v.tracing.otlpEndpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
- {name: SLUICE_LOG_LEVEL, value: {{ $v.logLevel | quote }}}
{{- range $name, $value := $v.extraEnv }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "sluice.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .Values.kafka.caSecret }}
- {name: kafka-ca, mountPath: /etc/sluice/kafka, readOnly: true}
{{- end }}
{{- end }}

{{/* root, tmp: how much a pod may write. */}}
{{- define "sluice.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .tmp }}}
{{- if .root.Values.kafka.caSecret }}
- name: kafka-ca
  secret: {secretName: {{ .root.Values.kafka.caSecret }}}
{{- end }}
{{- end }}

{{- define "sluice.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
