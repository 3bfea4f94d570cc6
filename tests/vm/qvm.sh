#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# qvm.sh -k KERNEL [-s CPUS] [-m MEM] [-t SECONDS] [-a ARGS] [-R mon|all] [-o FOLDER] 'shell command':
# run a command under that kernel in QEMU, without KVM. The guest's / is the host's, read-only, under
# an overlay in memory. Exit status is the command's; 124: out of time, 125: the guest died.
#
# -a adds to the kernel's command line. -R has the kernel believe that its CPU has RDT: monitoring
# alone, or cache allocation too (rdt/inject.py). With -o a command says `tar cf "$QVM_OUT" FILE...`
# and FOLDER has the files afterwards.

set -u
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel='' cpus=2 mem=2G limit=120 args='' rdt='' out='' cpu=max
while getopts k:s:m:t:a:R:o: o; do
	case $o in
	k) kernel=$OPTARG ;;
	s) cpus=$OPTARG ;;
	m) mem=$OPTARG ;;
	t) limit=$OPTARG ;;
	a) args=$OPTARG ;;
	R) rdt=$OPTARG ;;
	o) out=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ -e "$Q/ird/$kernel.cpio.gz" ] || {
	echo "qvm.sh: no kernel '$kernel': run setup.sh" >&2
	exit 2
}
[ -z "$out" ] || mkdir -p "$out" || exit 2

W=$(mktemp -d "$Q/run.XXXXXX") || exit 2
helpers=()
trap '[ ${#helpers[@]} -eq 0 ] || kill "${helpers[@]}" 2>/dev/null; rm -rf "$W"' EXIT

# The command travels as an archive of its own in front: the kernel wants an archive to begin at a
# multiple of 4, which a gzip member need not end at.
printf '#!/bin/sh\n%s\n' "$*" >"$W/qvm-cmd"
(cd "$W" && echo qvm-cmd | "$Q/tools/bin/busybox" cpio -o -H newc 2>/dev/null) >"$W/cmd.cpio"
cat "$W/cmd.cpio" "$Q/ird/$kernel.cpio.gz" >"$W/initrd"

mkdir "$W/mnt"
/usr/lib/qemu/virtiofsd --socket-path="$W/vfs.sock" -o source=/ -o cache=always -o sandbox=chroot -o no_posix_lock \
	>"$W/vfs.log" 2>&1 &
helpers+=($!)
for _ in $(seq 100); do
	[ -S "$W/vfs.sock" ] && break
	sleep 0.02
done

more=()
if [ -n "$out" ]; then
	truncate -s 256M "$W/out.img"
	more+=(-drive "file=$W/out.img,if=none,id=out,format=raw" -device virtio-blk-pci,drive=out)
fi
if [ -n "$rdt" ]; then
	[ -s "$Q/rdt/$kernel.json" ] || "$here/rdt/gen.py" "$kernel" >&2 || exit 2
	# resctrl reads what it may do from tables of Intel's, by model.
	cpu=max,vendor=GenuineIntel,family=6,model=106,stepping=6
	args="nokaslr $args"
	more+=(-chardev "socket,id=gdb,path=$W/gdb.sock,server=on,wait=off" -gdb chardev:gdb -S)
	"$here/rdt/inject.py" "$W/gdb.sock" "$Q/rdt/$kernel.json" "$rdt" >&2 &
	helpers+=($!)
fi

# One thread for all CPUs: with several, two of them may wait for each other for ever while one
# changes kernel code, or run a breakpoint that is gone, and tests take as long.
timeout --foreground -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -machine \
	q35 -accel tcg,thread=single \
	-cpu "$cpu" -smp "$cpus" -m "$mem" -kernel "$Q/k/$kernel/boot/vmlinuz-$kernel" -initrd "$W/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable random.trust_cpu=on rdinit=/init $args" \
	-chardev stdio,id=con,signal=off -serial chardev:con -chardev file,id=rc,path="$W/rc" -serial chardev:rc \
	-object memory-backend-memfd,id=mem,size="$mem",share=on -numa node,memdev=mem "${more[@]}" \
	-chardev socket,id=vfs,path="$W/vfs.sock" -device vhost-user-fs-pci,queue-size=1024,chardev=vfs,tag=qvmroot \
	</dev/null
status=$?
case $status in
124 | 137)
	echo "qvm.sh: out of time after $limit s" >&2
	exit 124
	;;
esac
[ -z "$out" ] || tar xf "$W/out.img" -C "$out" 2>/dev/null
rc=$(sed -n 's/^rc=\([0-9]*\).*/\1/p' "$W/rc" 2>/dev/null | tail -n 1)
exit "${rc:-125}"
