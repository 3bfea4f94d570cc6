#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# python.sh VERSION: make $O/python3-ttmon_VERSION_all.deb, the reader in Python; run by `make deb`. Needs dpkg-dev, no
# root. Prints where the package is.

set -eu
cd "$(dirname "$0")/.."
O=${O:-.output}
. packaging/common.sh
version=$(debian_version "$1")
root=$O/python/root

command -v dpkg-deb >/dev/null || {
	echo "python.sh: needs dpkg-dev" >&2
	exit 1
}
rm -rf "$O/python"
mkdir -p "$root/DEBIAN"
"${MAKE:-make}" --no-print-directory -s O="$O" install-python DESTDIR="$(realpath "$root")" prefix=/usr >&2
documents "$root" python3-ttmon
find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
for script in postinst prerm; do
	install -m 0755 "packaging/python/$script" "$root/DEBIAN/$script"
done
deb=$O/python3-ttmon_${version}_all.deb
build "$root" packaging/python/control "$deb"
rm -rf "$O/python"
echo "$deb"
