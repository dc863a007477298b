#!/bin/sh
# Lays out what is installed, makes a Debian package of it, or puts it below a prefix and takes it away again.
#
#   scripts/package.sh package PROGRAM            a .deb below target/package
#   scripts/package.sh install PROGRAM PREFIX     the same files below PREFIX
#   scripts/package.sh uninstall PREFIX           exactly those that install wrote
#
# dpkg-deb and these lines do it: cargo-deb would take minutes to build, wants its manifest beside ours, and cannot
# install from a source tree.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

# All that is made on the way; below it $stage, what is laid out.
scratch=
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
# What install wrote, by which uninstall knows it.
list=share/doc/dropless/installed.txt

# The files of a program below $stage, as they lie below PREFIX. Debian has a place of its own for completions of zsh.
lay_out() {
    program=$1 prefix=$2 zsh=$3
    share=$stage/share units=$stage/lib/systemd/system
    pages=$share/man/man1 documents=$share/doc/dropless
    umask 022
    install -d "$stage/bin" "$units" "$pages" "$documents" "$share/$zsh" \
        "$share/bash-completion/completions" "$share/fish/vendor_completions.d"
    strip --strip-unneeded -o "$stage/bin/dropless" "$program"
    chmod 755 "$stage/bin/dropless"
    "$program" man "$pages"
    gzip -9n "$pages"/*
    "$program" completions bash >"$share/bash-completion/completions/dropless"
    "$program" completions zsh >"$share/$zsh/_dropless"
    "$program" completions fish >"$share/fish/vendor_completions.d/dropless.fish"
    for unit in contrib/systemd/*.service; do
        sed "s|/usr/bin/dropless|$prefix/bin/dropless|" "$unit" >"$units/${unit##*/}"
    done
    install -m 644 contrib/debian/copyright "$documents"
    gzip -9n <CHANGELOG.md >"$documents/changelog.gz"
    crates >"$documents/crates.txt"
    cp -R docs/guide docs/*.md contrib/c "$documents"
    chmod -R u=rwX,go=rX "$documents"
}

# What other authors wrote and is linked into the program, with versions and licences. Ours have a path behind them.
crates() {
    tree=$(cargo tree --locked -p dropless -e normal --prefix none -f '{p}: {l}') || die "cargo could not name the crates"
    printf '%s\n' "$tree" | sed '/(\//d; s/ (proc-macro)//; s/ (\*)$//' | sort -u
}

# Libraries by what the program is linked to; DPDK loads its drivers at run time, so they are named by hand.
dependencies() {
    mkdir -p "$stage/debian"
    echo "Source: dropless" >"$stage/debian/control"
    libraries=$(cd "$stage" && dpkg-shlibdeps -O usr/bin/dropless) || die "dpkg-shlibdeps could not name the libraries"
    rm -r "$stage/debian"
    . scripts/setup.sh
    # shellcheck disable=SC2154 # setup.sh has the names
    echo "${libraries#shlibs:Depends=}, $(echo "$run_packages" | sed 's/ /, /g')"
}

package() {
    version=$("$1" -V | cut -d' ' -f2)-1
    architecture=$(dpkg --print-architecture)
    maintainer="${DEBFULLNAME:-dropless} <${DEBEMAIL:-dropless@localhost}>"
    scratch=$(mktemp -d)
    root=$scratch stage=$root/usr
    chmod 755 "$root"
    mkdir "$stage"
    lay_out "$1" /usr zsh/vendor-completions
    stage=$root
    date=$(date -R -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y "$1")}")
    printf 'dropless (%s) unstable; urgency=medium\n\n  * What changed: changelog.gz.\n\n -- %s  %s\n' "$version" "$maintainer" "$date" |
        gzip -9n >"$root/usr/share/doc/dropless/changelog.Debian.gz"
    depends=$(dependencies)
    mkdir "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<END
Package: dropless
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $depends
Section: net
Priority: optional
Description: packets at line rate, with every single one accounted for
 Sends probes over network cards, interfaces of the kernel, virtual machines'
 ports or shared memory, gets them back from a reflector, and says how many
 packets per second a path carries without loss, at which latency, and where
 the missing ones went. It captures, replays, filters and forwards packets,
 too, and finds what takes the cores away that poll. It is built on DPDK.
END
    # Units that are running are left alone: who stops a reflector during an upgrade is the operator.
    for script in postinst postrm; do
        printf '#!/bin/sh\nset -e\n[ ! -d /run/systemd/system ] || systemctl daemon-reload || true\n' >"$root/DEBIAN/$script"
        chmod 755 "$root/DEBIAN/$script"
    done
    (cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
    mkdir -p "$target_dir/package"
    file=$target_dir/package/dropless_${version}_$architecture.deb
    dpkg-deb --root-owner-group --build "$root" "$file" >/dev/null
    echo "$file"
}

# Runs a command that writes below the prefix: as this user, where that is possible.
for_prefix() {
    where=$1
    shift
    while [ ! -e "$where" ]; do where=$(dirname "$where"); done
    if [ -w "$where" ]; then "$@"; else as_root "$@"; fi
}

# Removes the files below a prefix that it reads the names of, and directories of ours that are empty then.
take_away() {
    while read -r file; do
        for_prefix "$1" rm -f "$1/$file"
    done
    for_prefix "$1" find "$1/share/doc/dropless" -depth -type d -empty -delete
}

install_below() {
    units_can_name "PREFIX $2" "$2"
    prefix=$2 scratch=$(mktemp -d)
    stage=$scratch/stage
    mkdir "$stage"
    lay_out "$1" "$prefix" zsh/site-functions
    (cd "$stage" && find . -type f | sed 's|^\./||' && echo "$list") | sort -o "$scratch/list"
    mv "$scratch/list" "$stage/$list"
    for_prefix "$prefix" mkdir -p "$prefix"
    # What only an older version has: nobody would know it by the new list.
    if [ -f "$prefix/$list" ]; then
        grep -Fvx -f "$stage/$list" "$prefix/$list" | take_away "$prefix"
    fi
    # Programs that run go on with the file that they have: tar removes an old one before it writes.
    tar -C "$stage" -cf - . | for_prefix "$prefix" tar -C "$prefix" -xf - --no-same-owner --no-overwrite-dir --keep-directory-symlink
    say "installed below $prefix; ./dev uninstall --prefix $prefix takes it back"
}

uninstall() {
    prefix=$1
    [ -f "$prefix/$list" ] || die "nothing of ./dev install is below $prefix"
    scratch=$(mktemp)
    cp "$prefix/$list" "$scratch"
    take_away "$prefix" <"$scratch"
    say "removed from $prefix"
}

case ${1:-}:$# in
package:2) package "$2" ;;
install:3) install_below "$2" "$3" ;;
uninstall:2) uninstall "$2" ;;
*) die "usage: scripts/package.sh package PROGRAM | install PROGRAM PREFIX | uninstall PREFIX" ;;
esac
