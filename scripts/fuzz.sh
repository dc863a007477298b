#!/bin/sh
# Fuzzes every parser of foreign bytes, one target after another, and ends with what was found.
#
#   scripts/fuzz.sh [MINUTES [CRATE/TARGET...]]   so long each [1]
#   scripts/fuzz.sh --check                       only whether every target compiles
#
# libFuzzer by cargo-fuzz, on the stable compiler: coverage guides it, and addresses are not watched (--sanitizer none), which
# wants a nightly one. What is learned stays in crates/*/fuzz/corpus, what fails in crates/*/fuzz/artifacts; neither is kept by git.
set -u
cd "$(dirname "$0")/.." || exit 2
. scripts/lib.sh

# No workspace has the targets, so that no other build sees them. Of libFuzzer nothing is needed to look at them.
check() {
    failed=''
    for manifest in crates/*/fuzz/Cargo.toml; do
        # In the versions of the workspace, which are built already, and are the ones that run.
        cp Cargo.lock "${manifest%.toml}.lock"
        CUSTOM_LIBFUZZER_PATH=/dev/null cargo check --quiet --manifest-path "$manifest" --target-dir "$target_dir" ||
            failed="$failed ${manifest%/Cargo.toml}"
    done
    [ -z "$failed" ] || die "does not compile:$failed"
}
if [ "${1:-}" = --check ]; then
    check
    exit
fi

minutes=${1:-1}
[ $# -eq 0 ] || shift
seconds=$(awk -v minutes="$minutes" 'BEGIN { if (minutes + 0 <= 0) exit 1; printf "%.0f", minutes * 60 }') ||
    die "usage: ./dev fuzz [MINUTES [CRATE/TARGET...]] | --check"
# cargo-fuzz builds in another directory.
case $target_dir in /*) ;; *) target_dir=$PWD/$target_dir ;; esac
tools=$target_dir/tools
PATH=$tools/bin:$PATH
have cargo-fuzz || { say "installing: cargo-fuzz" && cargo install --quiet cargo-fuzz --root "$tools"; } || die "cargo-fuzz could not be installed"

# Real files to begin with, where bytes by chance would not come far.
seeds() {
    case $1 in
    dissect/file) echo crates/capture/tests/corpus/* ;;
    report/result) echo crates/report/tests/golden/*/summary.json ;;
    report/live) echo crates/report/fuzz/seeds/* ;;
    rules/text) echo crates/rules/fuzz/seeds/* ;;
    wire/*) echo crates/wire/fuzz/seeds/* ;;
    dropless/*) echo "crates/dropless/fuzz/seeds/${1#*/}"/* ;;
    esac
}

# Runs the target CRATE/NAME.
fuzz() {
    place=crates/${1%/*}/fuzz name=${1#*/}
    corpus=$place/corpus/$name
    mkdir -p "$corpus"
    for seed in $(seeds "$1"); do
        # Named by what is in it: golden files share a name.
        [ ! -f "$seed" ] || cp "$seed" "$corpus/$(cksum <"$seed" | tr ' ' -)"
    done
    cargo fuzz run --sanitizer none --fuzz-dir "$place" --target-dir "$target_dir/fuzz" "$name" -- \
        -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
}

all=$(
    for manifest in crates/*/fuzz/Cargo.toml; do
        crate=${manifest#crates/} crate=${crate%%/*}
        sed -n "s|^path = \"fuzz_targets/\(.*\)\.rs\"|$crate/\1|p" "$manifest"
    done
)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
failed=''
# shellcheck disable=SC2048,SC2086 # words
for target in ${*:-$all}; do
    printf '%s\n' $all | grep -qxF "$target" || die "there is no target $target: they are those of crates/*/fuzz"
    say "$target: $seconds s"
    if fuzz "$target" >"$work/log" 2>&1 </dev/null; then
        awk -v target="$target" '
            /^Done / { runs = $2 }
            / cov: / { for (at = 1; at < NF; at++) if ($at == "cov:") covered = $(at + 1) }
            END { printf "%-16s %12s inputs, %6s edges, nothing found\n", target, runs, covered }' "$work/log"
    else
        failed="$failed $target"
        tail -n 40 "$work/log"
        printf '%-16s FAILED\n' "$target"
    fi
done
[ -z "$failed" ] || die "found something:$failed (what it takes to show it again is said above)"
