#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL: build kmod/ and the programs its tests use for that Debian kernel, against its
# headers (../headers.sh). Prints the folder with both. Warnings of the extra kind (W=1) are errors.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel=$1
out=$Q/mod/rmid-$kernel

mkdir -p "$out"
case $kernel in
6.1.* | *+deb12-*)
	headers=$("$here/../headers.sh" "$kernel")
	make -s -C "$top/kmod" tree DIR="$out"
	make -s -C "$headers" M="$out" W=1 KCFLAGS=-Werror modules >&2
	;;
*) # its tools want a newer C library than Debian 12's
	"$here/every.sh" --module "$kernel" >&2
	;;
esac
if [ ! "$out/procs" -nt "$here/procs.c" ]; then
	gcc -O1 -g -Wall -Wextra -D_GNU_SOURCE -pthread -o "$out/procs" "$here/procs.c" >&2
fi
echo "$out"
