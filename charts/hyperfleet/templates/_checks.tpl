{{/* What would start no pod is refused here, all of it at once, each with what to change. */}}
{{- define "hyperfleet-api.checks" -}}
{{- if not .Values.allowUnknownValues -}}
{{- $known := .Files.Get "files/known-values.json" | fromJson -}}
{{- with include "hyperfleet-api.unknown" (dict "known" $known "given" (omit .Values "global") "path" "") -}}
{{- fail (printf "\nUnknown values:%s\nCorrect them, or set allowUnknownValues=true to render without them." .) -}}
{{- end -}}
{{- end -}}
{{- $faults := concat (include "hyperfleet-api.imageFaults" . | fromJsonArray) (include "hyperfleet-api.configFaults" . | fromJsonArray) (include "hyperfleet-api.databaseFaults" . | fromJsonArray) (include "hyperfleet-api.otherFaults" . | fromJsonArray) -}}
{{- with $faults -}}
{{- fail (printf "\n- %s" (join "\n- " .)) -}}
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.imageFaults" -}}
{{- $faults := list -}}
{{- range $key, $example := dict "registry" "registry.example.com" "repository" "hyperfleet/hyperfleet-api" -}}
{{- $value := get $.Values.image $key | trim -}}
{{- if or (empty $value) (eq $value "CHANGE_ME") -}}
{{- $faults = append $faults (printf "image.%s must be set, for instance: --set image.%s=%s" $key $key $example) -}}
{{- end -}}
{{- end -}}
{{- if not (or (.Values.image.tag | default "" | trim) (.Values.image.digest | default "" | trim)) -}}
{{- $faults = append $faults (printf "image.tag or image.digest must be set, for instance: --set image.tag=%s" .Chart.AppVersion) -}}
{{- end -}}
{{- with include "hyperfleet-api.olderVersion" . -}}
{{- $faults = append $faults . -}}
{{- end -}}
{{- toJson $faults -}}
{{- end -}}

{{/*
An image of an earlier series does not start: the chart renders settings that it does not know. A tag that is not a version,
and a digest, say nothing about the image.
*/}}
{{- define "hyperfleet-api.olderVersion" -}}
{{- $number := "(0|[1-9][0-9]{0,8})" -}}
{{- $version := printf "v?%s[.]%s[.]%s" $number $number $number -}}
{{- $tag := .Values.image.tag | default "" | trim -}}
{{- if and (not (.Values.image.digest | default "" | trim)) (regexMatch (printf "^%s(-.*)?$" $version) $tag) -}}
{{- $series := regexFind "^[0-9]+[.][0-9]+" .Chart.AppVersion -}}
{{- if semverCompare (printf "<%s.0" $series) (regexFind $version $tag) -}}
{{- printf "image.tag is %s, but this chart needs an image of version %s or newer: set image.tag=%s, or install the chart of the image's release" $tag $series .Chart.AppVersion -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "hyperfleet-api.configFaults" -}}
{{- $faults := list -}}
{{- $config := .Values.config -}}
{{- if not $config.existingConfigMap -}}
{{- $jwt := include "hyperfleet-api.jwt" . -}}
{{- if not $jwt -}}
{{- $faults = append $faults "authentication is not decided: name issuers in config.server.jwt.configs (docs/guides/authentication.md), or say that every caller may do anything: --set config.server.jwt.enabled=false" -}}
{{- else if and (eq $jwt "true") (not $config.server.jwt.configs) -}}
{{- $faults = append $faults "config.server.jwt.enabled is true, but config.server.jwt.configs names no issuer: add one (issuer_url, jwk_cert_url, audience), or set config.server.jwt.enabled=false" -}}
{{- end -}}
{{- if and $config.server.tenant.enabled (not $config.server.tenant.dimensions) -}}
{{- $faults = append $faults "config.server.tenant.enabled is true, but config.server.tenant.dimensions is empty: add headers (header, key, required)" -}}
{{- end -}}
{{- range $section, $listener := dict "server" "api" "health" "health" "metrics" "metrics" -}}
{{- $settings := get $config $section -}}
{{- if $settings.tls.enabled -}}
{{- $files := include "hyperfleet-api.tlsFiles" (dict "root" $ "listener" $listener) | fromJson -}}
{{- if not (and $files.cert_file $files.key_file) -}}
{{- $faults = append $faults (printf "config.%s.tls.enabled is true without a certificate: set tls.%s.secretName, or config.%s.tls.cert_file and key_file, or certificate.enabled" $section $listener $section) -}}
{{- end -}}
{{- end -}}
{{- $port := get $.Values.ports $listener -}}
{{- if and $port (ne (int $port) (int $settings.port)) -}}
{{- $faults = append $faults (printf "ports.%s is %d, but config.%s.port is %d: leave ports.%s out, or make them equal" $listener (int $port) $section (int $settings.port) $listener) -}}
{{- end -}}
{{- end -}}
{{- if and $config.fleet.enabled (not $config.fleet.etcd.endpoints) -}}
{{- $faults = append $faults "config.fleet.enabled is true, but config.fleet.etcd.endpoints is empty: name the servers of etcd" -}}
{{- end -}}
{{- end -}}
{{- toJson $faults -}}
{{- end -}}

{{- define "hyperfleet-api.databaseFaults" -}}
{{- $faults := list -}}
{{- $mode := include "hyperfleet-api.databaseMode" . -}}
{{- $external := .Values.database.external -}}
{{- if and (eq $mode "external") (not $external.secretName) -}}
{{- $faults = append $faults "database.external.enabled is true without database.external.secretName: name the Secret with db.host, db.port, db.name, db.user and db.password" -}}
{{- end -}}
{{- if and (eq $mode "external") $external.externalSecret.enabled (not (and $external.externalSecret.secretStoreRef (or $external.externalSecret.data $external.externalSecret.dataFrom))) -}}
{{- $faults = append $faults "database.external.externalSecret needs secretStoreRef, and data or dataFrom" -}}
{{- end -}}
{{- if and (eq $mode "postgresql") (not .Values.database.postgresql.existingSecret) (not (include "hyperfleet-api.postgresqlPassword" .)) -}}
{{- $faults = append $faults (printf "database.postgresql has no password, and the chart makes one only where it finds namespace %s in the cluster, by its ConfigMap kube-root-ca.crt (helm template, Argo CD and --dry-run=client see no cluster): set database.postgresql.existingSecret to a Secret with the key db.password, or create the namespace before helm install" .Release.Namespace) -}}
{{- end -}}
{{- if eq (include "hyperfleet-api.migrationMode" .) "job" -}}
{{- if eq $mode "postgresql" -}}
{{- $faults = append $faults "migration.mode=job runs before the chart's PostgreSQL exists: use migration.mode=initContainer, or database.external" -}}
{{- else if and (eq $mode "external") $external.externalSecret.enabled -}}
{{- $faults = append $faults "migration.mode=job runs before database.external.externalSecret exists: make that Secret outside of the chart, or use migration.mode=initContainer" -}}
{{- end -}}
{{- end -}}
{{- toJson $faults -}}
{{- end -}}

{{- define "hyperfleet-api.otherFaults" -}}
{{- $faults := list -}}
{{- $schema := .Values.validationSchema -}}
{{- if and $schema.enabled (not $schema.existingConfigMap) (not ($schema.content | default "" | trim)) -}}
{{- $faults = append $faults "validationSchema.enabled is true without a document: set validationSchema.content (--set-file validationSchema.content=openapi.yaml) or validationSchema.existingConfigMap" -}}
{{- end -}}
{{- if and .Values.certificate.enabled (not .Values.certificate.issuerRef) -}}
{{- $faults = append $faults "certificate.enabled is true without certificate.issuerRef: name the issuer of cert-manager (name, kind)" -}}
{{- end -}}
{{- $autoscaling := .Values.autoscaling -}}
{{- if $autoscaling.enabled -}}
{{- if gt (int $autoscaling.minReplicas) (int $autoscaling.maxReplicas) -}}
{{- $faults = append $faults "autoscaling.minReplicas is greater than autoscaling.maxReplicas" -}}
{{- end -}}
{{- if not (or $autoscaling.targetCPUUtilizationPercentage $autoscaling.targetMemoryUtilizationPercentage) -}}
{{- $faults = append $faults "autoscaling.enabled is true without a target: set autoscaling.targetCPUUtilizationPercentage" -}}
{{- end -}}
{{- end -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- if and $budget.enabled (not (kindIs "invalid" $budget.minAvailable)) (not (kindIs "invalid" $budget.maxUnavailable)) -}}
{{- $faults = append $faults "podDisruptionBudget has both minAvailable and maxUnavailable: set one of them" -}}
{{- end -}}
{{- if and .Values.nativeSidecars (semverCompare "<1.28.0-0" .Capabilities.KubeVersion.Version) -}}
{{- $faults = append $faults (printf "nativeSidecars needs Kubernetes 1.28, this is %s: migrations would wait for them forever" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- toJson $faults -}}
{{- end -}}
