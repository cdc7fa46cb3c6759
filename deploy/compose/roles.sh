#!/bin/sh
# Run once by the image of PostgreSQL: the role that Sapa runs as, which does not own the tables.
set -eu
psql --set=password="$SAPA_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'END'
CREATE ROLE sapa_app LOGIN PASSWORD :'password';
END
