#!/bin/sh
# Creates the two databases of Temporal and updates their schemas. Run by docker-compose.yml at every start: existing databases and
# schemas stay, and a newer version of the image adds what it needs.
# temporal-sql-tool contains the schemas, and reads plugin, host, port, user and password from SQL_* variables. DBNAME and VISIBILITY_DBNAME
# name other databases, as for the server.
set -eu

prepare() {
  database=$1
  schema=$2
  temporal-sql-tool --database "$database" create-database
  temporal-sql-tool --database "$database" setup-schema --version 0.0
  temporal-sql-tool --database "$database" update-schema --schema-name "$schema"
}

prepare "${DBNAME:-temporal}" postgresql/v12/temporal
prepare "${VISIBILITY_DBNAME:-temporal_visibility}" postgresql/v12/visibility
