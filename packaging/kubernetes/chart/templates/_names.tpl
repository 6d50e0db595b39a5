{{/* Names and labels. */}}

{{- define "genericdp.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Shorter than 63 characters, so that the name of a pool fits behind it. */}}
{{- define "genericdp.fullname" -}}
{{- $name := include "genericdp.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "genericdp.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "genericdp.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "genericdp.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "genericdp.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels of a release. They never change: selectors use them. */}}
{{- define "genericdp.selectorLabels" -}}
app.kubernetes.io/name: {{ include "genericdp.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "genericdp.labels" -}}
{{ include "genericdp.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels by which a DaemonSet finds its pods: no other one may find them. */}}
{{- define "genericdp.poolLabels" -}}
{{ include "genericdp.selectorLabels" .root }}
{{- if .pool }}
app.kubernetes.io/component: pool
genericdp.io/pool: {{ .pool.name }}
{{- else }}
app.kubernetes.io/component: node
{{- end }}
{{- end -}}
