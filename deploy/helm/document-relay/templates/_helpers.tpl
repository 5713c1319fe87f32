{{- define "relay.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "relay.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of one component, with the labels that select its pods. Takes the root and the name of the component. */}}
{{- define "relay.componentLabels" -}}
{{ include "relay.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "relay.selectorLabels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Build id of the workers, for worker versioning: that of the variables, or the tag of the image. Empty without versioning. */}}
{{- define "relay.workerBuildId" -}}
{{- if .Values.config.TEMPORAL_WORKER_BUILD_ID -}}
{{- .Values.config.TEMPORAL_WORKER_BUILD_ID -}}
{{- else if .Values.worker.versioning -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}
{{- end -}}

{{- define "relay.env" -}}
{{- range $name, $value := .Values.config }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- if not .Values.config.TEMPORAL_WORKER_BUILD_ID }}
{{- with include "relay.workerBuildId" . }}
- name: TEMPORAL_WORKER_BUILD_ID
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- range $name, $secret := .Values.secrets }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name }}
      key: {{ $secret.key | default $name }}
{{- end }}
{{- end -}}

{{/* Start of the specification of every pod. */}}
{{- define "relay.podSpec" -}}
automountServiceAccountToken: false
# Else a Service with the name "relay" in the same namespace would set RELAY_PORT.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  # The user "node" of the image.
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Start of every container. */}}
{{- define "relay.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  {{- include "relay.env" . | trim | nindent 2 }}
{{- end -}}

{{/* Probes of a process that starts or runs. It restarts if it does not answer. */}}
{{- define "relay.livenessProbes" -}}
startupProbe:
  httpGet:
    path: /healthz
    port: probes
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /healthz
    port: probes
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{/* The only directory that can be written to, and the volumes of the values. */}}
{{- define "relay.volumeMounts" -}}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "relay.volumes" -}}
volumes:
  - name: tmp
    emptyDir:
      sizeLimit: 256Mi
  {{- with .Values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Seconds that a removed API pod goes on accepting requests, until every load balancer has noticed. */}}
{{- define "relay.drainSeconds" -}}5{{- end -}}

{{/*
Seconds until Kubernetes kills a pod that stops: the time for load balancers to notice, the time that running requests and attempts have,
the time for sending the last spans, and ten seconds for closing connections.
*/}}
{{- define "relay.terminationGracePeriodSeconds" -}}
{{- $grace := add (int (.Values.config.RELAY_DRAIN_MS | default "0")) (int (.Values.config.RELAY_SHUTDOWN_GRACE_MS | default "10000")) -}}
{{- $spans := int (.Values.config.OTEL_EXPORTER_OTLP_TIMEOUT | default "10000") -}}
{{- add (int (include "relay.drainSeconds" .)) (div (add $grace $spans 999) 1000) 10 -}}
{{- end -}}

{{/* Spreads the pods of a component over nodes and zones. Takes the root and the name of the component. */}}
{{- define "relay.topologySpread" -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "relay.selectorLabels" $ | nindent 6 }}
{{- end }}
{{- end -}}
