#!/bin/sh
# An interrupt storm from another card on the receiver's core: the report of the run's pauses names its interrupts.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards vmxnet3) $(cards igb)
near=$1 far=$2
from=$(ls "/sys/bus/pci/devices/$3/net") to=$(ls "/sys/bus/pci/devices/$4/net")
ip link set "$from" up
ip link set "$to" up
queues() { sed -n "s/^ *\\([0-9]*\\):.* $to-rx-[0-9]*\$/\\1/p" /proc/interrupts; }
for number in $(queues); do echo 1 >"/proc/irq/$number/smp_affinity_list"; done

pcibind vfio-pci "$near" "$far" || fail "binding failed"
taskset 1 dropless reflect --cores 0 --no-doctor --port "pci:$far" --json --duration 60s >reflect.json 2>reflect.txt &
reflector=$!
taskset 1 dropless send --cores 0 --no-doctor --port "packet:$from" --to 198.18.0.2 --to-mac "$(cat "/sys/class/net/$to/address")" \
    --tx-only --flows 256 --rate max --duration 60s --json >flood.json 2>flood.txt &
storm=$!
code=0
dropless send --cores 0,1 --no-doctor --port "pci:$near" --to 198.18.0.2 --rate 5kpps --duration 4s --descriptors 64 \
    --explain --json >send.json 2>send.txt || code=$?
kill -INT $storm
wait $storm || [ $? -le 2 ] || fail "the flood ended with $?"
[ $code -le 2 ] || fail "send ended with $code"
kill -INT $reflector
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"

# What was lost, by cause; of the storm is what names its interrupts, or the interface that they are for.
sed -n '/"explanation"/,/^  }/p' send.json | awk -F '"' '
    /"cause":/ { cause = $4 }
    { number = $3; sub(/^[^0-9]*/, "", number) }
    /"core":/ { core = number + 0 }
    /"lost":/ && core == 1 && number + 0 { print number + 0, cause }' >lost
numbers=$(queues | tr '\n' '|')
storms() { grep -E "(IRQ (${numbers%|})|of $from|of $to)( |\$)" lost; }
echo "missed $(number rx_missed send.json), by cause: $(head -n 6 lost | tr '\n' ';')"
storms >/dev/null || fail "the storm is charged with nothing"
charged=$(storms | awk '{ sum += $1 } END { print sum }')
echo "the storm is charged with $charged packets"
for number in $(queues); do echo 0-1 >"/proc/irq/$number/smp_affinity_list"; done
ip link set "$from" down
ip link set "$to" down
pcibind default "$near" "$far"
