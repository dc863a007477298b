#!/bin/sh
# A thief on the receiver's core: what the card missed meanwhile is exact, and the loss report names the thief.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards vmxnet3)
near=$1 far=$2

pcibind vfio-pci "$near" "$far" || fail "binding failed"
# The kernel names a script after its file.
printf '#!/bin/sh\nwhile :; do :; done\n' >magpie
chmod +x magpie
# To ask the kernel dropless mounts what it needs, for itself alone.
umount /sys/kernel/tracing
dropless reflect --cores 0 --no-doctor --port "pci:$far" --json --duration 180s >reflect.json 2>reflect.txt &
reflector=$!
until_said reflecting reflect.txt
code=0
# 128 packets are a few milliseconds at this rate, and the scheduler's slices are as long.
dropless send --cores 0,1 --no-doctor --port "pci:$near" --to 198.18.0.2 --rate 20kpps --duration 5s --descriptors 128 \
    --explain --json >send.json 2>send.txt &
sender=$!
# Not before: a sender that has not its core when it begins gives up most of what was due.
until_said sending send.txt
# It takes nine tenths of the core, so that a host that pauses this machine at will pauses mostly the thief.
nice -n -10 taskset 2 ./magpie &
thief=$!
wait $sender || code=$?
kill $thief
# Lost packets make a run invalid where our own receiver may have lost them, which is what is wanted here.
[ $code -le 2 ] || fail "send ended with $code"
kill -INT $reflector
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"

missed=$(number rx_missed send.json) sent=$(number sent send.json) received=$(number received send.json)
sed -n '/"explanation"/,$p' send.json >explanation.json
sed -n '/"causes"/,/}/p' explanation.json >first.json
cause=$(number cause first.json) lost=$(number lost first.json)
echo "sent $sent, received $received, missed $missed; most by: $cause, $lost"
[ "$missed" -gt 0 ] || fail "the thief cost nothing: this proves nothing"
[ "$(number missed explanation.json)" -eq "$missed" ] || fail "the explanation is about another number"
[ "$cause" = "preempted by magpie ($thief)" ] || fail "the thief is not named first"
grep -q "stalls on core 1: preempted by magpie ($thief)," send.txt || fail "the report for people does not name it"
[ $((lost * 2)) -gt "$missed" ] || fail "the thief is not charged with most of it"
[ "$(number core first.json)" -eq 1 ] || fail "on another core"
[ ! -e /sys/kernel/tracing/trace ] || fail "tracefs is still mounted"
# To the packet, where the far side had no loss of its own.
missing=$((sent - received - missed - $(number rx_missed reflect.json)))
[ $missing -eq 0 ] || fail "$missing packets are in no counter"
mount -t tracefs trace /sys/kernel/tracing
pcibind default "$near" "$far"
