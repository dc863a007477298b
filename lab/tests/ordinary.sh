#!/bin/sh
# A kernel as Debian boots it: the doctor judges its timer, its RCU and its scheduler bad, and a polling core ticks.
# Ends by printing what the second boot is given (see lab/boots.sh).
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh

code=0
dropless doctor --cores 1 --json >doctor.json 2>doctor.txt || code=$?
[ $code -eq 1 ] || fail "doctor ended with $code"
for check in isolation tick rcu; do
    echo "$check: $(verdict $check doctor.json), $(says $check doctor.json)"
done
[ "$(verdict isolation doctor.json)" = bad ] || fail "doctor does not see that core 1 is not isolated"
for check in tick rcu; do
    # An idle core may pass one second without either.
    case $(verdict $check doctor.json) in bad | warning) ;; *) fail "doctor does not see $check" ;; esac
done

dropless noise --cores 1 --threshold 100us --duration 4s --json >noise.json 2>noise.txt || fail "noise ended with $?"
ticks=$(ticks noise.json)
echo "$ticks ticks in 1000 s of polling"
[ "$ticks" -gt 0 ] || fail "a polling core without ticks: this proves nothing"

dropless tune --cores 1 --boot --json >boot.json 2>boot.txt || fail "tune --boot ended with $?"
# Without the huge pages of 1 GiB: this guest has 3 GiB in all.
arguments=$(sed -n 's/.*"text": "\(.*\)".*/\1/p' boot.json | grep -v hugepages | tr '\n' ' ')
for word in isolcpus nohz_full rcu_nocbs irqaffinity; do
    case " $arguments" in *" $word="*) ;; *) fail "tune --boot does not say $word" ;; esac
done
# A module's parameter to the kernel, so it is let be: the second boot compares with it.
echo "second boot: ${arguments}dropless.ticks=$ticks"
