#!/usr/bin/env bash
# build.sh: the image feira-postgres:MAJOR from the newest Postgres that is installed here. `build.sh --major` prints
# which that is.
. "$(dirname "$0")/../functions.sh"

config=$( { ls -d /usr/lib/postgresql/*/bin/pg_config 2>/dev/null | sort -V; command -v pg_config; } | while read -r c; do
  if [ -x "$("$c" --bindir)/postgres" ]; then echo "$("$c" --version | tr -dc '0-9.' | cut -d. -f1) $c"; fi
done | sort -n | tail -1 | cut -d' ' -f2)
[ -n "$config" ] || fail "no Postgres server with its pg_config is installed; on Debian: apt-get install postgresql"
major=$("$config" --version | tr -dc '0-9.' | cut -d. -f1)
if [ "${1-}" = --major ]; then echo "$major"; exit; fi
need busybox busybox-static
need setpriv util-linux

here=$images/postgres
programs=$("$config" --bindir) modules=$("$config" --pkglibdir) shared=$("$config" --sharedir)
inputs=$({ "$config" --version; cat "$programs/postgres" "$images"/*.sh "$(command -v busybox)" "$here"/*; } | sha256sum | cut -c-64)
if current "feira-postgres:$major" "$inputs"; then exit; fi

stage=$work/postgres root=$work/postgres/root
rm -rf "$stage"
mkdir -p "$root$(dirname "$shared")" "$root/usr/share" "$root/usr/lib/locale" "$root/docker-entrypoint-initdb.d" "$root/var/lib/postgresql"
wanted=()
for program in postgres initdb pg_ctl psql pg_isready pg_dump pg_restore pg_basebackup pg_controldata pgbench createdb dropdb createuser; do
  [ ! -x "$programs/$program" ] || wanted+=("$programs/$program")
done
mapfile -t libraries < <(find "$modules" -maxdepth 1 -name '*.so' ! -name 'llvmjit*')
"$images/rootfs.sh" "$root" /bin/bash /usr/bin/setpriv "${wanted[@]}" "${libraries[@]}"
mkdir -p "$root/run/postgresql"

cp -a "$shared" "$root$shared"
rm -rf "$root$shared/man"
sed -i "s/^#\?listen_addresses = .*/listen_addresses = '*'/" "$root$shared/postgresql.conf.sample" # else only itself
cp -aL /usr/share/zoneinfo "$root/usr/share/"
cp -a /usr/lib/locale/C.* "$root/usr/lib/locale/"
printf 'root:x:0:0:root:/root:/bin/bash\npostgres:x:999:999::/var/lib/postgresql:/bin/bash\n' > "$root/etc/passwd"
printf 'root:x:0:\npostgres:x:999:\n' > "$root/etc/group"
install -m 755 "$here/docker-entrypoint.sh" "$root/usr/local/bin/"
cp "$here/Dockerfile" "$stage/"

build "feira-postgres:$major" "$inputs" "$stage" --build-arg VERSION="$("$config" --version | cut -d' ' -f2)" \
  --build-arg MAJOR="$major" --build-arg PROGRAMS="$programs"
rm -rf "$stage"
