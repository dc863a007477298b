#!/bin/sh
# Runs everything that proves dropless, and ends with what passed, failed and was skipped, and why.
set -u
cd "$(dirname "$0")/.." || exit 2
. scripts/lib.sh

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"; return_hugepages' EXIT
trap 'exit 130' INT TERM
# A test that cannot run here appends "name: reason" to this file.
DROPLESS_SKIPS=$work/skips
export DROPLESS_SKIPS
: >"$DROPLESS_SKIPS"
passed=0 failed=0
failures=

# The names in cargo's list at the end, and those of the virtual machine's tests.
failed_names() {
    sed -n -e '/^failures:$/,/^test result/s/^    \([A-Za-z0-9_:]*\)$/\n    \1/p' \
        -e 's/^test \(vm.*\) \.\.\. FAILED *\(.*\)$/\n    \1 \2/p' "$work/log" | sort -u
}

# step NAME COMMAND...: runs it, shows its output, adds up the "test result:" lines; a command that prints none is one test.
step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    begun=$(date +%s)
    { "$@" && echo 0 >"$work/code" || echo $? >"$work/code"; } 2>&1 </dev/null | tee "$work/log"
    code=$(cat "$work/code")
    # shellcheck disable=SC2046 # three numbers, three words
    set -- $(sed -n 's/.*test result: .* \([0-9]*\) passed; \([0-9]*\) failed;.*/\1 \2/p' "$work/log" |
        awk '{ passed += $1; failed += $2 } END { print passed + 0, failed + 0, NR }')
    [ "$3" -gt 0 ] || [ "$code" -ne 0 ] || set -- 1 0 1
    # A build that breaks or a process that dies prints no failed test: it is one all the same.
    [ "$code" -eq 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
    passed=$((passed + $1)) failed=$((failed + $2))
    # What is marked #[ignore] is skipped, unless its reason is that another test "runs it".
    sed -n 's/^test \(.*\) \.\.\. ignored,* *\(.*\)$/\1: ignored \2/p' "$work/log" | grep -av ' runs it ' >>"$work/ignored"
    if [ "$2" -gt 0 ]; then
        failures="$failures$(printf '\n  %s' "$name")$(failed_names)"
    fi
    printf '== %s: %s passed, %s failed, %s s\n' "$name" "$1" "$2" $(($(date +%s) - begun))
}

# A test that hangs fails; it does not hold up everything for ever.
bounded() { timeout -k 10 1650 "$@"; }

# Some tests want 2 MiB hugepages: the kernel lends them for the run, where it lets us ask.
pool=/proc/sys/vm/nr_hugepages lent=
lend_hugepages() {
    free=$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)
    before=$(cat $pool 2>/dev/null) || return 0
    [ "${free:-256}" -lt 256 ] || return 0
    set_hugepages $((before + 256 - free)) && lent=$before
}
return_hugepages() { [ -z "$lent" ] || set_hugepages "$lent"; }
set_hugepages() {
    if [ "$(id -u)" -eq 0 ]; then echo "$1" >$pool; else sudo -n sh -c "echo $1 >$pool"; fi 2>/dev/null
}

# Every crate in one go: cargo builds with the features of what it is asked for, and by parts would build most crates twice.
# Real interfaces want root: cargo stays the user's, only the tests themselves go through a sudo that does not ask.
tests() {
    if [ "$(id -u)" -ne 0 ] && have sudo && sudo -n true 2>/dev/null; then
        triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
        export "CARGO_TARGET_${triple}_RUNNER=sudo -n -E"
    fi
    # One at a time: two tests that poll a core each would measure one another.
    bounded cargo test --workspace --no-fail-fast -- --test-threads=1
}

# The program that the tests before ran, so that nothing is built twice.
virtual_machine() {
    lab/boots.sh "$target_dir/debug/dropless"
}

# Who took a core is told by the kernel's tracer.
mount_tracefs() {
    [ -e /sys/kernel/tracing/trace_clock ] && return 0
    if [ "$(id -u)" -eq 0 ]; then mount -t tracefs nodev /sys/kernel/tracing; else sudo -n mount -t tracefs nodev /sys/kernel/tracing; fi 2>/dev/null
}

mount_tracefs
lend_hugepages
step "libraries, and dropless on real interfaces" tests
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
if reason=$(lab/packages.sh 2>&1); then
    step "virtual machine" virtual_machine
else
    echo "virtual machine: $(printf '%s' "$reason" | tail -n 1)" >>"$DROPLESS_SKIPS"
fi

sort -u -o "$DROPLESS_SKIPS" "$DROPLESS_SKIPS"
skipped=$(cat "$DROPLESS_SKIPS" "$work/ignored" | wc -l)
# A test that skipped itself has returned, so cargo counted it as passed; the virtual machine was not counted.
passed=$((passed - $(grep -avc '^virtual machine: ' "$DROPLESS_SKIPS")))
[ -z "$failures" ] || printf '\nfailed:%s\n' "$failures"
if [ "$skipped" -gt 0 ]; then
    printf '\nskipped:\n'
    cat "$DROPLESS_SKIPS" "$work/ignored" | sed 's/^/  /'
fi
if [ "$skipped" -gt 0 ] && [ "${CI:-}" = true ]; then
    printf '\nin CI a skipped test is a failure\n'
    failed_run=1
fi
printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ -z "${failed_run:-}" ]
