#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# python.sh VERSION: make $O/python3-ttmon_VERSION_all.deb, the reader in Python; run by `make deb`. Needs dpkg-dev, no
# root. Prints where the package is.

set -eu
cd "$(dirname "$0")/.."
O=${O:-.output}
version=${1//-/+}
root=$O/python/root

command -v dpkg-deb >/dev/null || {
	echo "python.sh: needs dpkg-dev" >&2
	exit 1
}
rm -rf "$O/python"
mkdir -p "$root/DEBIAN"
"${MAKE:-make}" --no-print-directory -s O="$O" install-python DESTDIR="$(realpath "$root")" prefix=/usr >&2
doc=$root/usr/share/doc/python3-ttmon
install -m 0644 LICENSE "$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
size=$(du -ks --exclude=DEBIAN "$root" | cut -f 1)
sed -e "s/@VERSION@/$version/; s/@SIZE@/$size/" packaging/python/control >"$root/DEBIAN/control"
for script in postinst prerm; do
	install -m 0755 "packaging/python/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z |
	xargs -0 md5sum) >"$root/DEBIAN/md5sums"
deb=$O/python3-ttmon_${version}_all.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >&2
rm -rf "$O/python"
echo "$deb"
