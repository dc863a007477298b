#!/bin/sh
# tune on a kernel of its own: a card changes its driver, a core belongs to a run's worker alone, and after undo
# everything is as it was, also where tune was killed on the way.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
near=$1 group=/sys/fs/cgroup/dropless journal=/var/lib/dropless/tune.journal

driver() { basename "$(readlink "/sys/bus/pci/devices/$near/driver")"; }

# What tune may change, but for single interrupts: a card that was bound anew has new ones.
state() {
    driver
    cat "/sys/bus/pci/devices/$near/driver_override" /proc/irq/default_smp_affinity /sys/fs/cgroup/cgroup.subtree_control \
        /sys/devices/virtual/workqueue/cpumask /sys/kernel/mm/transparent_hugepage/enabled
    ls -d $group 2>/dev/null || :
    cd /proc/sys
    for value in kernel/watchdog kernel/nmi_watchdog kernel/watchdog_cpumask kernel/timer_migration kernel/numa_balancing \
        kernel/sched_rt_runtime_us vm/stat_interval vm/compaction_proactiveness vm/nr_hugepages; do
        [ ! -r $value ] || echo "$value $(cat $value)"
    done
    cd - >/dev/null
}

tune() {
    code=0
    dropless tune --cores 1 --nic "pci:$near" --apply >"$1" 2>&1 || code=$?
    [ $code -le 1 ] || fail "tune ended with $code"
}

restored() {
    dropless tune --undo >undone.txt 2>&1 || fail "undo ended with $?"
    state >after.txt
    cmp before.txt after.txt || fail "undo did not restore everything"
}

state >before.txt

echo "== the card is bound, and the core is a partition of its own"
dropless tune --cores 1 --nic "pci:$near" >planned.txt 2>&1 || fail "the plan ended with $?"
state >planned-state.txt
cmp before.txt planned-state.txt || fail "a plan changes things"
tune applied.txt
cat applied.txt
[ "$(driver)" = vfio-pci ] || fail "$near is on $(driver)"
[ "$(cat $group/cpuset.cpus.partition)" = isolated ] || fail "partition: $(cat $group/cpuset.cpus.partition)"

echo "== the doctor knows that the core is isolated"
dropless doctor --cores 1 --watch 0 --json >doctor.json 2>doctor.txt || [ $? -eq 1 ] || fail "doctor ended with $?"
[ "$(verdict isolation doctor.json)" = good ] || fail "doctor: $(says isolation doctor.json)"

echo "== a run's worker is in the partition, its control thread is not"
dropless send --cores 1 --rate 1kpps --duration 60s --json >send.json 2>send.txt &
run=$!
tries=0
until grep -q . $group/cgroup.threads; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "no worker came into the partition"
    sleep 0.1
done
# The control thread visits before it starts the worker.
sleep 3
inside=$(while read -r thread; do cat "/proc/$run/task/$thread/comm"; done <$group/cgroup.threads)
echo "in the partition: $inside"
[ "$inside" = dropless-1 ] || fail "not the worker alone is in the partition"
kill -INT $run
wait $run || echo "the run ended with $?"
[ "$(number sent send.json)" -gt 0 ] || fail "nothing was sent"

echo "== undo restores everything"
restored
cat undone.txt

echo "== the kernel command line is a drop-in that goes again"
mkdir -p /etc/default/grub.d
dropless tune --cores 1 --boot --write >boot.txt 2>&1 || fail "--boot --write ended with $?"
GRUB_CMDLINE_LINUX_DEFAULT=quiet
# shellcheck source=/dev/null
. /etc/default/grub.d/99-dropless.cfg
case $GRUB_CMDLINE_LINUX_DEFAULT in
'quiet isolcpus=managed_irq,domain,1 '*) ;;
*) fail "the drop-in makes $GRUB_CMDLINE_LINUX_DEFAULT" ;;
esac
restored
[ "$(ls -A /etc/default/grub.d)" = "" ] || fail "the drop-in is still there"

# Without a program of its own, which would take longer to start than tune to end.
lines() {
    count=0
    while read -r _; do count=$((count + 1)); done <$journal
}

echo "== and after kill -9"
for wanted in 1 3 6; do
    dropless tune --cores 1 --nic "pci:$near" --apply >killed.txt 2>&1 &
    killed=$!
    until [ -e $journal ] && lines && [ "$count" -ge $wanted ]; do [ -e /proc/$killed/exe ] || break; done
    kill -9 $killed 2>/dev/null || :
    wait $killed || { lines && echo "killed with $count lines in the journal"; }
    restored
done
