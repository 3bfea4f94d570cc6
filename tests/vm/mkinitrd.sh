#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mkinitrd.sh KERNEL: pack busybox, init and the modules that a guest needs to reach the host's files
# into $QVM_HOME/ird/KERNEL.cpio.gz. Needs no root: device nodes come from devtmpfs.

set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel=$1
root=$Q/k/$kernel
bb=$Q/tools/bin/busybox
PATH=$Q/tools/bin:$PATH

W=$(mktemp -d "$Q/ird/XXXXXX")
trap 'rm -rf "$W"' EXIT
mkdir -p "$W"/{bin,proc,sys,dev,tmp,run,lib/modules,newroot,upper,lower}
cp "$bb" "$W/bin/busybox"
for a in sh mount mkdir insmod cat cp echo reboot sleep cut sync switch_root; do
	ln -s busybox "$W/bin/$a"
done

# Packages of newer kernels have all of it in usr/lib/modules.
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
if [ ! -e "$root/boot/vmlinuz-$kernel" ]; then
	mkdir -p "$root/boot"
	ln -s "../usr/lib/modules/$kernel/vmlinuz" "$root/boot/vmlinuz-$kernel"
fi
# With what they depend on, in load order; what is built in or unknown to this kernel is left out.
depmod -b "$root" "$kernel"
for m in virtio_pci virtio_blk virtiofs overlay; do
	modprobe -d "$root" -S "$kernel" -D "$m" 2>/dev/null || true
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r path; do
	name=$(basename "$path" .xz)
	case $path in
	*.xz) xz -dc "$path" >"$W/lib/modules/$name" ;;
	*) cp "$path" "$W/lib/modules/$name" ;;
	esac
	echo "$name"
done >"$W/modules"
cp "$here/init" "$W/init"
chmod +x "$W/init"
(cd "$W" && find . | "$bb" cpio -o -H newc -R 0:0 2>/dev/null | gzip -1) >"$Q/ird/$kernel.cpio.gz"
