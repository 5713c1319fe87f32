#!/bin/sh
# Creates the namespace TEMPORAL_NAMESPACE, unless it exists. Run by docker-compose.yml at every start. The CLI reads TEMPORAL_ADDRESS.
set -eu

# The server accepts connections before it answers.
attempts=60
until temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" ||
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 72h; do
  attempts=$((attempts - 1))
  if [ "$attempts" -eq 0 ]; then
    echo 'Temporal has not created the namespace.' >&2
    exit 1
  fi
  sleep 2
done
