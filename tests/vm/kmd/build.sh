#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL: fetch that Debian kernel's headers, unpack them into $QVM_HOME/h (nothing is installed), and build the stand-in for
# tt-kmd and the program that uses it. Prints the folder of both. What is there and newer than its source is not made again.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel=$1
base=${kernel%-cloud-amd64}
headers=$Q/h/usr/src/linux-headers-$kernel
out=$Q/mod/$kernel
case $kernel in
6.1.*) kbuild=linux-kbuild-6.1 ;;
*) kbuild=linux-kbuild-$base ;;
esac

if [ ! -e "$headers/Makefile.ready" ]; then
	tmp=$(mktemp -d "$Q/debs/XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp"
	apt-get -qq download "linux-headers-$kernel" "linux-headers-$base-common" "$kbuild" >&2
	for deb in *.deb; do
		dpkg -x "$deb" "$Q/h"
	done
	# One line, with the path where the package would have been installed.
	sed -i "s,include /usr/src/,include $Q/h/usr/src/," "$headers/Makefile"
	# Type information of modules needs pahole; without this the stand-in has none, like tt-kmd built by DKMS.
	rm -f "$headers/vmlinux"
	touch "$headers/Makefile.ready"
fi
mkdir -p "$out"
if [ ! "$out/tenstorrent.ko" -nt "$here/tenstorrent.c" ]; then
	cp "$here/tenstorrent.c" "$here/Kbuild" "$out/"
	make -s -C "$headers" M="$out" modules >&2
fi
if [ ! "$out/pin" -nt "$here/pin.c" ]; then
	gcc -O1 -g -Wall -Wextra -D_GNU_SOURCE -pthread -o "$out/pin" "$here/pin.c" >&2
fi
echo "$out"
