{{/* A section of the values that is null, or left out by --reuse-values, has no values. Every template begins with this, so that it can read members of every section. */}}
{{- define "hyperfleet-api.sections" -}}
{{- include "hyperfleet-api.addSections" (dict "known" (.Files.Get "files/known-values.json" | fromJson) "values" .Values) -}}
{{- end -}}

{{- define "hyperfleet-api.addSections" -}}
{{- $values := .values -}}
{{- range $key, $members := .known -}}
{{- if kindIs "map" $members -}}
{{- if not (kindIs "map" (get $values $key)) -}}{{- $_ := set $values $key dict -}}{{- end -}}
{{- include "hyperfleet-api.addSections" (dict "known" $members "values" (get $values $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
