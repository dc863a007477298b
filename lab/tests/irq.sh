#!/bin/sh
# The interrupts of igb's queues under the kernel's driver: on the worker's core before `tune --apply`, none after it
# with the same traffic, and back after `--undo`. /proc/interrupts is the witness.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
from=$(ls "/sys/bus/pci/devices/$1/net") to=$(ls "/sys/bus/pci/devices/$2/net")
ip link set "$from" up
ip link set "$to" up

# The interrupts of the receiver's queues so far, on core 0 and on core 1.
counted() {
    awk -v name="$to-rx-" 'index($NF, name) == 1 { zero += $2; one += $3 } END { print zero + 0, one + 0 }' /proc/interrupts
}

# traffic WHEN: interrupts of $to's queues while packets of many flows arrive there: $zero on core 0, $one on core 1.
traffic() {
    when=$1
    # shellcheck disable=SC2046 # two numbers
    set -- $(counted)
    dropless send --cores 0 --no-doctor --port "packet:$from" --to 198.18.0.2 --to-mac "$(cat "/sys/class/net/$to/address")" \
        --tx-only --flows 256 --rate 4kpps --count 4k --backlog 4000 --json >send.json 2>send.txt || sound send.json $?
    zero=$1 one=$2
    # shellcheck disable=SC2046
    set -- $(counted)
    zero=$(($1 - zero)) one=$(($2 - one))
    echo "$when: $zero interrupts on core 0, $one on core 1"
}

affinities() {
    sed -n "s/^ *\\([0-9]*\\):.* $to-rx-[0-9]*\$/\\1/p" /proc/interrupts | while read -r number; do
        echo "$number $(cat "/proc/irq/$number/smp_affinity_list")"
    done
}

# All of them on the core that shall poll: the worst that a machine can do.
for number in $(affinities | cut -d ' ' -f 1); do echo 1 >"/proc/irq/$number/smp_affinity_list"; done
affinities >before
[ "$(grep -c ' 1$' before)" -ge 2 ] || fail "fewer than two queues to move"
traffic before
[ "$one" -gt 0 ] || fail "no interrupt came to core 1: this proves nothing"

dropless tune --cores 1 --apply >applied.txt 2>&1 || [ $? -eq 1 ] || fail "tune ended with $?"
affinities >tuned
[ "$(grep -c ' 0$' tuned)" -eq "$(wc -l <before)" ] || fail "not every queue's interrupt was moved"
traffic tuned
[ "$one" -eq 0 ] || fail "$one interrupts still came to core 1"
[ "$zero" -gt 0 ] || fail "no interrupt came at all"

dropless tune --undo >undone.txt 2>&1 || fail "undo ended with $?"
affinities >after
cmp before after || fail "undo did not restore the affinities"
traffic undone
[ "$one" -gt 0 ] || fail "no interrupt comes to core 1 again"
for number in $(affinities | cut -d ' ' -f 1); do echo 0-1 >"/proc/irq/$number/smp_affinity_list"; done
ip link set "$from" down
ip link set "$to" down
