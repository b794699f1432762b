{{/* Keys of the values that the chart does not know, each with the known key that is nearest. */}}

{{/* How many characters to insert, delete or replace: Levenshtein's distance, row by row. Call with (list "a" "b"). */}}
{{- define "hyperfleet-api.distance" -}}
{{- $from := index . 0 | lower | replace "_" "" | replace "-" "" | splitList "" -}}
{{- $to := index . 1 | lower | replace "_" "" | replace "-" "" | splitList "" -}}
{{- $above := untilStep 0 (add1 (len $to) | int) 1 -}}
{{- range $i, $a := $from -}}
{{- $row := list (add1 $i) -}}
{{- range $j, $b := $to -}}
{{- $replaced := add (index $above $j) (ternary 0 1 (eq $a $b)) -}}
{{- $row = append $row (min $replaced (add1 (index $above (add1 $j))) (add1 (last $row))) -}}
{{- end -}}
{{- $above = $row -}}
{{- end -}}
{{- last $above -}}
{{- end -}}

{{/* The nearest of `known`, or empty where none is near. Call with (list "key" $known). */}}
{{- define "hyperfleet-api.nearest" -}}
{{- $key := index . 0 -}}
{{- $least := max 2 (div (len $key) 3) | add1 -}}
{{- $nearest := "" -}}
{{- range $candidate := index . 1 -}}
{{- $distance := include "hyperfleet-api.distance" (list $key $candidate) | int64 -}}
{{- if lt $distance $least -}}
{{- $least = $distance -}}
{{- $nearest = $candidate -}}
{{- end -}}
{{- end -}}
{{- $nearest -}}
{{- end -}}

{{/* One line for each unknown key. In the tree of known keys a map has keys, a list has what its items are, true is anything. */}}
{{- define "hyperfleet-api.unknown" -}}
{{- $known := .known -}}
{{- if and (kindIs "map" $known) (kindIs "map" .given) -}}
{{- $path := .path -}}
{{- range $key, $value := .given -}}
{{- $at := ternary $key (printf "%s.%s" $path $key) (empty $path) -}}
{{- if hasKey $known $key -}}
{{- include "hyperfleet-api.unknown" (dict "known" (get $known $key) "given" $value "path" $at) -}}
{{- else -}}
{{- $names := keys $known | sortAlpha -}}
{{- with include "hyperfleet-api.nearest" (list $key $names) }}
  {{ $at }}: did you mean {{ ternary . (printf "%s.%s" $path .) (empty $path) }}?
{{- else }}
  {{ $at }}: known here are {{ join ", " $names }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- else if and (kindIs "slice" $known) (kindIs "slice" .given) -}}
{{- $path := .path -}}
{{- range $index, $item := .given -}}
{{- include "hyperfleet-api.unknown" (dict "known" (first $known) "given" $item "path" (printf "%s[%d]" $path $index)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
