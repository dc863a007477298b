#!/bin/sh
# compare over the user's own pair of NICs: every trial comes back, and the way is one to choose.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
near=$1 far=$2

pcibind vfio-pci "$near" "$far" || fail "binding failed"
code=0
dropless compare --cores 0,1 --methods ports --near-port "pci:$near" --far-port "pci:$far" --rates 500pps \
    --latency-rate 500pps --duration 1s --trials 1 --json >compare.json 2>compare.txt || code=$?
[ "$code" -eq 0 ] || fail "compare ended with $code"
grep -q '"missing": null' compare.json || fail "the ports were not compared"
grep -q "\"method\": \"ports\"" compare.json || fail "the ports are not recommended"
grep -q "\"link\": \"pci:$near and pci:$far\"" compare.json || fail "the ports are not named"
pcibind default "$near" "$far"
