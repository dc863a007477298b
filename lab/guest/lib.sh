# shellcheck shell=sh
# What the guest's scripts have in common: `. lib.sh` is found in the PATH.

# Says what was wrong, here and beside the result, shows every file of the script's directory, and ends it.
fail() {
    echo "${0##*-}: $*" | tee why
    for file in *; do
        [ ! -f "$file" ] || { echo "--- $file"; tail -c 4000 "$file"; }
    done
    exit 1
}

# sound FILE CODE: a run is sound if it is valid, or if all that is wrong with it is its pace: an emulated processor pauses at will,
# and so does an emulated card, before which packets wait.
sound() {
    if [ "$2" -le 1 ]; then return 0; fi
    sed -n '/"reasons"/,/\]/s/.*"code": "\(.*\)".*/\1/p' "$1" >codes
    case $(cat codes) in
        underoffered | port_full) ;;
        *) fail "send ended with $2: $(cat codes)" ;;
    esac
    rm codes
    echo "the pace was not held"
}

# verdict CHECK FILE: what `dropless doctor --json` says of one check.
verdict() {
    sed -n "/\"check\": \"$1\"/,/\"verdict\"/s/.*\"verdict\": \"\\(.*\\)\".*/\\1/p" "$2" | head -n 1
}

# says CHECK FILE: and in which words.
says() {
    sed -n "/\"check\": \"$1\"/,/\"says\"/s/.*\"says\": \"\\(.*\\)\".*/\\1/p" "$2" | head -n 1
}

# Timer interrupts a thousand seconds on a polling core, as /proc/interrupts counted them while noise watched.
ticks() {
    sed -n '/"line": "LOC"/,/}/p' "$1" >loc
    counted=$(number counted loc) watched=$(number watched_s "$1")
    rm loc
    # A line that did not count is not listed.
    awk -v counted="${counted:-0}" -v watched="$watched" 'BEGIN { printf "%d\n", counted * 1000 / watched }'
}

# until_said WORD FILE: waits until a program that was started has said WORD into FILE.
until_said() {
    for _ in $(seq 600); do
        ! grep -q "$1" "$2" 2>/dev/null || return 0
        sleep 0.1
    done
    fail "nobody said $1"
}
