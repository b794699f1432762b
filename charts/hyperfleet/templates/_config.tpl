{{/* The settings of the program, from `config` and from what the chart mounts. */}}

{{/* Without what is empty, so that the program's own defaults hold. Lists stay: an empty one says "none". */}}
{{- define "hyperfleet-api.pruned" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $inner := include "hyperfleet-api.pruned" $value | fromJson -}}
{{- if $inner -}}{{- $_ := set $kept $key $inner -}}{{- end -}}
{{- else if not (or (kindIs "invalid" $value) (and (kindIs "string" $value) (eq $value ""))) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{- toJson $kept -}}
{{- end -}}

{{/* Whether callers need a token: "true", "false", or empty where nobody has decided. */}}
{{- define "hyperfleet-api.jwt" -}}
{{- $jwt := .Values.config.server.jwt -}}
{{- if kindIs "bool" $jwt.enabled -}}
{{- $jwt.enabled -}}
{{- else if $jwt.configs -}}
true
{{- end -}}
{{- end -}}

{{/* The Secret with the certificate of a listener. Call with (dict "root" $ "listener" "api"). */}}
{{- define "hyperfleet-api.tlsSecretName" -}}
{{- $named := (get .root.Values.tls .listener).secretName | default "" -}}
{{- if and (not $named) (eq .listener "api") .root.Values.certificate.enabled -}}
{{- printf "%s-tls" (include "hyperfleet-api.fullname" .root) -}}
{{- else -}}
{{- $named -}}
{{- end -}}
{{- end -}}

{{/* Certificate and key of a listener as JSON: its own files, its Secret, or the API's. */}}
{{- define "hyperfleet-api.tlsFiles" -}}
{{- $settings := get .root.Values.config (ternary "server" .listener (eq .listener "api")) -}}
{{- if or $settings.tls.cert_file $settings.tls.key_file -}}
{{- dict "cert_file" $settings.tls.cert_file "key_file" $settings.tls.key_file | toJson -}}
{{- else if include "hyperfleet-api.tlsSecretName" . -}}
{{- $folder := printf "/etc/hyperfleet-tls/%s" .listener -}}
{{- dict "cert_file" (printf "%s/tls.crt" $folder) "key_file" (printf "%s/tls.key" $folder) | toJson -}}
{{- else if eq .listener "api" -}}
{}
{{- else -}}
{{- include "hyperfleet-api.tlsFiles" (dict "root" .root "listener" "api") -}}
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.configYaml" -}}
{{- $config := omit (deepCopy .Values.config) "existingConfigMap" "existingConfigMapRevision" -}}
{{- $_ := set $config.server.jwt "enabled" (eq (include "hyperfleet-api.jwt" .) "true") -}}
{{- range $section, $listener := dict "server" "api" "health" "health" "metrics" "metrics" -}}
{{- $tls := get (get $config $section) "tls" -}}
{{- if $tls.enabled -}}
{{- $_ := set (get $config $section) "tls" (mergeOverwrite $tls (include "hyperfleet-api.tlsFiles" (dict "root" $ "listener" $listener) | fromJson)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.validationSchema.enabled -}}
{{- $_ := set $config.server "openapi_schema_path" "/etc/hyperfleet/validation-schema/openapi.yaml" -}}
{{- end -}}
{{- $mode := include "hyperfleet-api.databaseMode" . -}}
{{- if eq $mode "postgresql" -}}
{{- $postgresql := .Values.database.postgresql -}}
{{- $_ := mergeOverwrite $config.database (dict "host" (include "hyperfleet-api.postgresqlName" .) "port" (int $postgresql.port) "name" $postgresql.database "username" $postgresql.user) -}}
{{- end -}}
{{- if and (eq $mode "external") .Values.database.external.caSecretName (not $config.database.ssl.root_cert_file) -}}
{{- $_ := set $config.database.ssl "root_cert_file" "/etc/hyperfleet-database/ca.crt" -}}
{{- end -}}
{{- if .Values.etcd.secretName -}}
{{- range $setting, $key := dict "ca_file" "caKey" "cert_file" "certKey" "key_file" "keyKey" "password_file" "passwordKey" -}}
{{- if and (get $.Values.etcd $key) (not (get $config.fleet.etcd $setting)) -}}
{{- $_ := set $config.fleet.etcd $setting (printf "/etc/hyperfleet-etcd/%s" (get $.Values.etcd $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $config.fleet.etcd.endpoints -}}{{- $_ := unset $config.fleet.etcd "endpoints" -}}{{- end -}}
{{- $_ := unset $config.logging "otel" -}}
{{- $_ := unset $config.metrics "label_metrics_inclusion_duration" -}}
{{- include "hyperfleet-api.pruned" $config | fromJson | toYaml -}}
{{- end -}}

{{/* A port of the pod. Call with (dict "root" $ "listener" "api"). */}}
{{- define "hyperfleet-api.port" -}}
{{- $settings := get .root.Values.config (ternary "server" .listener (eq .listener "api")) -}}
{{- get .root.Values.ports .listener | default $settings.port | int -}}
{{- end -}}
