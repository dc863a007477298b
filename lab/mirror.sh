# shellcheck shell=sh
# Where Debian packages come from: the mirror of this machine's own apt sources.

fail() {
    echo "lab: $*" >&2
    exit 1
}

# Prints the mirror. Other vendors name their suites after Debian's too, but only Debian has "-updates".
mirror() {
    # shellcheck disable=SC2016 # apt fills these in, not the shell
    found=$(apt-get indextargets 'Created-By: Packages' --format '$(SITE) $(RELEASE)' |
        awk -v suite="$VERSION_CODENAME" '$2 == suite { any = $1 } $2 == suite "-updates" { best = $1; exit }
            END { print best ? best : any }')
    [ -n "$found" ] || fail "no Debian mirror among this machine's apt sources"
    echo "$found"
}
