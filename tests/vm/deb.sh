#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh KERNEL: make the Debian package and print where it is. It is the same for all kernels. Beside
# it, two later versions for upgrades: vm-deb/1.deb, whose /etc/default/ttmond has a line more, and
# 2.deb, whose unit has.

set -eu
cd "$(dirname "$0")/../.."
out=$(make --no-print-directory -s O="${O:-.output}" deb 2>&1) || {
	echo "$out" | tail -n 1 >&2
	exit 1
}
deb=$(realpath "$(echo "$out" | tail -n 1)")
next=$(dirname "$deb")/vm-deb
rm -rf "$next"
mkdir "$next"
dpkg-deb -R "$deb" "$next/root"
for n in 1 2; do
	sed -i "s/^Version: .*/Version: $(dpkg-deb -f "$deb" Version)+$n/" "$next/root/DEBIAN/control"
	[ "$n" -eq 1 ] && echo "# Version $n" >>"$next/root/etc/default/ttmond" || sed -i "s/^Description=.*/& $n/" \
		"$next/root/lib/systemd/system/ttmond.service"
	# To unpack takes long in the guest.
	dpkg-deb --root-owner-group -Znone --build "$next/root" "$next/$n.deb" >&2
done
rm -rf "$next/root"
echo "$deb"
