#!/bin/sh
# A loop that does not run although nobody took its core: a cgroup's quota, a stop. Idle is not the thief.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
cgroup=/sys/fs/cgroup/quota
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup

# stalls CAUSE RUNS: how many it is the largest part of.
stalls() { cat "$2"/*/gaps.csv | cut -d , -f 4 | grep -c -x "$1" || :; }

# A processor that is emulated stalls at will, and shortly.
noise='dropless noise --cores 1 --threshold 100us --json'
sh -c "echo \$\$ >$cgroup/cgroup.procs; exec $noise --duration 10m --runs quota" >quota.json 2>quota.txt &
# Only while it watches: all that it does before and behind that would take five times as long.
until_said watching quota.txt
echo '20000 100000' >$cgroup/cpu.max
sleep 3
echo max >$cgroup/cpu.max
kill -INT $!
wait $! || fail "noise failed below a quota"
rmdir $cgroup
throttled=$(stalls 'not runnable: cgroup quota' quota)
[ "$throttled" -gt 5 ] || fail "the quota is named $throttled times"

# By the number of stops and not by time, of which a busy host has as much as it likes.
$noise --duration 10m --runs stop >stop.json 2>stop.txt &
until_said watching stop.txt
for _ in $(seq 6); do
    kill -STOP $!
    sleep 0.3
    kill -CONT $!
    sleep 0.3
done
kill -INT $!
wait $! || fail "noise failed after it was stopped now and then"
stopped=$(stalls stopped stop)
[ "$stopped" -gt 2 ] || fail "the stop is named $stopped times"
! grep -q swapper ./*/*/gaps.csv || fail "idle is called a thief"
echo "throttled $throttled times, stopped $stopped times"
