{{/* Names and labels. Selectors of Deployments can't change: these are the older chart's, to the letter. */}}

{{- define "hyperfleet-api.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "hyperfleet-api.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "hyperfleet-api.serviceName" -}}
{{- .Values.service.name | default .Chart.Name -}}
{{- end -}}

{{- define "hyperfleet-api.serviceAccountName" -}}
{{- $own := ternary (include "hyperfleet-api.fullname" .) "default" (.Values.serviceAccount.create | default false) -}}
{{- .Values.serviceAccount.name | default $own -}}
{{- end -}}

{{- define "hyperfleet-api.configMapName" -}}
{{- .Values.config.existingConfigMap | default (printf "%s-config" (include "hyperfleet-api.fullname" .)) -}}
{{- end -}}

{{- define "hyperfleet-api.schemaConfigMapName" -}}
{{- .Values.validationSchema.existingConfigMap | default (printf "%s-validation-schema" (include "hyperfleet-api.fullname" .)) -}}
{{- end -}}

{{/* Call with (dict "root" $ "component" "api"). */}}
{{- define "hyperfleet-api.selectorLabels" -}}
app.kubernetes.io/name: {{ include "hyperfleet-api.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "hyperfleet-api.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "hyperfleet-api.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "hyperfleet-api.image" -}}
{{- $image := .Values.image -}}
{{- $version := ternary (printf "@%s" $image.digest) (printf ":%s" $image.tag) (not (empty $image.digest)) -}}
{{- printf "%s/%s%s" $image.registry $image.repository $version -}}
{{- end -}}
