# shellcheck shell=sh
# Installs what is missing, by need: to run, to build, to test, to lint. Read by ./dev.

# DPDK loads its drivers at run time, so nothing that links to the binary names these.
run_packages="librte-meta-bus librte-meta-mempool librte-meta-net"
build_packages="build-essential pkg-config libdpdk-dev libpcap-dev libclang-dev clang libbpf-dev libelf-dev zlib1g-dev ca-certificates"
# dpdk-dev has dpdk-testpmd; prometheus has promtool; xz-utils unpacks the kernel modules of the virtual machine; pip
# installs the oracle; man-db renders our pages; mmdebstrap makes a root with Suricata 7; argus, p0f and softflowd are fed;
# fish and zsh complete our command lines.
test_packages="argus-client argus-server dpdk-dev ethtool fish iproute2 iptables iputils-ping man-db mmdebstrap nftables p0f procps prometheus python3-pip socat softflowd systemd tcpdump tshark xz-utils zsh"
# What `./dev bench capture` and `./dev bench filter` compare with.
bench_packages="fio netsniff-ng xdp-tools"
# These open report.html in a real browser. Not every distribution has them as packages.
browser_packages="chromium chromium-driver python3-selenium"
# Drives the DAQ module; Debian 13 has none.
daq_packages="libdaq-dev"
lint_packages="shellcheck"

# Prints those of the packages that are not installed.
missing_packages() {
    for package; do
        state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=absent
        [ "$state" = installed ] || printf '%s ' "$package"
    done
}

# Installs those of the packages that are not there yet; asks nobody when all are.
install_packages() {
    have apt-get || {
        say "no apt-get here; install by hand what these Debian packages hold: $*"
        return 1
    }
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    say "installing: $missing"
    update_lists
    # shellcheck disable=SC2086 # one word per package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install $missing >/dev/null
}

# The same, where a distribution may not have them: then nothing is asked of the network.
install_optional() {
    for package in $(missing_packages "$@"); do
        apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
    done
    install_packages "$@"
}

# A third-party source that is down must not stop us: the install itself tells whether the lists serve.
update_lists() {
    as_root apt-get -qq update || say "apt-get update reported a problem; going on"
}

setup_run() {
    # shellcheck disable=SC2086
    install_packages $run_packages || die "dropless cannot run without these packages"
}

setup_build() {
    # shellcheck disable=SC2086
    install_packages $build_packages || die "dropless cannot be built without these packages"
    setup_rust || die "needs cargo $(wanted_rust) or newer: install it with rustup"
}

setup_test() {
    not_there=$(missing_packages argus-server prometheus softflowd)
    # shellcheck disable=SC2086
    install_packages $test_packages && setup_oracle || return 1
    # Debian starts what it installs; the tests want the programs, and nobody a service on port 9090 for that.
    if have systemctl; then
        for package in $not_there; do
            as_root systemctl --quiet disable --now "${package%-server}" 2>/dev/null || true
        done
    fi
    # shellcheck disable=SC2086
    install_optional $browser_packages || say "no browser: the tests that open report.html will be skipped"
    install_optional "$daq_packages" || say "no libdaq: the tests of the DAQ module will be skipped"
}

# The reference implementation of MLRsearch, with which `dropless search` is compared. It goes beside what is built:
# the system's own Python takes no packages but Debian's.
oracle=MLRsearch==1.2.1
# shellcheck disable=SC2154 # lib.sh says where target_dir is
setup_oracle() {
    [ -f "$target_dir/oracle/MLRsearch/__init__.py" ] && return 0
    say "installing: $oracle"
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$target_dir/oracle" "$oracle"
}

setup_bench() {
    # shellcheck disable=SC2086
    install_packages $bench_packages || say "some tools to compare with are missing: their rows will be left out"
}

setup_lint() {
    # shellcheck disable=SC2086
    install_packages $lint_packages || say "going on without: $lint_packages"
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return 0; fi
    if have rustup; then rustup component add rustfmt clippy; else install_packages rustfmt rust-clippy; fi ||
        die "cargo fmt and cargo clippy are missing"
}

wanted_rust() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }

# Is this cargo new enough?
serves() { [ -n "$1" ] && [ "$(printf '%s\n' "$(wanted_rust)" "$1" | sort -V | head -n 1)" = "$(wanted_rust)" ]; }

rust_serves() { serves "$(cargo --version 2>/dev/null | cut -d' ' -f2)"; }

# Debian 13's own Rust is new enough; elsewhere it comes by rustup.
setup_rust() {
    rust_serves && return 0
    have rustup || install_rust_package || install_rustup || return 1
    rust_serves && return 0
    say "installing the stable Rust toolchain"
    # a packaged rustup cannot update itself, and would fail here for that alone
    rustup toolchain install stable --profile minimal --no-self-update && rustup default stable && rust_serves
}

install_rust_package() {
    update_lists
    serves "$(apt-cache policy cargo | sed -n 's/.*Candidate: //p')" && install_packages cargo rustc
}

# rustup is a package on Ubuntu 24.04; Debian 12 has none, so there it is rustup's own installer.
install_rustup() {
    if [ -n "$(apt-cache search --names-only '^rustup$')" ]; then
        # --no-remove: an older cargo package would be thrown out otherwise
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends --no-remove install rustup >/dev/null &&
            return 0
    fi
    install_packages curl ca-certificates || return 1
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --no-modify-path --profile minimal --default-toolchain none
    have rustup
}
