#!/bin/sh
# Fetches what the virtual machine is made of (QEMU, a kernel, busybox) without installing it; prints where it lies.
#
# The packages come through this machine's own Debian mirror, into an apt state of our own under
# ${XDG_CACHE_HOME:-~/.cache}/dropless/vm, so no root is needed and the system's apt stays as it is.
set -eu

# shellcheck source=lab/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || fail "the virtual machine is for x86_64, this is $(uname -m)"
ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || fail "the virtual machine is made of Debian packages, and this is ${ID:-unknown}"

cache=$cache/vm/$VERSION_CODENAME
root=$cache/root
lock "$cache"
if [ -e "$cache/complete" ]; then
    echo "$root"
    exit 0
fi

# QEMU has the igb card since 8.0, and Debian 12 only among its backports.
suites="$VERSION_CODENAME $VERSION_CODENAME-updates" qemu_suite=$VERSION_CODENAME
if [ "$VERSION_CODENAME" = bookworm ]; then
    qemu_suite=bookworm-backports
    suites="$suites $qemu_suite"
fi

mirror=$(mirror)

mkdir -p "$cache/lists/partial" "$cache/archives/partial" "$root"
for suite in $suites; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$cache/sources.list"
cat >"$cache/apt.conf" <<END
Dir::State::lists "$cache/lists";
Dir::Cache "$cache";
Dir::Etc::sourcelist "$cache/sources.list";
Dir::Etc::sourceparts "-";
Debug::NoLocking "true";
APT::Sandbox::User "$(id -un)";
END
export APT_CONFIG="$cache/apt.conf"
apt-get -qq update || fail "cannot read the package lists of $mirror"
# QEMU with those of its libraries that this machine lacks; of the kernel nothing but its own package.
apt-get -qq -y --no-install-recommends --download-only --reinstall -t "$qemu_suite" install qemu-system-x86 >&2 ||
    fail "cannot download QEMU from $mirror"
kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p' | head -n 1)
(cd "$cache/archives" && apt-get -qq download busybox-static "$kernel") || fail "cannot download a kernel from $mirror"
for package in "$cache"/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
rm -rf "$cache/archives"
touch "$cache/complete"
echo "$root"
