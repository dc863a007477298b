#!/bin/sh
# The kernel booted with what `tune --boot` printed: the doctor finds the core clean by what it counts there, and a
# polling core has hardly a tick, where it had $before in the first boot and core 0 has them still.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
before=$(sed -n 's/.*dropless\.ticks=\([0-9]*\).*/\1/p' /proc/cmdline)
[ "${before:-0}" -gt 0 ] || fail "the first boot's ticks are not on the kernel's command line (lab/boots.sh)"

code=0
dropless doctor --cores 1 --json >doctor.json 2>doctor.txt || code=$?
[ $code -le 1 ] || fail "doctor ended with $code"
for check in isolation tick rcu irq; do
    echo "$check: $(verdict $check doctor.json), $(says $check doctor.json)"
done
for check in isolation tick rcu; do
    [ "$(verdict $check doctor.json)" = good ] || fail "doctor judges $check as $(verdict $check doctor.json)"
done
# The same look at the other core, which this boot left alone.
dropless doctor --cores 0 --json >other.json 2>other.txt || [ $? -eq 1 ] || fail "doctor ended with $?"
[ "$(verdict isolation other.json)" = bad ] || fail "doctor judges core 0 as isolated"

dropless noise --cores 1 --threshold 100us --duration 4s --json >noise.json 2>noise.txt || fail "noise ended with $?"
dropless noise --cores 0 --threshold 100us --duration 2s --json >noise0.json 2>noise0.txt || fail "noise ended with $?"
ticks=$(ticks noise.json) other=$(ticks noise0.json)
echo "in 1000 s of polling: $before ticks in the first boot, $ticks here, $other here on core 0"
[ $((ticks * 20)) -le "$before" ] || fail "not a twentieth of the ticks"
[ $((ticks * 20)) -le "$other" ] || fail "not a twentieth of core 0's ticks"

for word in isolcpus nohz_full rcu_nocbs irqaffinity; do
    grep -q " $word=" /proc/cmdline || fail "booted without $word"
done
dropless tune --cores 1 --boot --json >boot.json 2>boot.txt || fail "tune --boot ended with $?"
# What is there already says so.
for word in isolcpus nohz_full rcu_nocbs irqaffinity; do
    there=$(sed -n "s/.*\"now\": \"\\($word=.*\\)\".*/\\1/p" boot.json)
    grep -q "\"text\": \"${there:-none}\"" boot.json || fail "tune --boot does not see that $word is there"
done
