#!/bin/sh
# Two igb cards back to back: found, refused on the kernel's driver, measured on vfio-pci, and given back.
set -eu
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb)
near=$1 far=$2

fail() {
    echo "pci: $*"
    for file in /tmp/*.json /tmp/*.txt; do
        [ ! -s "$file" ] || { echo "--- $file"; tail -c 4000 "$file"; }
    done
    exit 1
}

echo "== on the kernel's driver the card is listed, and sending says what to do"
dropless ports >/tmp/ports.txt 2>&1 || fail "ports ended with $?"
grep -q "$near" /tmp/ports.txt || fail "ports does not list $near"
# Does what the refusal says: runs the very command.
obey() {
    code=0
    dropless send --port "pci:$1" --to 198.18.0.2 --duration 1s >/tmp/refused.txt 2>&1 || code=$?
    [ $code -eq 2 ] || fail "sending from a card on the kernel's driver ended with $code, not 2"
    fix=$(sed -n 's/.*; fix: //p' /tmp/refused.txt)
    echo "$fix" | grep -q vfio-pci || fail "the refusal does not name the driver to bind"
    echo "+ $fix"
    sh -ec "$fix" || fail "the command that dropless names does not work"
}

echo "== bound as dropless says, it can be used"
obey "$near"
obey "$far"
dropless ports >/tmp/bound.txt 2>&1 || fail "ports ended with $?"
grep "$near" /tmp/bound.txt | grep -q vfio-pci || fail "ports does not show $near on vfio-pci"

echo "== dropless sends, dropless reflects"
dropless reflect --port "pci:$far" --json --duration 60s --idle-exit 3s >/tmp/reflect.json 2>/tmp/reflect.txt &
reflector=$!
code=0
dropless send --port "pci:$near" --to 198.18.0.2 --rate 5kpps --duration 3s --json >/tmp/send.json 2>/tmp/send.txt || code=$?
[ $code -le 1 ] || fail "send ended with $code"
wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"
sent=$(number sent /tmp/send.json) received=$(number received /tmp/send.json)
[ "$(number verdict /tmp/send.json)" = valid ] || fail "the verdict is not valid"
[ "$sent" -eq 15000 ] || fail "$sent of 15000 were sent"
# These cards' emulation loses packets when its host is busy, and counts none of them.
[ "$received" -ge $((sent * 9 / 10)) ] || fail "of $sent only $received came back"
returned=$(number returned /tmp/reflect.json)
[ "$returned" -ge "$received" ] || fail "$returned returned, but $received received"
echo "sent $sent, returned $returned, received $received"

echo "== dpdk-testpmd reflects"
mkfifo /tmp/commands
dpdk-testpmd -l 0-1 -m 64 -a "$far" --file-prefix testpmd -- -i --nb-cores=1 --total-num-mbufs=8192 \
    --forward-mode=5tswap </tmp/commands >/tmp/testpmd.txt 2>&1 &
testpmd=$!
exec 3>/tmp/commands
echo start >&3
code=0
dropless send --port "pci:$near" --to 198.18.0.2 --to-mac 02:00:00:00:00:01 --rate 5kpps --duration 3s --json \
    >/tmp/send2.json 2>/tmp/send2.txt || code=$?
[ $code -le 1 ] || fail "send ended with $code"
echo stop >&3
echo quit >&3
wait $testpmd || fail "testpmd ended with $?"
sent=$(number sent /tmp/send2.json) received=$(number received /tmp/send2.json)
[ "$received" -ge $((sent * 9 / 10)) ] || fail "of $sent only $received came back"
echo "sent $sent, received $received"

echo "== given back to the kernel"
pcibind default "$near" "$far"
[ "$(cards igb | wc -l)" -eq 2 ] || fail "the cards are not back on igb"
