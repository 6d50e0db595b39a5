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
{{- if $root.Values.metrics.enabled -}}
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
{{- $needed = concat $needed (list "metrics" "metrics.enabled" "metrics.port" "image" "image.repository" "hostPaths") -}}
{{- range list "devicePlugins" "podResources" "links" "state" "udev" "cdi" "rules" "runtime" -}}
{{- $needed = append $needed (printf "hostPaths.%s" .) -}}
{{- end -}}
{{- if (.Values.resourceQuota).enabled -}}
{{- $needed = concat $needed (list "resourceQuota.pods" "priorityClassName") -}}
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

{{- define "genericdp.address" -}}
{{- if .Values.metrics.address -}}
{{- .Values.metrics.address -}}
{{- else if or (.Values.podMonitor).enabled (not .Values.hostNetwork) -}}
0.0.0.0
{{- else -}}
127.0.0.1
{{- end -}}
{{- end -}}

{{/* Where processes of the node reach the daemon. */}}
{{- define "genericdp.reachableAddress" -}}
{{- $address := include "genericdp.address" . -}}
{{- get (dict "0.0.0.0" "127.0.0.1" "[::]" "::1") $address | default (trimAll "[]" $address) -}}
{{- end -}}

{{/* A probe: as it is written, or with a question to the daemon. The kubelet is in the network of the host. */}}
{{- define "genericdp.probe" -}}
{{- $probe := .probe -}}
{{- if or $probe.httpGet $probe.exec $probe.grpc $probe.tcpSocket -}}
{{ toYaml $probe }}
{{- else -}}
httpGet:
  {{- if .root.Values.hostNetwork }}
  host: {{ include "genericdp.reachableAddress" .root | quote }}
  {{- end }}
  port: {{ .root.Values.metrics.port }}
  path: {{ .path }}
{{ toYaml $probe }}
{{- end -}}
{{- end -}}
