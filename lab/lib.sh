# shellcheck shell=sh
# What the scripts here share: where Debian packages come from, and root directories of other systems.

fail() {
    echo "lab: $*" >&2
    exit 1
}

# Prints the mirror of this machine's own apt sources. Other vendors name their suites after Debian's too, but only Debian has "-updates".
mirror() {
    # shellcheck disable=SC2016 # apt fills these in, not the shell
    found=$(apt-get indextargets 'Created-By: Packages' --format '$(SITE) $(RELEASE)' |
        awk -v suite="$VERSION_CODENAME" '$2 == suite { any = $1 } $2 == suite "-updates" { best = $1; exit }
            END { print best ? best : any }')
    [ -n "$found" ] || fail "no Debian mirror among this machine's apt sources"
    echo "$found"
}

# Root directories are made once, by mmdebstrap, and what is built there stays. Remove one to have it made anew. Needs root.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dropless

# lock PATH: what lies there is nobody else's until this process has ended. What is still being made may have mounts in it, and
# goes on being made when whoever began it was interrupted.
lock() {
    mkdir -p "${1%/*}"
    exec 9>"$1.lock"
    flock -n 9 && return
    echo "lab: waiting for another that works in $1" >&2
    flock 9
}

# make_root NAME SUITE [MIRROR] [OPTION...]: the root directory NAME, unless it is there; its path is in $root then.
make_root() {
    root=$cache/$1
    shift
    lock "$root"
    [ ! -e "$root/complete" ] || return 0
    [ "$(id -u)" -eq 0 ] || fail "making a root directory takes root"
    command -v mmdebstrap >/dev/null || fail "mmdebstrap is missing: ./dev setup installs it"
    suite=$1
    shift
    rm -rf "$root"
    # What only a person reads takes a third of the space.
    mmdebstrap --quiet \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$root" "$@" >&2 ||
        fail "cannot make a root directory of $suite"
    touch "$root/complete"
}

# run_in_root COMMAND...: in a copy of this tree in $root, where it installs what it needs.
run_in_root() {
    tree=$root/dropless
    mkdir -p "$tree"
    # What git knows or would know, as it is now; what was built there stays.
    find "$tree" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
    git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -C "$tree" -xf -
    # Names and certificates as this machine has them.
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    # Mounts of its own go with it.
    # shellcheck disable=SC2016 # the inner shell fills these in
    exec unshare --mount --propagation private sh -eu -c '
        root=$1
        shift
        # A mount point, so that what is run there can have mounts of its own.
        mount --bind "$root" "$root"
        for from in /dev /proc /sys; do mount --rbind "$from" "$root$from"; done
        mount -t tmpfs -o mode=755 tmpfs "$root/run"
        mount -t tmpfs tmpfs "$root/tmp"
        exec env -i HOME=/root TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot "$root" sh -c '\''cd /dropless && exec "$@"'\'' sh "$@"
    ' sh "$root" "$@"
}
