#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# dkms.sh VERSION: make $O/ttmon-dkms_VERSION_all.deb, the kernel module's sources for DKMS, which builds it for the
# kernels that the machine has and those it will have; run by `make deb`. Needs dpkg-dev, no root. Prints where the
# package is.

set -eu
cd "$(dirname "$0")/.."
O=${O:-.output}
. packaging/common.sh
version=$(debian_version "$1")
root=$O/dkms/root
module=$(sed -n 's/^VERSION := //p' kmod/Makefile)

command -v dpkg-deb >/dev/null || {
	echo "dkms.sh: needs dpkg-dev" >&2
	exit 1
}
rm -rf "$O/dkms"
mkdir -p "$root/DEBIAN" "$root/usr/share/doc/ttmon-dkms"
"${MAKE:-make}" --no-print-directory -s -C kmod dkms DESTDIR="$(realpath "$root")" >&2
rm "$root/usr/src/ttmon_rmid-$module/LICENSE"
mv "$root/usr/src/ttmon_rmid-$module/PROTOCOL.md" "$root/usr/share/doc/ttmon-dkms/"
documents "$root" ttmon-dkms
find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
for script in postinst prerm; do
	sed "s/@MODULE@/$module/" "packaging/dkms/$script" >"$root/DEBIAN/$script"
	chmod 755 "$root/DEBIAN/$script"
done
deb=$O/ttmon-dkms_${version}_all.deb
build "$root" packaging/dkms/control "$deb"
rm -rf "$O/dkms"
echo "$deb"
