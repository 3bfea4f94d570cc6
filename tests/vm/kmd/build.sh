#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL: build the stand-in for tt-kmd for that Debian kernel, and the program that uses it.
# Prints the folder of both. What is there and newer than its source is not made again.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
headers=$("$here/../headers.sh" "$1")
out=$Q/mod/$1
mkdir -p "$out"
if [ ! "$out/tenstorrent.ko" -nt "$here/tenstorrent.c" ]; then
	cp "$here/tenstorrent.c" "$here/Kbuild" "$out/"
	make -s -C "$headers" M="$out" modules >&2
fi
if [ ! "$out/pin" -nt "$here/pin.c" ]; then
	gcc -O1 -g -Wall -Wextra -D_GNU_SOURCE -pthread -o "$out/pin" "$here/pin.c" >&2
fi
echo "$out"
