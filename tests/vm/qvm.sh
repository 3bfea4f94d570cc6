#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# qvm.sh -k KERNEL [-s CPUS] [-m MEM] [-t SECONDS] 'shell command': run a command under that kernel in QEMU, without KVM. The guest's / is
# the host's, read-only, under an overlay in memory. Exit status is the command's; 124: out of time, 125: the guest died.

set -u
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel='' cpus=2 mem=2G limit=120
while getopts k:s:m:t: o; do
	case $o in
	k) kernel=$OPTARG ;;
	s) cpus=$OPTARG ;;
	m) mem=$OPTARG ;;
	t) limit=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ -e "$Q/ird/$kernel.cpio.gz" ] || {
	echo "qvm.sh: no kernel '$kernel': run setup.sh" >&2
	exit 2
}

W=$(mktemp -d "$Q/run.XXXXXX") || exit 2
vfs=
trap '[ -z "$vfs" ] || kill "$vfs" 2>/dev/null; rm -rf "$W"' EXIT

# The command travels as an archive of its own in front: the kernel wants an archive to begin at a multiple of 4, which a gzip member need not end at.
printf '#!/bin/sh\n%s\n' "$*" >"$W/qvm-cmd"
(cd "$W" && echo qvm-cmd | "$Q/tools/bin/busybox" cpio -o -H newc 2>/dev/null) >"$W/cmd.cpio"
cat "$W/cmd.cpio" "$Q/ird/$kernel.cpio.gz" >"$W/initrd"

mkdir "$W/mnt"
/usr/lib/qemu/virtiofsd --socket-path="$W/vfs.sock" -o source=/ -o cache=always -o sandbox=chroot -o no_posix_lock >"$W/vfs.log" 2>&1 &
vfs=$!
for _ in $(seq 100); do
	[ -S "$W/vfs.sock" ] && break
	sleep 0.02
done

timeout -k 5 "$limit" qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot -machine q35 -accel tcg,thread=multi \
	-cpu max -smp "$cpus" -m "$mem" -kernel "$Q/k/$kernel/boot/vmlinuz-$kernel" -initrd "$W/initrd" \
	-append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable random.trust_cpu=on rdinit=/init" \
	-chardev stdio,id=con,signal=off -serial chardev:con -chardev file,id=rc,path="$W/rc" -serial chardev:rc \
	-object memory-backend-memfd,id=mem,size="$mem",share=on -numa node,memdev=mem \
	-chardev socket,id=vfs,path="$W/vfs.sock" -device vhost-user-fs-pci,queue-size=1024,chardev=vfs,tag=qvmroot </dev/null
status=$?
case $status in
124 | 137)
	echo "qvm.sh: out of time after $limit s" >&2
	exit 124
	;;
esac
rc=$(sed -n 's/^rc=\([0-9]*\).*/\1/p' "$W/rc" 2>/dev/null | tail -n 1)
exit "${rc:-125}"
