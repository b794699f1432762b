{{/* What the pods of the service and of migrations have in common. */}}

{{- define "hyperfleet-api.env" -}}
- name: HYPERFLEET_CONFIG
  value: /etc/hyperfleet/config.yaml
{{- include "hyperfleet-api.databaseEnv" . }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hyperfleet-api.tracingEnv" -}}
{{- $tracing := .Values.monitoring.tracing -}}
- name: HYPERFLEET_TRACING_ENABLED
  value: {{ $tracing.enabled | default false | quote }}
{{- if $tracing.enabled }}
- name: OTEL_SERVICE_NAME
  value: {{ $tracing.serviceName | quote }}
{{- with $tracing.otlpEndpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ $tracing.otlpProtocol | quote }}
- name: OTEL_TRACES_SAMPLER
  value: {{ $tracing.sampler | quote }}
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ $tracing.samplerArg | quote }}
- name: OTEL_PROPAGATORS
  value: {{ $tracing.propagators | quote }}
- name: K8S_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name=$(K8S_NAMESPACE)
{{- end }}
{{- end -}}

{{/* Mounts of migrations: the file of settings, the database's authorities, what the values add. */}}
{{- define "hyperfleet-api.commonMounts" -}}
- name: config
  mountPath: /etc/hyperfleet
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if and .Values.database.external.enabled .Values.database.external.caSecretName }}
- name: database-ca
  mountPath: /etc/hyperfleet-database
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hyperfleet-api.serviceMounts" -}}
{{- if .Values.validationSchema.enabled }}
- name: validation-schema
  mountPath: /etc/hyperfleet/validation-schema
  readOnly: true
{{- end }}
{{- range $listener := list "api" "health" "metrics" }}
{{- if include "hyperfleet-api.tlsSecretName" (dict "root" $ "listener" $listener) }}
- name: tls-{{ $listener }}
  mountPath: /etc/hyperfleet-tls/{{ $listener }}
  readOnly: true
{{- end }}
{{- end }}
{{- if .Values.etcd.secretName }}
- name: etcd
  mountPath: /etc/hyperfleet-etcd
  readOnly: true
{{- end }}
{{- end -}}

{{/* Call with (dict "root" $ "configMap" "name"). */}}
{{- define "hyperfleet-api.commonVolumes" -}}
- name: config
  configMap:
    name: {{ .configMap }}
- name: tmp
  emptyDir: {}
{{- $external := .root.Values.database.external }}
{{- if and $external.enabled $external.caSecretName }}
- name: database-ca
  secret:
    secretName: {{ $external.caSecretName }}
    items:
      - key: {{ $external.caSecretKey }}
        path: ca.crt
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hyperfleet-api.serviceVolumes" -}}
{{- if .Values.validationSchema.enabled }}
- name: validation-schema
  configMap:
    name: {{ include "hyperfleet-api.schemaConfigMapName" . }}
{{- end }}
{{- range $listener := list "api" "health" "metrics" }}
{{- with include "hyperfleet-api.tlsSecretName" (dict "root" $ "listener" $listener) }}
- name: tls-{{ $listener }}
  secret:
    secretName: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.etcd.secretName }}
- name: etcd
  secret:
    secretName: {{ . }}
{{- end }}
{{- end -}}

{{- define "hyperfleet-api.migrateContainer" -}}
name: db-migrate
image: {{ include "hyperfleet-api.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [migrate]
{{- with include "hyperfleet-api.securityContext" (dict "root" . "context" .Values.securityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
env:
  {{- include "hyperfleet-api.env" . | nindent 2 }}
{{- with .Values.migration.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- include "hyperfleet-api.commonMounts" . | nindent 2 }}
{{- end -}}

{{/* The program itself does not call the cluster; an issuer's file may lie where the token is mounted. */}}
{{- define "hyperfleet-api.automount" -}}
{{- $files := list -}}
{{- range .Values.config.server.jwt.configs -}}
{{- $files = append $files (.jwk_cert_ca_file | default "") -}}
{{- $files = append $files (.jwk_cert_token_file | default "") -}}
{{- $files = append $files (.jwk_cert_file | default "") -}}
{{- end -}}
{{- $asked := .Values.serviceAccount.automountServiceAccountToken -}}
{{- kindIs "bool" $asked | ternary $asked (contains "/var/run/secrets/kubernetes.io/" (join " " $files)) -}}
{{- end -}}

{{/* A security context, empty where it says nothing. OpenShift chooses the ids. Call with (dict "root" $ "context" $map). */}}
{{- define "hyperfleet-api.securityContext" -}}
{{- $context := .context | default dict -}}
{{- if .root.Values.openshift -}}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" -}}
{{- end -}}
{{- if $context -}}{{- toYaml $context -}}{{- end -}}
{{- end -}}

{{/* Where pods may run, and as what. */}}
{{- define "hyperfleet-api.podSettings" -}}
automountServiceAccountToken: {{ include "hyperfleet-api.automount" . }}
# Variables for every Service of the namespace, of which some would look like settings.
enableServiceLinks: false
{{- with include "hyperfleet-api.securityContext" (dict "root" . "context" .Values.podSecurityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Rules without a selector get that of the pods; without rules, pods spread where that is possible. */}}
{{- define "hyperfleet-api.topologySpread" -}}
{{- $selector := dict "matchLabels" (include "hyperfleet-api.selectorLabels" (dict "root" . "component" "api") | fromYaml) -}}
{{- $rules := .Values.topologySpreadConstraints -}}
{{- if kindIs "invalid" $rules -}}
{{- $rules = list -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- $rules = append $rules (dict "maxSkew" 1 "topologyKey" . "whenUnsatisfiable" "ScheduleAnyway") -}}
{{- end -}}
{{- end -}}
{{- with $rules }}
topologySpreadConstraints:
{{- range . }}
  - {{ (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $selector) .)) | toYaml | nindent 4 | trim }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Changes whenever a ConfigMap does, so that pods are replaced. One of others is not read: helm template, which can't, would render another pod. Call with (dict "existing" "name" "revision" "" "own" "content"). */}}
{{- define "hyperfleet-api.checksum" -}}
{{- ternary (printf "%s %s" .existing .revision) .own (not (empty .existing)) | sha256sum -}}
{{- end -}}
