#!/usr/bin/env bash
# rootfs.sh DIR FILE…: fills DIR with each program or library FILE, with every library that it needs, at the same
# paths, and with busybox for the small commands of shell scripts. DIR is then what an image starts FROM scratch with.
set -euo pipefail

root=$1
shift

mkdir -p "$root"/{bin,dev,etc,lib,proc,root,run,sbin,sys,usr/bin,usr/lib,usr/local/bin,var}
install -d -m 1777 "$root/tmp" "$root/var/tmp"
ln -sfn /run "$root/var/run"

# The libraries of the machine's own architecture lie where bash's are.
libraries=$(dirname "$(ldd /bin/bash | awk '/libc\.so\.6/ {print $3}')")

needed() { # what ldd resolves, the loader included
  for file in "$@"; do ldd "$file" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}'; done
}

# What glibc opens by its name only: names of users and hosts.
by_name=("$libraries"/libnss_files.so.2 "$libraries"/libnss_dns.so.2 "$libraries"/libresolv.so.2)

copy=("$@")
for file in "${by_name[@]}"; do [ ! -e "$file" ] || copy+=("$file"); done
{ printf '%s\n' "${copy[@]}"; needed "${copy[@]}"; } | sort -u | while read -r file; do
  mkdir -p "$root$(dirname "$file")"
  cp -L --preserve=mode,timestamps "$file" "$root$file"
done

busybox=$(command -v busybox)
cp -L "$busybox" "$root/bin/busybox"
for command in $("$busybox" --list); do
  [ -e "$root/bin/$command" ] || [ "$command" = bash ] || ln -s busybox "$root/bin/$command"
done
ln -sfn /bin/env "$root/usr/bin/env"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' > "$root/etc/nsswitch.conf"
