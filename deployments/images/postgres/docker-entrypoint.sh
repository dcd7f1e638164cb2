#!/bin/bash
# Takes what the postgres image takes: POSTGRES_PASSWORD, _USER, _DB, _INITDB_ARGS (each also as …_FILE, a file with the
# value), POSTGRES_HOST_AUTH_METHOD, PGDATA, and /docker-entrypoint-initdb.d/*.sh, *.sql and *.sql.gz, which run once.
set -euo pipefail

# from_file NAME DEFAULT: NAME, or what the file NAME_FILE holds, or the default.
from_file() {
  local file=$1_FILE value=${!1-}
  if [ -n "$value" ] && [ -n "${!file-}" ]; then
    echo "error: both $1 and $file are set (but are exclusive)" >&2
    exit 1
  fi
  if [ -n "${!file-}" ]; then value=$(< "${!file}"); fi
  export "$1=${value:-$2}"
  unset "$file"
}

# give_up_root hands the folders to postgres and starts this script again as that user.
give_up_root() {
  mkdir -p "$PGDATA" /run/postgresql
  find "$PGDATA" \! -user postgres -exec chown postgres:postgres {} +
  chmod 700 "$PGDATA"
  chown postgres:postgres /run/postgresql
  chmod 3775 /run/postgresql
  export HOME=/var/lib/postgresql
  exec /usr/bin/setpriv --reuid=999 --regid=999 --clear-groups --inh-caps=-all -- "$0" "$@"
}

make_cluster() {
  local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256} password=()
  if [ -z "$POSTGRES_PASSWORD" ] && [ "$method" != trust ]; then
    echo "Error: Database is uninitialized and superuser password is not specified (POSTGRES_PASSWORD)." >&2
    exit 1
  fi
  [ -z "$POSTGRES_PASSWORD" ] || password=(--pwfile=/dev/stdin)
  eval 'printf "%s\n" "$POSTGRES_PASSWORD" | initdb --username="$POSTGRES_USER" "${password[@]}" '"$POSTGRES_INITDB_ARGS"
  printf '\nhost all all all %s\n' "$method" >> "$PGDATA/pg_hba.conf"
}

# first_steps runs what prepares a new cluster, on its socket only: over TCP nobody takes it for ready.
first_steps() {
  export PGUSER=$POSTGRES_USER PGPASSWORD=$POSTGRES_PASSWORD
  pg_ctl -D "$PGDATA" -o "-c listen_addresses='' ${*:2}" -w start
  [ "$POSTGRES_DB" = postgres ] || psql -v ON_ERROR_STOP=1 --no-psqlrc -d postgres -v db="$POSTGRES_DB" <<< 'create database :"db"'
  export PGDATABASE=$POSTGRES_DB
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    [ -e "$file" ] || continue
    echo "$0: running $file"
    case $file in
      *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
      *.sql) psql -v ON_ERROR_STOP=1 --no-psqlrc -f "$file" ;;
      *.sql.gz) gunzip -c "$file" | psql -v ON_ERROR_STOP=1 --no-psqlrc ;;
      *) echo "$0: ignoring $file" ;;
    esac
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
  unset PGUSER PGPASSWORD PGDATABASE
  printf '\nPostgreSQL init process complete; ready for start up.\n\n'
}

case ${1-} in -*) set -- postgres "$@" ;; esac
if [ "${1-}" = postgres ]; then
  from_file POSTGRES_PASSWORD ''
  from_file POSTGRES_USER postgres
  from_file POSTGRES_DB "$POSTGRES_USER"
  from_file POSTGRES_INITDB_ARGS ''
  [ "$(id -u)" != 0 ] || give_up_root "$@"
  if [ -s "$PGDATA/PG_VERSION" ]; then
    echo 'PostgreSQL Database directory appears to contain a database; Skipping initialization'
  else
    make_cluster
    first_steps "$@"
  fi
  unset POSTGRES_PASSWORD
fi
exec "$@"
