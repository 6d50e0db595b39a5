{{/*
The values of each DaemonSet: of one for all nodes, or of one for each pool.

genericdp.pools returns YAML: {"all": [{"pool": …, "name": …, "rules": …, …}]}.
*/}}

{{- define "genericdp.pools" -}}
{{- include "genericdp.needed" . -}}
{{- $root := . -}}
{{- $all := list -}}
{{- $seen := dict -}}
{{- range $pool := .Values.pools | default (list dict) -}}
{{- if hasKey $seen ($pool.name | default "") -}}
{{- fail (printf "two pools have the name %q: give each pool a name of its own" $pool.name) -}}
{{- end -}}
{{- $_ := set $seen ($pool.name | default "") true -}}
{{- $name := include "genericdp.fullname" $root -}}
{{- if $pool.name -}}
{{- $name = printf "%s-%s" $name $pool.name -}}
{{- end -}}
{{- $values := include "genericdp.merged" (list $root.Values $pool) | fromJson -}}
{{- $rules := include "genericdp.merged" (list $root.Values.rules $pool.rules) | fromJson -}}
{{- $existing := $values.existingConfigMap -}}
{{- if and $rules $existing -}}
{{- fail (printf "%s has both rules and existingConfigMap (%s): move the rules into that ConfigMap, or remove existingConfigMap" $name $existing) -}}
{{- end -}}
{{- $settings := include "genericdp.merged" (list $root.Values.settings $pool.settings) | fromJson -}}
{{- $_ := set $settings "domain" $values.domain -}}
{{- if include "genericdp.servesMetrics" $root -}}
{{- $_ := set $settings "metrics" (printf "%s:%v" (include "genericdp.address" $root) $root.Values.metrics.port) -}}
{{- end -}}
{{- if ne $root.Values.hostPaths.links "/dev/genericdp" -}}
{{- $_ := set $settings "link_dir" $root.Values.hostPaths.links -}}
{{- end -}}
{{- $all = append $all (dict
  "pool" $pool
  "name" $name
  "rules" $rules
  "rulesName" ($existing | default (printf "%s-rules" $name))
  "existing" $existing
  "settings" $settings
  "nodeSelector" (include "genericdp.merged" (list $root.Values.nodeSelector $pool.nodeSelector) | fromJson)
  "affinity" $values.affinity
  "tolerations" $values.tolerations
) -}}
{{- end -}}
{{- dict "all" $all | toYaml -}}
{{- end -}}

{{/*
The keys of all maps in a list, as JSON; the last map that gives a key a value decides. An empty value is one, and null is
none. Sprig's merge takes an empty value for none.
*/}}
{{- define "genericdp.merged" -}}
{{- $merged := dict -}}
{{- range $map := . -}}
{{- range $key, $value := $map -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $merged $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $merged -}}
{{- end -}}

{{/*
null removes a default. What is off or empty by default, and what Kubernetes defines, may be null. Of anything else, nobody
can tell what null is to mean: it may be a key whose values were commented out.
*/}}
{{- define "genericdp.needed" -}}
{{- $values := .Values -}}
{{- $needed := list "domain" "cdi" "hostNetwork" "securityContext" "serviceAccount" "serviceAccount.create" -}}
{{- $needed = concat $needed (list "image" "image.repository" "hostPaths") -}}
{{- range list "devicePlugins" "podResources" "links" "state" "udev" "cdi" "rules" "runtime" -}}
{{- $needed = append $needed (printf "hostPaths.%s" .) -}}
{{- end -}}
{{- if (.Values.resourceQuota).enabled -}}
{{- $needed = concat $needed (list "resourceQuota.pods" "priorityClassName") -}}
{{- end -}}
{{- if include "genericdp.servesMetrics" . -}}
{{- $needed = concat $needed (list "metrics" "metrics.port") -}}
{{- end -}}
{{- range $path := $needed -}}
{{- $at := $values -}}
{{- range splitList "." $path -}}
{{- $at = get $at . -}}
{{- end -}}
{{- if eq (toString $at) "" -}}
{{- fail (printf "%s has no value: give it one, or remove it from your values to get the default" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* genericdp.toml. In TOML, a string is written as in JSON. */}}
{{- define "genericdp.settings" -}}
{{- range $key, $value := . }}
{{ $key }} = {{ $value | toJson }}
{{- end }}
{{- end -}}

{{/* "true", or "" without metrics. */}}
{{- define "genericdp.servesMetrics" -}}
{{- if or (.Values.metrics).enabled (.Values.podMonitor).enabled -}}
true
{{- end -}}
{{- end -}}

{{- define "genericdp.address" -}}
{{- if .Values.metrics.address -}}
{{- .Values.metrics.address -}}
{{- else if or (.Values.podMonitor).enabled (not .Values.hostNetwork) -}}
0.0.0.0
{{- else -}}
127.0.0.1
{{- end -}}
{{- end -}}

{{/* A probe: as it is written, or with a question over the control socket, which only root can reach. */}}
{{- define "genericdp.probe" -}}
{{- $probe := .probe -}}
{{- if and (or $probe.httpGet $probe.tcpSocket) (not (include "genericdp.servesMetrics" .root)) -}}
{{- fail (printf "%s asks over the network, but nothing listens there: set metrics.enabled, or remove httpGet and tcpSocket" .name) -}}
{{- end -}}
{{- if or $probe.httpGet $probe.exec $probe.grpc $probe.tcpSocket -}}
{{ toYaml $probe }}
{{- else -}}
exec:
  command:
    - /usr/bin/genericdp
    - probe
    - {{ .asks }}
{{ toYaml $probe }}
{{- end -}}
{{- end -}}
