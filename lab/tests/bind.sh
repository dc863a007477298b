#!/bin/sh
# Both pairs of cards change hands by `dropless tune`: ports and doctor see each state, packets go over each pair, and
# undo gives all back to the kernel.
set -eu
# shellcheck source=lab/guest/lib.sh
. lib.sh
# shellcheck disable=SC2046 # one word per card
set -- $(cards igb) $(cards vmxnet3)
[ $# -eq 4 ] || fail "not two pairs of cards"

state() {
    for address; do
        echo "$address $(basename "$(readlink "/sys/bus/pci/devices/$address/driver")")" \
            "$(cat "/sys/bus/pci/devices/$address/driver_override")" "$(ls "/sys/bus/pci/devices/$address/net" 2>/dev/null)"
    done
}

# Every card is on the driver and as usable as said, in the eyes of ports and, of each pair's first, of doctor; "own" is the
# kernel's for it.
seen() {
    wanted=$1 usable=$2
    shift 2
    dropless ports >ports.txt 2>&1 || fail "ports ended with $?"
    for address; do
        driver=$wanted
        [ "$driver" != own ] || driver=$(basename "$(readlink "/sys/bus/pci/devices/$address/driver")")
        grep -q "^ *pci:$address  *$usable  *$driver " ports.txt || fail "ports does not show $address as $usable on $driver"
    done
    case $usable in yes) judged=good ;; *) judged=bad ;; esac
    for address in "$1" "$3"; do
        code=0
        dropless doctor --cores 1 --port "pci:$address" --watch 0 --json >doctor.json 2>doctor.txt || code=$?
        [ $code -le 1 ] || fail "doctor ended with $code"
        [ "$(verdict port doctor.json)" = $judged ] || fail "doctor judges $address as $(verdict port doctor.json)"
        echo "$address: $(says port doctor.json)"
    done
}

state "$@" >before
seen own no "$@"
nics=''
for address; do nics="$nics --nic pci:$address"; done
# shellcheck disable=SC2086 # words
dropless tune --cores 1 $nics --apply >applied.txt 2>&1 || [ $? -eq 1 ] || fail "tune ended with $?"
seen vfio-pci yes "$@"

while [ $# -gt 0 ]; do
    dropless reflect --no-doctor --port "pci:$2" --json --duration 60s >reflect.json 2>reflect.txt &
    reflector=$!
    until_said reflecting reflect.txt
    code=0
    dropless send --no-doctor --port "pci:$1" --to 198.18.0.2 --rate 2kpps --count 2k --backlog 2000 --json \
        >send.json 2>send.txt || code=$?
    sound send.json $code
    kill -INT $reflector
    wait $reflector || [ $? -eq 1 ] || fail "reflect ended with $?"
    [ "$(number sent send.json)" -eq 2000 ] || fail "not all were sent"
    [ "$(number received send.json)" -ge 1800 ] || fail "of 2000 only $(number received send.json) came back over $1"
    echo "$1 and $2: sent 2000, received $(number received send.json)"
    shift 2
done

dropless tune --undo >undone.txt 2>&1 || fail "undo ended with $?"
# shellcheck disable=SC2046
set -- $(cards igb) $(cards vmxnet3)
state "$@" >after
# The kernel gives interfaces their names in the order of binding.
sed 's/eth[0-9]*/eth/' before >expected
sed 's/eth[0-9]*/eth/' after >restored
cmp expected restored || fail "undo did not restore everything"
seen own no "$@"
