#!/bin/sh
# Boots a Debian kernel in QEMU with PCI network cards joined in pairs behind an IOMMU, and runs scripts in it.
#
#   lab/vm.sh [-n CARD]... [-f FILE]... [-a KERNEL_ARGUMENTS] [-s CPUS] [-t SECONDS] SCRIPT...
#
#   -n  a pair of cards, back to back: igb, vmxnet3, e1000e, virtio (default: one pair of igb, one of vmxnet3)
#   -f  a program of this machine to carry along with its libraries, into the guest's PATH
#   -s  processors of the guest (default 2: with more than the host has, QEMU 10 loses timer interrupts more often)
#   -t  when to give up (default 120 s, and 100 s a script)
#
# Everything is software emulation, so it runs where KVM does not. All scripts run in one boot, one after another (where it
# hangs, those without a result in one more), as root, with 2 MiB hugepages, DPDK's drivers, dpdk-testpmd, ip and ethtool
# where this machine has them.
# Exit code: that of the first script that failed, 124 when the time passed, 125 when the guest gave no result.
set -eu
lab=$(cd "$(dirname "$0")" && pwd)

cards='' programs='' arguments='' cpus=2 limit=
while getopts n:f:a:s:t: option; do
    case $option in
    n) cards="$cards $OPTARG" ;;
    f) programs="$programs $(realpath "$OPTARG")" ;;
    a) arguments=$OPTARG ;;
    s) cpus=$OPTARG ;;
    t) limit=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || {
    sed -n 's/^#   lab/usage: lab/p' "$0" >&2
    exit 2
}
: "${cards:=igb vmxnet3}" "${limit:=$((120 + 100 * $#))}"

root=$("$lab/packages.sh")
busybox=$root/bin/busybox
[ -e "$busybox" ] || busybox=$root/usr/bin/busybox
kernel=$(echo "$root"/boot/vmlinuz-*)
version=${kernel##*/vmlinuz-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

archive() { (cd "$1" && find . | "$busybox" cpio -o -H newc 2>/dev/null); }

# The part of the guest that is the same every time: busybox and the kernel modules of the cards.
base_image() {
    [ ! -e "$root/../base.cpio" ] || return 0
    base=$work/base modules=usr/lib/modules/$version
    mkdir -p "$base/usr/bin" "$base/usr/sbin" "$base/usr/lib64" "$base/$modules"
    for directory in bin sbin lib lib64; do ln -s "usr/$directory" "$base/$directory"; done
    cp "$busybox" "$base/usr/bin/busybox"
    from=$root/lib/modules/$version
    [ -d "$from" ] || from=$root/$modules
    cp "$from/modules.builtin" "$from/modules.order" "$base/$modules"
    (
        cd "$from"
        find kernel/lib kernel/crypto kernel/virt kernel/net/core kernel/net/packet kernel/drivers/vfio kernel/drivers/uio \
            kernel/drivers/virtio kernel/drivers/dca kernel/drivers/ptp kernel/drivers/pps kernel/drivers/i2c \
            kernel/drivers/net/vmxnet3 kernel/drivers/net/ethernet/intel/e1000* kernel/drivers/net/ethernet/intel/igb* \
            kernel/drivers/net/veth.* kernel/drivers/net/tun.* kernel/drivers/net/virtio_net.* kernel/drivers/net/net_failover.* \
            -name '*.ko*' -exec cp --parents -t "$base/$modules" {} + 2>/dev/null
    ) || : # not every kernel has every one of these
    find "$base/$modules" -name '*.xz' -exec xz -d {} +
    "$busybox" depmod -b "$base/usr" "$version"
    archive "$base" >"$root/../base.cpio.part"
    mv "$root/../base.cpio.part" "$root/../base.cpio"
}

# Copies each file named on stdin to its place in the guest; links stay links, or DPDK would find a driver twice.
carry() {
    while read -r file; do
        while :; do
            place=$work/job$(realpath "$(dirname "$file")")
            mkdir -p "$place"
            cp -P "$file" "$place"
            [ -L "$file" ] || break
            target=$(readlink "$file")
            case $target in /*) file=$target ;; *) file=$(dirname "$file")/$target ;; esac
        done
    done
}

with_libraries() {
    for file; do
        case " $programs " in *" $file "*) ;; *) echo "$file" ;; esac
        ldd "$file" 2>/dev/null | grep -o '/[^ ]*' || :
    done | sort -u
}

# The part that is new every time: the scripts, the programs, and whatever of DPDK this machine has.
job_image() {
    mkdir -p "$work/job/job" "$work/job/usr/bin" "$work/job/usr/local/bin"
    cp "$lab/guest/init" "$work/job/init"
    cp "$lab"/guest/* "$work/job/usr/local/bin"
    rm "$work/job/usr/local/bin/init"
    number=100
    for script; do
        number=$((number + 1))
        cp "$script" "$work/job/job/$number-$(basename "$script")"
    done
    # The shell too: busybox's own prefers its small ip and timeout to the real ones.
    tools=/bin/sh
    for tool in dpdk-testpmd ip ethtool nice timeout; do tools="$tools $(PATH=$PATH:/usr/sbin:/sbin command -v $tool || :)"; done
    # glibc loads libgcc_s by name when a thread is cancelled.
    # shellcheck disable=SC2086,SC2046 # words are what is wanted
    with_libraries $programs $tools $(drivers) /lib/x86_64-linux-gnu/libgcc_s.so.1 | carry
    # Debian's DPDK libraries find each other by links that lead from the linker's directory into that of the drivers.
    for file in "$work"/job/usr/lib/*/dpdk/pmds-*/*; do
        link=${file#"$work/job"}
        link=${link%/dpdk/*}/${link##*/}
        [ ! -L "$link" ] || echo "$link"
    done | carry
    # The guest unpacks all of it at every boot: a third of a debug build is symbols.
    for program in $programs; do
        carried=$work/job/usr/local/bin/${program##*/}
        strip -o "$carried" "$program" 2>/dev/null || cp "$program" "$carried"
    done
    chmod -R +x "$work/job/init" "$work/job/usr/local/bin"
    archive "$work/job"
}

# DPDK loads its drivers by name at run time, so the linker's list does not have them.
drivers() {
    for name in bus_pci bus_vdev mempool_ring net_e1000 net_virtio net_vmxnet3 net_memif net_tap net_af_packet net_ring \
        net_null net_vhost net_pcap; do
        ls /usr/lib/x86_64-linux-gnu/dpdk/pmds-*/librte_"$name".so* 2>/dev/null || :
    done
}

# The cards as QEMU arguments, one a line: a pair shares a hub, and every card has a root port, so an IOMMU group, of its own.
card_arguments() {
    hub=0 card=0
    for name in $cards; do
        case $name in
        virtio) device=virtio-net-pci,disable-legacy=on,iommu_platform=on,ats=on ;;
        *) device=$name ;;
        esac
        for side in 0 1; do
            echo "-device pcie-root-port,id=port$card,chassis=$card,slot=$card"
            echo "-netdev hubport,id=net$card,hubid=$hub"
            echo "-device $device,bus=port$card,netdev=net$card,mac=02:00:00:00:0$hub:0$side,romfile="
            card=$((card + 1))
        done
        hub=$((hub + 1))
    done
}

# A guest that lost its timer before its first process was there is ended here.
ended_unless_booted() {
    for _ in $(seq 120); do
        sleep 1
        [ -s "$work/pid" ] || continue
        ! grep -q '^lab: booted' "$work/console" || return 0
    done
    kill "$(cat "$work/pid")"
}

# One that lost it later ends when its kernel sees that (21 s), and not with the time.
boot() {
    rm -f "$work/pid"
    ended_unless_booted >"$work/watch" 2>&1 </dev/null &
    watch=$!
    code=0
    emulate || code=$?
    kill $watch 2>/dev/null || :
    return $code
}

# Without AVX: what the C library does with it takes a tenth longer where it is emulated.
emulate() {
    # shellcheck disable=SC2046 # every line is an option and its value
    LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu \
        timeout --foreground "$limit" "$root/usr/bin/qemu-system-x86_64" \
        -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -nodefaults -display none -no-reboot \
        -M q35,kernel-irqchip=split -accel tcg,thread=multi -cpu max,la57=off,avx=off,avx2=off -smp "$cpus" -m 3072 \
        -device intel-iommu,intremap=on,device-iotlb=on $(card_arguments) \
        -pidfile "$work/pid" -kernel "$kernel" -initrd "$work/initrd" \
        -serial "file:$work/console" -serial stdio -serial "file:$work/ended" \
        -append "console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable clocksource=tsc mitigations=off nokaslr \
intel_iommu=on iommu=pt hugepages=256 sysctl.kernel.panic_on_rcu_stall=1 lab.done=$(wc -l <"$work/results") $arguments" </dev/null
}

# One line for each script and a last one in the words of cargo's tests, so that one reader understands both.
report() {
    passed=0 failed=0 code=0 number=100
    for script; do
        number=$((number + 1))
        name=$(basename "$script")
        said=$(tr -d '\r' <"$work/results" | sed -n "s/^$number-$name //p")
        result=${said%% *}
        if [ "${result:-none}" = 0 ]; then
            passed=$((passed + 1))
            echo "test vm/$name ... ok"
        else
            failed=$((failed + 1))
            echo "test vm/$name ... FAILED ${said#"$result"}"
            [ "$code" -ne 0 ] || code=${result:-$missing}
        fi
    done
    echo "test result: $([ $failed -eq 0 ] && echo ok || echo FAILED). $passed passed; $failed failed; 0 ignored"
}

base_image
job_image "$@" >"$work/job.cpio"
cat "$root/../base.cpio" "$work/job.cpio" >"$work/initrd"
: >"$work/results"
for attempt in 1 2; do
    # QEMU may end before it opens this.
    : >"$work/ended"
    missing=125
    boot || { [ $? -ne 124 ] || missing=124; }
    cat "$work/ended" >>"$work/results"
    # An emulator that aborts or hangs is no verdict on the scripts: those that have none are tried once more, and it is said.
    over=$(wc -l <"$work/results")
    if [ $attempt -eq 2 ] || [ "$over" -eq $# ]; then break; fi
    echo "lab: no result from the guest ($missing) after $over scripts; booting once more" >&2
    tail -n 5 "$work/console" >&2 || :
done
report "$@"
if [ "$code" -ne 0 ]; then
    echo "lab: what the guest's kernel said last:" >&2
    tail -n 30 "$work/console" >&2 || :
fi
exit "$code"
