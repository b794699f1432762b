{{/* Names and labels. Selectors of Deployments can't change: these are the older chart's, to the letter. */}}

{{/* The chart's name, or its alias in a parent chart, which may have letters that names of objects can't. */}}
{{- define "hyperfleet-api.chartName" -}}
{{- .Chart.Name | lower | replace "_" "-" | trimAll "-" -}}
{{- end -}}

{{- define "hyperfleet-api.name" -}}
{{- .Values.nameOverride | default (include "hyperfleet-api.chartName" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Several aliases can be parts of the release's name, or begin alike, so objects of an alias always have both names. */}}
{{- define "hyperfleet-api.fullname" -}}
{{- $chart := include "hyperfleet-api.chartName" . -}}
{{- $name := .Values.nameOverride | default $chart -}}
{{- $both := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if ne $chart "hyperfleet-api" -}}
{{- include "hyperfleet-api.shortened" $both -}}
{{- else -}}
{{- ternary .Release.Name $both (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* A name of at most 63 characters. A longer one ends in a part of its checksum, so that it stays unique. */}}
{{- define "hyperfleet-api.shortened" -}}
{{- if gt (len .) 63 -}}
{{- printf "%s-%s" (trunc 54 . | trimSuffix "-") (sha256sum . | trunc 8) -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.serviceName" -}}
{{- .Values.service.name | default (include "hyperfleet-api.chartName" . | include "hyperfleet-api.shortened") -}}
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
