#!/bin/sh
# A loop that does not run although nobody took its core: a cgroup's quota, a stop. Idle is not the thief.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
cgroup=/sys/fs/cgroup/quota
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir $cgroup
echo '20000 100000' >$cgroup/cpu.max

# stalls CAUSE RUNS: how many it is the largest part of.
stalls() { cat "$2"/*/gaps.csv | cut -d , -f 4 | grep -c -x "$1" || :; }

# A processor that is emulated stalls at will, and shortly.
noise='dropless noise --cores 1 --threshold 100us --json --quiet'
sh -c "echo \$\$ >$cgroup/cgroup.procs; exec $noise --duration 3s --runs quota" >quota.json 2>quota.txt || fail "noise failed below a quota"
rmdir $cgroup
throttled=$(stalls 'not runnable: cgroup quota' quota)
[ "$throttled" -gt 5 ] || fail "the quota is named $throttled times"

$noise --duration 3s --runs stop >stop.json 2>stop.txt &
# Longer than it runs, whenever it begins to watch; it is over when this shell has no such child any more. What is stopped
# while it ends does not stop, and may be gone before it is to go on.
for _ in $(seq 40); do
    kill -STOP $! || break
    sleep 0.3
    kill -CONT $! || break
    sleep 0.3
done
wait $! || fail "noise failed while it was stopped now and then"
stopped=$(stalls stopped stop)
[ "$stopped" -gt 2 ] || fail "the stop is named $stopped times"
! grep -q swapper ./*/*/gaps.csv || fail "idle is called a thief"
echo "throttled $throttled times, stopped $stopped times"
