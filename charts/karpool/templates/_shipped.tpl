{{- /*
The objects of a file of deploy/, in which a release has names, namespace, labels and service account of its own. So roles and
policies are written once. `app` and `space` are the name and the namespace that the file uses, `name` is that of the release.
*/ -}}
{{- define "karpool.shipped" -}}
{{- $root := .root }}{{ $app := .app }}{{ $space := .space }}{{ $name := .name }}
{{- $text := required (printf "the chart lacks files/%s" .file) ($root.Files.Get (printf "files/%s" .file)) }}
{{- $account := printf "system:serviceaccount:%s:%s" $root.Release.Namespace $name }}
{{- range splitList "\n---\n" ($text | replace (printf "system:serviceaccount:%s:%s" $space $app) $account) }}
{{- $object := fromYaml . }}
{{- if and $object (ne $object.kind "Namespace") }}
{{- $metadata := $object.metadata }}
{{- $_ := set $metadata "name" (printf "%s%s" $name (trimPrefix $app $metadata.name)) }}
{{- $_ := set $metadata "labels" (include "karpool.labels" $root | fromYaml) }}
{{- if eq (get $metadata "namespace") $space }}{{ $_ := set $metadata "namespace" $root.Release.Namespace }}{{ end }}
{{- with $object.roleRef }}{{ $_ := set . "name" (printf "%s%s" $name (trimPrefix $app .name)) }}{{ end }}
{{- range $object.subjects }}
{{- $_ := set . "name" $name }}
{{- $_ := set . "namespace" $root.Release.Namespace }}
{{- end }}
{{- range $object.rules }}
{{- $rule := . }}
{{- with .resourceNames }}
{{- $own := list }}
{{- range . }}
{{- $own = append $own (eq . $app (printf "%s-config" $app) | ternary (printf "%s%s" $name (trimPrefix $app .)) .) }}
{{- end }}
{{- $_ := set $rule "resourceNames" $own }}
{{- end }}
{{- end }}
{{- with $object.spec }}
{{- if .policyName }}{{ $_ := set . "policyName" (printf "%s%s" $name (trimPrefix $app .policyName)) }}{{ end }}
{{- end }}
---
{{ toYaml $object }}
{{ end }}
{{- end }}
{{- end }}

{{- /* The same for one of the two: `controller` or `compactor`. */ -}}
{{- define "karpool.ofController" -}}
{{- include "karpool.shipped" (dict "root" .root "file" .file "app" "karpool" "space" "karpool" "name" (include "karpool.fullname" .root)) }}
{{- end }}

{{- define "karpool.ofCompactor" -}}
{{- include "karpool.shipped" (dict "root" .root "file" .file "app" "estafette-k8s-node-compactor" "space" "estafette" "name" (include "karpool.compactor" .root)) }}
{{- end }}
