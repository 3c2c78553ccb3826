{{- define "karpool.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Of the controller and of all it has; a release that is called like the chart is not said twice. */ -}}
{{- define "karpool.fullname" -}}
{{- $name := include "karpool.name" . }}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- .Values.fullnameOverride | default $default | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "karpool.compactor" -}}
{{- include "karpool.fullname" . }}-compactor
{{- end }}

{{- define "karpool.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
app.kubernetes.io/name: {{ include "karpool.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* What selects the pods of one of the two, `controller` or `compactor`. */ -}}
{{- define "karpool.selector" -}}
app.kubernetes.io/name: {{ include "karpool.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "karpool.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ printf "%s@%s" .repository .digest }}{{ else }}{{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}{{ end }}
{{- end }}
{{- end }}

{{- /* Options of a command as arguments: a switch that is off is left out, a list is given one by one. */ -}}
{{- define "karpool.options" -}}
{{- range $name, $value := . }}
{{- if kindIs "bool" $value }}
{{- if $value }}
- {{ printf "--%s" $name }}
{{- end }}
{{- else if kindIs "slice" $value }}
{{- range $value }}
- {{ printf "--%s=%v" $name . | quote }}
{{- end }}
{{- else }}
- {{ printf "--%s=%v" $name $value | quote }}
{{- end }}
{{- end }}
{{- end }}
