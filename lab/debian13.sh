#!/bin/sh
# Debian 13 on another Debian: its Suricata 7, and its compilers and DPDK 24.11.
#
#   lab/debian13.sh             makes a root directory with Suricata 7 in it, which Debian 12 does not have; prints where it lies
#   lab/debian13.sh COMMAND...  runs a command in a copy of this tree, in a root directory of Debian 13 where it installs what it
#                               needs, as: lab/debian13.sh ./dev demo
#
# The packages come through this machine's own Debian mirror; lab/lib.sh says where the roots lie. Needs root.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lab/lib.sh
. lab/lib.sh

ID='' VERSION_CODENAME=''
# shellcheck source=/dev/null
. /etc/os-release
[ "$ID" = debian ] || fail "the mirror is taken from Debian's apt sources, and this is ${ID:-unknown}"
mirror="deb $(mirror) trixie main"

if [ $# -eq 0 ]; then
    make_root debian13 trixie "$mirror" --variant=essential --include=suricata
    echo "$root"
    exit
fi

make_root debian13-build trixie "$mirror" --variant=minbase --include=ca-certificates,git
run_in_root "$@"
