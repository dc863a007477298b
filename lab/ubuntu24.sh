#!/bin/sh
# Ubuntu 24.04 on a Debian: its compilers and DPDK 23.11.
#
#   lab/ubuntu24.sh COMMAND...  runs a command in a copy of this tree, in a root directory of Ubuntu 24.04 where it installs
#                               what it needs, as: lab/ubuntu24.sh ./dev demo
#
# The packages come from mmdebstrap's own mirror of Ubuntu, signed by lab/ubuntu-archive.asc, that archive's key of 2018
# (F6ECB3762474EDA9D21B7022871920D1991BC93C); lab/lib.sh says where the root lies. Needs root.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=lab/lib.sh
. lab/lib.sh

[ $# -gt 0 ] || fail "usage: lab/ubuntu24.sh COMMAND..., as: lab/ubuntu24.sh ./dev demo"
make_root ubuntu24-build noble --variant=minbase --components=main,universe --keyring=lab/ubuntu-archive.asc \
    --include=apt,ca-certificates,git
run_in_root "$@"
