#!/bin/sh
# Two vmxnet3 cards, whose own count of missed packets is exact: what is lost before a reflector that stands still has a name,
# to the packet.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards vmxnet3)
near=$1 far=$2

pcibind vfio-pci "$near" "$far" || fail "binding failed"
dropless reflect --port "pci:$far" --json --duration 60s --idle-exit 3s >reflect.json 2>reflect.txt &
reflector=$!
until_said reflecting reflect.txt
dropless send --port "pci:$near" --to 198.18.0.2 --rate max --duration 3s --tx-only --json >send.json 2>send.txt &
sender=$!
until_said sending send.txt
kill -STOP $reflector
sleep 1
kill -CONT $reflector
code=0
wait $sender || code=$?
[ $code -le 1 ] || fail "send ended with $code"
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"

sent=$(number sent send.json) received=$(number received reflect.json) missed=$(number rx_missed reflect.json)
# The sender's address requests arrive too.
asked=$(number answered reflect.json)
echo "sent $sent, received $received (and $asked requests among them), missed $missed"
[ "$missed" -gt 0 ] || fail "nothing was missed: this proves nothing"
[ $((received - asked + missed)) -eq "$sent" ] || fail "received and missed do not add up to sent"
pcibind default "$near" "$far"
