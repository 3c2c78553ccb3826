{{- /* What pods of both have in common. */ -}}
{{- define "karpool.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "karpool.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "karpool.scheduling" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .root.Values.priorityClass.create }}
priorityClassName: {{ include "karpool.fullname" .root }}
{{- else if .root.Values.priorityClass.name }}
priorityClassName: {{ .root.Values.priorityClass.name }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .selector }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "karpool.selector" $.selector | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "karpool.notifyMount" -}}
{{- if .Values.notify.secretName }}
- name: notify
  mountPath: /etc/karpool/notify
  readOnly: true
{{- end }}
{{- end }}

{{- define "karpool.notifyVolume" -}}
{{- with .Values.notify }}
{{- if .secretName }}
- name: notify
  secret:
    secretName: {{ .secretName }}
    items:
      - key: {{ .secretKey }}
        path: url
{{- end }}
{{- end }}
{{- end }}
