#!/bin/sh
# Rules in XDP in the kernel that Debian ships, on cards: native where the driver has it, else refused, and generic there;
# the filter counts what the other end sent. A card that belongs to a poll mode driver is refused.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb) $(cards vmxnet3)
interface() { basename "/sys/bus/pci/devices/$1/net/"*; }
printf 'deny udp sport 49152-49167\nrate 1kpps per source/24 tcp\ndefault allow\n' >edge.rules
for card; do
    echo 1 >"/proc/sys/net/ipv6/conf/$(interface "$card")/disable_ipv6"
    ip link set "$(interface "$card")" up
done

# judges MODE FROM TO: a filter of this mode at TO meets what FROM sends.
judges() {
    near=$(interface "$2") far=$(interface "$3")
    dropless filter run edge.rules --dev "$far" --mode "$1" --sample drops.pcapng --json >filter.json 2>filter.txt &
    filter=$!
    until_said 'in force on' filter.txt
    dropless filter status >status.txt
    grep -q "$far .*$1" status.txt || fail "status does not say $1"
    before=$(cat "/sys/class/net/$near/statistics/tx_packets")
    dropless send --cores 0 --port "packet:$near" --to 198.18.0.2 --to-mac "$(cat "/sys/class/net/$far/address")" \
        --flows 64 --rate 2kpps --count 2k --tx-only --no-doctor >send.txt 2>&1 || :
    sleep 0.5
    sent=$(($(cat "/sys/class/net/$near/statistics/tx_packets") - before))
    kill -INT $filter
    wait $filter || fail "filter run ended with $?"
    allowed=$(number allowed filter.json) denied=$(number denied filter.json)
    echo "$1: sent $sent, allowed $allowed, denied $denied"
    [ "$(number mode filter.json)" = "$1" ] || fail "the result does not say $1"
    judged=$((allowed + denied))
    # The emulated igb loses packets when its host is busy, and counts none of them.
    if [ $judged -gt "$sent" ] || [ $((judged * 2)) -lt "$sent" ]; then fail "others were judged than sent"; fi
    [ $((denied * 8)) -ge "$sent" ] || fail "of $sent only $denied were denied"
}

echo "== igb: native"
judges native "$1" "$2"
echo "== vmxnet3: native is refused by kernels before 6.6, generic is exact"
code=0
dropless filter run edge.rules --dev "$(interface "$4")" --duration 1s >refused.txt 2>&1 || code=$?
modes=generic
if [ $code -eq 0 ]; then
    modes="generic native"
elif [ $code -ne 2 ] || ! grep -q -- '--mode generic' refused.txt; then
    fail "native at vmxnet3 ended with $code"
fi
for mode in $modes; do
    judges "$mode" "$3" "$4"
    [ $judged -eq "$sent" ] || fail "$sent were sent, and $judged judged ($mode)"
done

echo "== rules of every kind load: the verifier sees other lengths of tables each time"
cat >every.rules <<'END'
deny from 10.0.0.0/8
deny to 2001:db8::/32
deny tcp dport 80-90
deny udp sport 53
deny tcp flags syn
deny icmp type echo-request
deny vlan 7
deny fragment
rate 1kpps per source/24 udp
rate 1kpps per destination/16,56 tcp
END
# loads RULES CARD...: the fourth card gets these rules, for a moment.
loads() {
    dropless filter run "$1" --dev "$(interface "$5")" --mode generic --duration 10ms --sample drops.pcapng --quiet ||
        fail "$(cat "$1") did not load"
}
echo "deny vlan 7" >one.rules
fourth=$(interface "$4") code=0
if ethtool -k "$fourth" | grep -q '^rx-vlan-offload: on'; then
    dropless filter run one.rules --dev "$fourth" --mode generic --duration 10ms >refused.txt 2>&1 || code=$?
    if [ $code -ne 2 ] || ! grep -q "ethtool -K $fourth rxvlan off" refused.txt; then
        fail "rules by VLAN at a card that takes tags off: $code"
    fi
    ethtool -K "$fourth" rxvlan off
fi
while read -r rule; do
    printf '%s\ndefault allow\n' "$rule" >one.rules
    loads one.rules "$@"
done <every.rules
for net in $(seq 70); do echo "deny tcp dport $net from 10.$net.0.0/16"; done >>every.rules
echo 'default allow' >>every.rules
loads every.rules "$@"

ethtool -K "$fourth" rxvlan on || : # where it can be

echo "== on vfio-pci there is no XDP"
pcibind vfio-pci "$2" || fail "binding failed"
for command in "filter run edge.rules" guard; do
    code=0
    # shellcheck disable=SC2086 # words
    dropless $command --dev "$2" --duration 1s >refused.txt 2>&1 || code=$?
    if [ $code -ne 2 ] || ! grep -q 'dropless forward --rules' refused.txt; then fail "$command at a card on vfio: $code"; fi
done
pcibind default "$2"
for card; do
    echo 0 >"/proc/sys/net/ipv6/conf/$(interface "$card")/disable_ipv6"
    ip link set "$(interface "$card")" down
done
