#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# headers.sh KERNEL: fetch that Debian kernel's headers and unpack them into $QVM_HOME/h (nothing is
# installed), so that modules can be built against them. Prints the folder to give to make -C. What is
# there already is not fetched again.

set -eu
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
kernel=$1
base=${kernel%-cloud-amd64}
headers=$Q/h/usr/src/linux-headers-$kernel
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
	# Type information of modules needs pahole; without this they have none, like those built by DKMS.
	rm -f "$headers/vmlinux"
	touch "$headers/Makefile.ready"
fi
echo "$headers"
