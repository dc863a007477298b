#!/bin/sh
# Two igb cards back to back: found, refused on the kernel's driver, measured on vfio-pci, and given back.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
near=$1 far=$2

echo "== on the kernel's driver the card is listed, and sending says what to do"
dropless ports >ports.txt 2>&1 || fail "ports ended with $?"
grep -q "$near" ports.txt || fail "ports does not list $near"
# Does what the refusal says: runs the very command.
obey() {
    code=0
    dropless send --port "pci:$1" --to 198.18.0.2 --duration 1s >refused.txt 2>&1 || code=$?
    [ $code -eq 2 ] || fail "sending from a card on the kernel's driver ended with $code, not 2"
    fix=$(sed -n 's/.*; fix: //p' refused.txt)
    echo "$fix" | grep -q vfio-pci || fail "the refusal does not name the driver to bind"
    echo "+ $fix"
    sh -ec "$fix" || fail "the command that dropless names does not work"
}

echo "== bound as dropless says, it can be used"
obey "$near"
obey "$far"
dropless ports >bound.txt 2>&1 || fail "ports ended with $?"
grep "$near" bound.txt | grep -q vfio-pci || fail "ports does not show $near on vfio-pci"

echo "== dropless sends, dropless reflects"
dropless reflect --port "pci:$far" --json --duration 60s >reflect.json 2>reflect.txt &
reflector=$!
until_said reflecting reflect.txt
code=0
dropless send --port "pci:$near" --to 198.18.0.2 --rate 4kpps --count 6k --backlog 6000 --json >send.json 2>send.txt || code=$?
sound send.json $code
kill -INT $reflector
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"
sent=$(number sent send.json) received=$(number received send.json)
[ "$sent" -eq 6000 ] || fail "$sent of 6000 were sent"
# These cards' emulation loses packets when its host is busy, and counts none of them.
[ "$received" -ge $((sent * 9 / 10)) ] || fail "of $sent only $received came back"
returned=$(number returned reflect.json)
[ "$returned" -ge "$received" ] || fail "$returned returned, but $received received"
echo "sent $sent, returned $returned, received $received"

echo "== dpdk-testpmd reflects"
mkfifo commands
dpdk-testpmd -l 0-1 -m 64 -a "$far" --file-prefix testpmd -- -i --nb-cores=1 --total-num-mbufs=8192 \
    --forward-mode=5tswap <commands >testpmd.txt 2>&1 &
testpmd=$!
exec 3>commands
echo start >&3
tries=0
# Its prompt comes back once it forwards.
while [ "$(grep -o 'testpmd> ' testpmd.txt | wc -l)" -lt 2 ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "testpmd never started"
    sleep 0.1
done
code=0
dropless send --port "pci:$near" --to 198.18.0.2 --to-mac 02:00:00:00:00:01 --rate 4kpps --count 6k --backlog 6000 --json \
    >send2.json 2>send2.txt || code=$?
sound send2.json $code
echo stop >&3
echo quit >&3
wait $testpmd || fail "testpmd ended with $?"
sent=$(number sent send2.json) received=$(number received send2.json)
[ "$received" -ge $((sent * 9 / 10)) ] || fail "of $sent only $received came back"
echo "sent $sent, received $received"

echo "== given back to the kernel"
pcibind default "$near" "$far"
[ "$(cards igb | wc -l)" -eq 2 ] || fail "the cards are not back on igb"
