#!/bin/sh
# Debian 13 on another Debian: its Suricata 7, and its compilers and DPDK 24.11.
#
#   lab/debian13.sh             makes a root directory with Suricata 7 in it, which Debian 12 does not have; prints where it lies
#   lab/debian13.sh COMMAND...  runs a command in a copy of this tree, in a root directory of Debian 13 where it installs what it
#                               needs, as: lab/debian13.sh ./dev demo
#
# The packages come through this machine's own Debian mirror. The roots lie under ${XDG_CACHE_HOME:-~/.cache}/dropless and are
# made once, and what was built stays in them; remove the directory to have it made anew. Needs root.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lab/mirror.sh
. lab/mirror.sh

ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || fail "the mirror is taken from Debian's apt sources, and this is ${ID:-unknown}"
[ "$(id -u)" -eq 0 ] || fail "making a root directory takes root"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: ./dev setup installs it"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/dropless

# make ROOT ARGUMENTS...: a root directory of Debian 13, unless it is there.
make() {
    root=$1
    shift
    [ ! -e "$root/complete" ] || return 0
    mirror=$(mirror)
    mkdir -p "$cache"
    rm -rf "$root"
    # What only a person reads takes a third of the space.
    mmdebstrap --quiet "$@" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' trixie "$root" "deb $mirror trixie main" >&2 ||
        fail "cannot make a root directory of Debian 13 from $mirror"
    touch "$root/complete"
}

if [ $# -eq 0 ]; then
    make "$cache/debian13" --variant=essential --include=suricata
    echo "$root"
    exit
fi

make "$cache/debian13-build" --variant=minbase --include=ca-certificates,git
tree=$root/dropless
mkdir -p "$tree"
# What git knows or would know, as it is now; what was built there stays.
find "$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -C "$tree" -xf -
# Names and certificates as this machine has them.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
# Mounts of its own go with it.
# shellcheck disable=SC2016 # the inner shell fills these in
exec unshare --mount --propagation private sh -eu -c '
    root=$1
    shift
    # A mount point, so that what is run there can have mounts of its own.
    mount --bind "$root" "$root"
    for from in /dev /proc /sys; do mount --rbind "$from" "$root$from"; done
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs tmpfs "$root/tmp"
    exec env -i HOME=/root TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        chroot "$root" sh -c '\''cd /dropless && exec "$@"'\'' sh "$@"
' sh "$root" "$@"
