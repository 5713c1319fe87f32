#!/bin/sh
# Does what the entrypoint of the official image of PostgreSQL does with the variables and folders that docker-compose.yml uses.
set -eu

if [ "$(id -u)" = 0 ]; then
  install -d -m 700 -o postgres -g postgres "$PGDATA"
  exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf '%s' "$POSTGRES_PASSWORD" >/tmp/password
  initdb --encoding UTF8 --username postgres --pwfile /tmp/password --pgdata "$PGDATA"
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  # Until the scripts have run, nothing can connect from outside.
  pg_ctl --pgdata "$PGDATA" --options "-c listen_addresses=''" --wait start
  for script in /docker-entrypoint-initdb.d/*.sql; do
    psql -v ON_ERROR_STOP=1 --username postgres --no-password --no-psqlrc --dbname postgres --file "$script"
  done
  pg_ctl --pgdata "$PGDATA" --mode fast --wait stop
fi

exec "$@"
