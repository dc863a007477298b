#!/bin/sh
# An interrupt storm from another card on the reflector's core: the report of the run's pauses names its interrupts, and
# charges them with packets.
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

# The reflector's 64 buffers last 3 ms: what came in 5 ms is handed over at one interrupt, and in one go.
ethtool -G "$to" rx 1024
ethtool -C "$to" rx-usecs 5000
budgets() {
    echo "$1" >/proc/sys/net/core/netdev_budget
    echo "$2" >/proc/sys/net/core/netdev_budget_usecs
}
# shellcheck disable=SC2046 # two words
set -- "$near" "$far" $(cat /proc/sys/net/core/netdev_budget /proc/sys/net/core/netdev_budget_usecs)
budgets 100000 50000

# The kernel's own packet generator makes the storm: it takes least of core 0, where all the rest has to run.
modprobe pktgen
tell() { echo "$2" >"/proc/net/pktgen/$1"; }
tell kpktgend_0 "add_device $from"
tell "$from" 'count 0'
tell "$from" 'dst 198.18.0.2'
tell "$from" "dst_mac $(cat "/sys/class/net/$to/address")"

pcibind vfio-pci "$near" "$far" || fail "binding failed"
# Nothing but the reflector's worker on core 1, this shell neither.
taskset -p 1 $$ >/dev/null
taskset 3 dropless reflect --cores 1 --no-doctor --port "pci:$far" --descriptors 64 --explain --json --duration 180s \
    >reflect.json 2>reflect.txt &
reflector=$!
until_said reflecting reflect.txt
dropless send --cores 0 --no-doctor --port "pci:$near" --to 198.18.0.2 --rate 20kpps --duration 120s --json \
    >send.json 2>send.txt &
sender=$!
until_said sending send.txt
tell pgctrl start &
# Until there was a storm, however little of core 0 its generator gets: some seconds.
stormed() { cat "/sys/class/net/$to/statistics/rx_packets"; }
until [ "$(stormed)" -ge 100000 ]; do
    kill -0 $sender || fail "send ended after $(stormed) packets of the storm"
    sleep 0.1
done
kill -INT $sender
code=0
wait $sender || code=$?
tell pgctrl stop
[ $code -le 2 ] || fail "send ended with $code"
kill -INT $reflector
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"

# What was missed, by cause; of the storm is what names its interrupts, the interface that they are for, or the softirq
# that nobody else here raises.
sed -n '/"explanation"/,/^  }/p' reflect.json | awk -F '"' '
    /"cause":/ { cause = $4 }
    { number = $3; sub(/^[^0-9]*/, "", number) }
    /"core":/ { core = number + 0 }
    /"lost":/ && core == 1 && number + 0 { print number + 0, cause }' >lost
numbers=$(queues | tr '\n' '|')
storms() { grep -E "(IRQ (${numbers%|})|softirq NET_RX( of $to)?)( |\$)" lost; }
echo "after $(stormed) packets of the storm missed $(number rx_missed reflect.json), by cause: $(head -n 6 lost | tr '\n' ';')"
storms >/dev/null || fail "the storm is charged with nothing"
echo "the storm is charged with $(storms | awk '{ sum += $1 } END { print sum }')"
grep -Eq "\"cause\": \".*(of $to|$to-rx)" reflect.json || fail "no cause names the storm's interface"
# People are shown the largest causes only.
grep -qF "$(storms | head -n 1 | cut -d ' ' -f 2-)" reflect.txt || fail "the report for people does not name the storm"
budgets "$3" "$4"
ethtool -C "$to" rx-usecs 3
taskset -p 3 $$ >/dev/null
modprobe -r pktgen
for number in $(queues); do echo 0-1 >"/proc/irq/$number/smp_affinity_list"; done
ip link set "$from" down
ip link set "$to" down
pcibind default "$near" "$far"
