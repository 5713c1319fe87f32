#!/bin/sh
# Does what /etc/temporal/entrypoint.sh of the official image does. The server has the template of its configuration inside.
set -eu

: "${BIND_ON_IP:=$(getent hosts "$(hostname)" | awk '{print $1;}')}"
export BIND_ON_IP
if [ "$BIND_ON_IP" = 0.0.0.0 ] || [ "$BIND_ON_IP" = ::0 ]; then
  : "${TEMPORAL_BROADCAST_ADDRESS:=$(getent hosts "$(hostname)" | awk '{print $1;}')}"
  export TEMPORAL_BROADCAST_ADDRESS
fi
exec temporal-server start
