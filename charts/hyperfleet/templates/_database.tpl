{{/* Which database: "external", "postgresql" (the chart's own), or empty. The external one counts where both are enabled. */}}
{{- define "hyperfleet-api.databaseMode" -}}
{{- if .Values.database.external.enabled -}}
external
{{- else if .Values.database.postgresql.enabled -}}
postgresql
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.postgresqlName" -}}
{{- printf "%s-postgresql" (include "hyperfleet-api.fullname" .) | include "hyperfleet-api.shortened" -}}
{{- end -}}

{{- define "hyperfleet-api.postgresqlSecretName" -}}
{{- .Values.database.postgresql.existingSecret | default (printf "%s-db-secrets" (include "hyperfleet-api.fullname" .)) -}}
{{- end -}}

{{/* The password of the chart's PostgreSQL: as given, else as it is in the cluster, else a new one. Empty without a cluster, because every render would make another one. */}}
{{- define "hyperfleet-api.postgresqlPassword" -}}
{{- if .Values.database.postgresql.password -}}
{{- .Values.database.postgresql.password -}}
{{- else -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (include "hyperfleet-api.postgresqlSecretName" .) | default dict -}}
{{- $stored := get ($secret.data | default dict) "db.password" | b64dec -}}
{{/* Kubernetes keeps this ConfigMap in every namespace. */}}
{{- $seen := lookup "v1" "ConfigMap" .Release.Namespace "kube-root-ca.crt" | empty | not -}}
{{- $stored | default (ternary (randAlphaNum 32) "" $seen) -}}
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.databaseEnv" -}}
{{- $mode := include "hyperfleet-api.databaseMode" . -}}
{{- if eq $mode "external" }}
{{- range $variable, $key := dict "HOST" "db.host" "PORT" "db.port" "NAME" "db.name" "USERNAME" "db.user" "PASSWORD" "db.password" }}
- name: HYPERFLEET_DATABASE_{{ $variable }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.database.external.secretName }}
      key: {{ $key }}
{{- end }}
{{- else if eq $mode "postgresql" }}
{{- $postgresql := .Values.database.postgresql }}
- name: HYPERFLEET_DATABASE_HOST
  value: {{ include "hyperfleet-api.postgresqlName" . }}
- name: HYPERFLEET_DATABASE_PORT
  value: {{ $postgresql.port | int | quote }}
- name: HYPERFLEET_DATABASE_NAME
  value: {{ $postgresql.database | quote }}
- name: HYPERFLEET_DATABASE_USERNAME
  value: {{ $postgresql.user | quote }}
- name: HYPERFLEET_DATABASE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "hyperfleet-api.postgresqlSecretName" . }}
      key: db.password
{{- end }}
{{- end -}}

{{/* "initContainer", "job" or "none". */}}
{{- define "hyperfleet-api.migrationMode" -}}
{{- $usual := ternary "none" "initContainer" (empty (include "hyperfleet-api.databaseMode" .)) -}}
{{- .Values.migration.mode | default $usual -}}
{{- end -}}
