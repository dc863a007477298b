#!/bin/sh
# igb spreads many flows over four receive queues: every queue has its share, and together they have every packet.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
near=$1 far=$2

pcibind vfio-pci "$near" "$far" || fail "binding failed"
dropless reflect --queues 4 --cores 1 --port "pci:$far" --json --duration 60s >reflect.json 2>reflect.txt &
reflector=$!
until_said reflecting reflect.txt
code=0
dropless send --cores 0 --port "pci:$near" --to 198.18.0.2 --flows 256 --rate 4kpps --count 8k --backlog 8000 --json \
    >send.json 2>send.txt || code=$?
sound send.json $code
kill -INT $reflector
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"

# The packets of each receive queue, one a line.
sed -n '/"direction": "rx"/,/"packets"/s/.*"packets": \([0-9]*\).*/\1/p' reflect.json >queues
[ "$(wc -l <queues)" -eq 4 ] || fail "not four queues"
total=$(awk '{ total += $1 } END { print total }' queues)
[ "$total" -eq "$(number received reflect.json)" ] || fail "the queues have $total packets in all, not what was received"
[ "$total" -ge 7200 ] || fail "of 8000 packets only $total arrived"
[ "$(number flows_sent send.json)" -eq 256 ] || fail "not 256 flows were sent"
while read -r packets; do
    echo "a queue has $packets of $total"
    [ $((packets * 10)) -ge "$total" ] || fail "a queue has less than 10 %"
    [ $((packets * 10)) -le $((total * 4)) ] || fail "a queue has more than 40 %"
done <queues
pcibind default "$near" "$far"
