#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL: build the stand-in for NVIDIA's kernel module for that Debian kernel, and below in
# less/ one that lacks a function. Prints its folder. Warnings are errors.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
headers=$("$here/../headers.sh" "$1")
out=$Q/mod/nvpin-$1
for variant in "" less; do
	dir=$out${variant:+/$variant}
	mkdir -p "$dir"
	if [ ! "$dir/nvidia.ko" -nt "$here/nvidia.c" ]; then
		cp "$here/nvidia.c" "$here/Kbuild" "$dir/"
		make -s -C "$headers" M="$dir" W=1 KCFLAGS="-Werror ${variant:+-DLESS}" modules >&2
	fi
done
echo "$out"
