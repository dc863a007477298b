#!/bin/sh
# Makes a root directory of Debian 13 with Suricata 7 in it, which Debian 12 does not have; prints where it lies.
#
# The packages come through this machine's own Debian mirror. The root lies under ${XDG_CACHE_HOME:-~/.cache}/dropless
# and is made once; remove the directory to have it made anew. Needs root.
set -eu
# shellcheck source=lab/mirror.sh
. "$(dirname "$0")/mirror.sh"

ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || fail "the mirror is taken from Debian's apt sources, and this is ${ID:-unknown}"
[ "$(id -u)" -eq 0 ] || fail "making a root directory takes root"
command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: ./dev setup installs it"

cache=${XDG_CACHE_HOME:-$HOME/.cache}/dropless
root=$cache/debian13
if [ ! -e "$root/complete" ]; then
    mirror=$(mirror)
    mkdir -p "$cache"
    rm -rf "$root"
    # What only a person reads takes a third of the space.
    mmdebstrap --quiet --variant=essential --include=suricata \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' trixie "$root" "deb $mirror trixie main" >&2 ||
        fail "cannot make a root directory of Debian 13 from $mirror"
    touch "$root/complete"
fi
echo "$root"
