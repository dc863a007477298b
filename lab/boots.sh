#!/bin/sh
# Every test of the virtual machine, in two boots: one as Debian has it, then one with the kernel arguments that
# `dropless tune --boot` printed in the first.
#
#   lab/boots.sh PROGRAM
set -eu
lab=$(cd "$(dirname "$0")" && pwd)
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

{ "$lab/vm.sh" -f "$program" "$lab"/tests/*.sh || echo $? >"$work/code"; } | tee "$work/said"
# Booted once more where the emulator hung, it says so once more.
arguments=$(tr -d '\r' <"$work/said" | sed -n 's/^second boot: //p' | tail -n 1)
if [ -z "$arguments" ]; then
    echo "lab: the first boot did not say how to boot again"
    echo "test result: FAILED. 0 passed; 1 failed; 0 ignored"
    exit 1
fi
echo "== booting again with $arguments"
"$lab/vm.sh" -f "$program" -a "$arguments" "$lab"/tests/isolated/*.sh || echo $? >"$work/code"
[ ! -e "$work/code" ] || exit "$(cat "$work/code")"
