#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL: build fakeqm.ko for that Debian kernel. Prints its folder. What is there and newer
# than its source is not made again.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
headers=$("$here/../../headers.sh" "$1")
out=$Q/mod/$1/fakeqm
mkdir -p "$out"
if [ ! "$out/fakeqm.ko" -nt "$here/fakeqm.c" ]; then
	cp "$here/fakeqm.c" "$here/Kbuild" "$out/"
	make -s -C "$headers" M="$out" modules >&2
fi
echo "$out"
