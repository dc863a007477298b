#!/bin/sh
# Runs what proves dropless, and ends with what passed, failed and was skipped, and why.
#
#   scripts/test.sh             everything; with CI=true the linters, too, and a skipped test is a failure
#   scripts/test.sh --quick     a part for between two edits, which says what it left out
#   scripts/test.sh FILTER...   the tests whose names contain one of these, and nothing that they do not need
set -u
cd "$(dirname "$0")/.." || exit 2
. scripts/lib.sh

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"; give_back' EXIT
trap 'exit 130' HUP INT TERM
# A test that cannot run here appends "name: reason" to this file.
DROPLESS_SKIPS=$work/skips
export DROPLESS_SKIPS
: >"$DROPLESS_SKIPS"
: >"$work/ignored"
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
    # What ends the shell that runs it says nothing.
    echo 1 >"$work/code"
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

# Some tests want 2 MiB hugepages and the kernel's tracer: the machine lends both for the run, where it lets us ask. Of runs side by
# side the last one gives them back: each has a shared lock on the users' file, and the loan says what there was before, also
# after a run that was killed. The lock on the loan is held only while it changes.
loan=${TMPDIR:-/tmp}/dropless-tests-$(id -u).loan pool=/proc/sys/vm/nr_hugepages tracing=/sys/kernel/tracing
borrow() {
    { [ -e "$loan" ] || : >"$loan"; } 2>/dev/null
    { [ -e "$loan.users" ] || : >"$loan.users"; } 2>/dev/null
    # What another user left under these names would be given back.
    [ -O "$loan" ] && [ -O "$loan.users" ] || return 0
    exec 8<"$loan" 9<"$loan.users"
    flock 8 && flock -s 9
    borrow_hugepages
    borrow_tracer
    flock -u 8
    is_user=1
}
borrow_hugepages() {
    free=$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)
    before=$(cat $pool 2>/dev/null) || return 0
    [ "${free:-256}" -lt 256 ] || return 0
    # First: the kernel may give some of them, and then say no.
    grep -q '^hugepages ' "$loan" || echo "hugepages $before" >>"$loan"
    set_hugepages $((before + 256 - free))
}
# Who took a core is told by it.
borrow_tracer() {
    [ -e $tracing/trace_clock ] && return 0
    quietly_as_root mount -t tracefs nodev $tracing && echo "tracer mounted" >>"$loan"
}
give_back() {
    [ -n "${is_user:-}" ] || return 0
    flock 8
    # Alone, it has the users' lock for itself.
    if flock -n 9; then
        while read -r what before; do
            case $what in
            hugepages) set_hugepages "$before" ;;
            tracer) quietly_as_root umount $tracing ;;
            esac
        done <"$loan"
        : >"$loan"
    fi
    # By hand: a process that outlives us has our files.
    flock -u 9
    flock -u 8
}
# shellcheck disable=SC2016 # the inner shell expands them
set_hugepages() { quietly_as_root sh -c 'echo "$1" >"$0"' $pool "$1"; }
quietly_as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi 2>/dev/null
}

# Real interfaces want root: cargo stays the user's, only the tests themselves go through a sudo that does not ask.
run_as_root() {
    if [ "$(id -u)" -ne 0 ] && have sudo && sudo -n true 2>/dev/null; then
        triple=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
        export "CARGO_TARGET_${triple}_RUNNER=sudo -n -E"
    fi
}

# Always of the whole workspace: cargo builds with the features of what it is asked for, and by parts would build most crates twice.
cargo_test() { bounded cargo test --workspace --no-fail-fast "$@"; }

# The targets of tests in these files and folders, as cargo's arguments.
targets() {
    for path; do
        name=${path#crates/*/tests/}
        name=${name%%/*}
        echo "--test ${name%.rs}"
    done | sort -u
}

# Tests that poll a core measure one another: they are targets called `polling`, and run one at a time. All others may
# run side by side, one executable after another.
side_by_side() { targets crates/*/tests/*.rs crates/*/tests/*/main.rs | grep -vx -e '--test polling'; }

# What is built for all is built before, in one go: the examples that tests start, too.
build() {
    begun_build=$(date +%s)
    cargo test --workspace --no-run || return
    echo "built in $(($(date +%s) - begun_build)) s"
}

libraries() {
    build || return
    # shellcheck disable=SC2046 # words
    cargo_test --lib --bins $(side_by_side)
    tested=$?
    cargo_test --doc && return $tested
}

# Always the same rounds: whether its command lines are still taken, and its sums still right. `./dev soak` is the rest.
soak() {
    before=$(wc -l <"$DROPLESS_SKIPS")
    cargo_test --bench soak -- --bench --each --only memif capture filter --seconds 1 --seed 1 ||
        # Where it lacks what it needs it has said so in that file, and played nothing.
        [ "$(wc -l <"$DROPLESS_SKIPS")" -gt "$before" ]
}

polling() { cargo_test --test polling -- --test-threads=1 "$@"; }

documentation() { RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps; }

# The program that the tests before ran, so that nothing is built twice.
virtual_machine() {
    lab/boots.sh "$target_dir/debug/dropless"
}

everything() {
    # What the virtual machine is made of comes over the network, while the processors build.
    lab/packages.sh >"$work/packages" 2>&1 &
    packages=$!
    # A test asks for it, and says what it lacks.
    lab/debian13.sh >/dev/null 2>&1 &
    debian=$!
    step "libraries" libraries
    wait $debian
    step "dropless on real interfaces" polling
    step "soak, short rounds" soak
    # With nothing beside it: an emulated machine that waits for its processors loses timers, and time that the tests give it.
    if wait $packages; then
        step "virtual machine" virtual_machine
    else
        echo "virtual machine: $(tail -n 1 "$work/packages")" >>"$DROPLESS_SKIPS"
    fi
    step "documentation" documentation
    [ "${CI:-}" != true ] || step "lint" ./dev lint
}

# Of every topic and of every kind of port one or two: where much breaks, one of these does.
representatives="cli:: wrong_uses:: support_itself:: doctor:: ports:: report_command:: report_refused:: search_oracle::
ledger::all_faults_at_once ledger::every_queue_sends ledger::the_rows_of_the_intervals load::tagged_and_ipv6
memif::the_reflector_serves vhost::vhost_sends_to_its_guest tap::the_kernel_echoes on_wire::both_sides_count capture::what_was_sent ids::a_reader_in_c read::files_of_every_tool replay::what_tcpdump_captured forward::kernels_talk_through_af_packet forward::rules_are_exchanged attach::every_probe_is_seen extcap::what_wireshark_asks filter::what_rules_do filter_run::every_packet_is filter_import::iptables_and guard::over_a_capture
pcap::ipv4_is_as_asked kernel_peer::ping_is_answered_over_af_xdp kernel_port::ipv6_and_several_queues testpmd::macswap
hostile::reflect_survives_garbage restart::an_interrupt_ends restart::a_killed_memif_server robust::closed_output
search::what_is_asked_and_carried compare::an_interrupted_comparison thief::nothing_planted top::one_look_for_scripts locale::text_is_ascii
metrics::an_address_that_cannot_be health::health_goes_with_the_packets tune::a_plan_changes_nothing
soak::a_seed_is_always soak::a_packet_that_nobody"

quick() {
    step "libraries" libraries
    cargo test -q --workspace --test polling -- --list 2>/dev/null | sed -n 's/: test$//p' >"$work/all"
    # Where it cannot be built, that has been said.
    [ -s "$work/all" ] || return 0
    for name in $representatives; do
        grep -qF "$name" "$work/all" || die "there is no test $name any more: scripts/test.sh names another"
    done
    # shellcheck disable=SC2086 # words
    step "some of dropless on real interfaces" polling $representatives
    # shellcheck disable=SC2086 # words
    printf '%s\n' $representatives | grep -vF -f - "$work/all" >"$work/left"
    left="$(wc -l <"$work/left") of $(wc -l <"$work/all") tests on real interfaces, the documentation, the virtual machine"
}

# The targets that may have a test of such a name, which is that of its folder, its file and its function.
targets_of() {
    for name; do
        name=${name%::}
        grep -rlF -e "${name##*::}" crates/*/tests --include='*.rs'
        find crates/*/tests -path "*${name%%::*}*.rs"
        grep -rlE -e "fn [a-z0-9_]*${name##*::}" crates/*/src
        find crates/*/src -path "*${name%%::*}*.rs"
    done | xargs -r grep -lE '#\[test\]|^ *[a-z_]*: *\[' >"$work/files"
    ! grep -q '^crates/[^/]*/src/' "$work/files" || echo "--lib --bins"
    # shellcheck disable=SC2046 # words
    targets $(grep '^crates/[^/]*/tests/' "$work/files")
}

named() {
    # Tests of report start its example.
    case $chosen in *"--test it"*) cargo build --workspace --examples || return ;; esac
    # shellcheck disable=SC2086 # words
    cargo_test $chosen -- --test-threads=1 "$@"
}

borrow
run_as_root
left=
case ${1:-} in
'') everything ;;
--quick) quick ;;
-*) die "usage: ./dev test [--quick | FILTER...]" ;;
*)
    chosen=$(targets_of "$@")
    [ -z "$chosen" ] || step "tests named $*" named "$@"
    [ $((passed + failed)) -gt 0 ] || die "no test has that in its name (those of the virtual machine: ./dev vm lab/tests/NAME.sh)"
    ;;
esac

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
[ -z "$left" ] || printf '\nleft out: %s\n' "$left"
printf '\n%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ -z "${failed_run:-}" ]
