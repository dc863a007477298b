#!/bin/sh
# A forwarder between two cards, with a kernel at each end: rules change under load, the cards confirm every count, and
# one that was killed is followed by another that finds the cards as it needs them.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards vmxnet3) $(cards igb)
near=$2 far=$3

# interface ADDRESS: the kernel's name of a card.
interface() { basename "/sys/bus/pci/devices/$1/net/"*; }
left=$(interface "$1") right=$(interface "$4")
pcibind vfio-pci "$near" "$far" || fail "binding failed"
ip netns add right
ip link set "$right" netns right
for where in "left $left 1" "right $right 2"; do
    # shellcheck disable=SC2086 # three words
    set -- $where
    in=''
    [ "$1" = left ] || in="ip netns exec right"
    $in sh -ec "echo 1 >/proc/sys/net/ipv6/conf/$2/disable_ipv6
        ip address add 10.0.0.$3/24 dev $2
        ip link set $2 up"
done
to_mac=$(ip netns exec right cat "/sys/class/net/$right/address")

# What the kernels' cards have counted since the beginning: sent by the left one, received by the right one.
sent_before=0 arrived_before=0
counted() {
    sent=$(($(cat "/sys/class/net/$left/statistics/tx_packets") - sent_before))
    arrived=$(($(ip netns exec right cat "/sys/class/net/$right/statistics/rx_packets") - arrived_before))
}
counted
# Scripts before this one used them, too.
sent_before=$sent arrived_before=$arrived
forward() {
    dropless forward --cores 1 --port "pci:$near" --port "pci:$far" --rules edge.rules --no-doctor --json &
    forwarder=$!
}
load() {
    dropless send --cores 0 --port "packet:$left" --to 10.0.0.2 --to-mac "$to_mac" --flows 64 --rate 3kpps --tx-only \
        --no-doctor "$@" >send.txt 2>&1 &
    sender=$!
}
# Waits until the right card has received so many more than `arrived` says.
until_arrived() {
    wanted=$((arrived + $1))
    for _ in $(seq 300); do
        counted
        [ "$arrived" -lt $wanted ] || return 0
        sleep 0.1
    done
    fail "$arrived arrived, and no more"
}
# Ends a forwarder in order, with these files; what the first way had is in `came`, `denied` and `forwarded` then.
ended() {
    kill -INT $forwarder
    wait $forwarder || [ $? -eq 1 ] || fail "forward ended with $?"
    [ "$(number verdict "$1")" = valid ] || fail "the run of $1 is not valid"
    sed -n '/"ways"/,$p' "$1" >ways
    came=$(number entered ways) forwarded=$(number forwarded ways) denied=$(number denied "$1")
    # Where this host is busy, the card's ring overflows.
    missed=$(number rx_missed "$1")
    [ $((forwarded + denied + missed)) -eq "$came" ] || fail "forwarded, denied and missed are not what came"
    [ $((denied * 8)) -ge "$came" ] || fail "of $came only $denied were denied"
}
rules() { printf 'deny udp sport 49152-%s\ndefault allow\n' "$1" >edge.rules; }

echo "== rules change under load"
rules 49167
forward >forward.json 2>forward.txt
until_said 'forwarding between' forward.txt
ping -c 5 -i 0.1 10.0.0.2 >ping.txt || fail "the kernels do not reach each other"
load --count 4k
until_said 'sending:' send.txt
for last in 49183 49199 49167 49183; do
    rules "$last"
    dropless filter reload $forwarder >reload.txt 2>&1 || fail "reload ended with $?"
done
# Its pace does not matter here.
wait $sender || :
sleep 0.5
counted
ended forward.json
echo "sent $sent, came $came, missed $missed, denied $denied, forwarded $forwarded, arrived $arrived"
[ "$(number generation forward.json)" -eq 5 ] || fail "not every reload was one"
[ "$came" -eq "$sent" ] || fail "$sent were sent, and $came came"
# This card's emulation loses packets when its host is busy, and counts none of them.
if [ "$arrived" -gt "$forwarded" ] || [ $((arrived * 2)) -lt "$forwarded" ]; then fail "$arrived of $forwarded arrived"; fi

echo "== killed under load, and started again"
forward >killed.json 2>killed.txt
until_said 'forwarding between' killed.txt
load --duration 120s
until_arrived 500
kill -9 $forwarder
wait $forwarder || :
sleep 0.2
counted
before=$arrived
forward >second.json 2>second.txt
until_arrived 500
kill -INT $sender
wait $sender || :
sleep 0.5
counted
ended second.json
echo "the second: forwarded $forwarded, arrived $((arrived - before)); $(grep '^Start' second.txt)"
[ $((arrived - before)) -le "$forwarded" ] || fail "more arrived than were forwarded"

# The cards are for the scripts after this one again.
ip -n right link set "$right" netns 1
ip netns del right
pcibind default "$near" "$far"
for card in "$left" "$right"; do
    ip address flush dev "$card"
    echo 0 >"/proc/sys/net/ipv6/conf/$card/disable_ipv6"
    ip link set "$card" down
done
