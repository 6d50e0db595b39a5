{{/* What the pods of the DaemonSets and those of `helm test` have in common. */}}

{{- define "genericdp.pod" -}}
{{- with .root.Values.imagePullSecrets | default (.root.Values.global).imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
serviceAccountName: {{ include "genericdp.serviceAccountName" .root }}
automountServiceAccountToken: {{ .root.Values.automountServiceAccountToken | default false }}
enableServiceLinks: false
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .each.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .each.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .each.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .root.Values.hostNetwork }}
# udev's events do not reach other network namespaces.
hostNetwork: true
{{- end }}
dnsPolicy: {{ .root.Values.dnsPolicy | default (.root.Values.hostNetwork | ternary "ClusterFirstWithHostNet" "ClusterFirst") }}
{{- with .root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "genericdp.container" -}}
image: {{ include "genericdp.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- if .Values.usbReset }}
  {{- $context := omit .Values.securityContext "allowPrivilegeEscalation" "capabilities" }}
  {{- toYaml (merge (dict "privileged" true) $context) | nindent 2 }}
  {{- else }}
  {{- toYaml .Values.securityContext | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "genericdp.configVolumes" -}}
- name: rules
  configMap:
    name: {{ .rulesName }}
    {{- if not .existing }}
    optional: true
    {{- end }}
- name: settings
  configMap:
    name: {{ .name }}-settings
{{- end -}}
