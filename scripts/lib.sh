# shellcheck shell=sh
# Words that every script of the project shares.

# Where cargo puts what it builds (used by the scripts that read this file).
# shellcheck disable=SC2034
target_dir=${CARGO_TARGET_DIR:-target}
# rustup puts cargo here, and the shell that ran it first does not know yet.
PATH=${CARGO_HOME:-$HOME/.cargo}/bin:$PATH
export PATH

say() { printf '%s\n' "dev: $*" >&2; }

die() {
    say "$*"
    exit 2
}

# Units of systemd name the program below the prefix $2, which was given as $1.
units_can_name() {
    case $2 in
    *[!A-Za-z0-9._/+~-]*) die "$1: units of systemd name the program there; use a directory whose path has only letters, digits and ._/+~-" ;;
    esac
}

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root: as it is, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        say "needs root and there is no sudo; run as root: $*"
        return 1
    fi
}

# The project's shell scripts.
shell_files() { printf '%s\n' dev .ci/run scripts/*.sh lab/*.sh lab/guest/* lab/tests/*.sh lab/tests/*/*.sh; }

# Every Rust file: cargo fmt does not see those that a registry's macro names.
rust_files() { find crates -name '*.rs'; }
