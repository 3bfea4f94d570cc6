#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh VERSION: make $O/ttmon_VERSION_ARCH.deb out of what `make install` installs; run by `make deb`. Needs dpkg-dev, no root, and
# no debhelper: a package of two programs and some files is a tree, a control file and three scripts.

set -eu
cd "$(dirname "$0")/.."
O=${O:-.output}
MAKE=${MAKE:-make}
# A git description is no Debian version yet: 0.1.0-12-gabc-dirty is 0.1.0+12+gabc+dirty.
version=${1//-/+}

die() {
	echo "deb.sh: $*" >&2
	exit 1
}

command -v dpkg-deb dpkg-shlibdeps >/dev/null || die "needs dpkg-dev"
arch=$(dpkg --print-architecture)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
root=$O/deb/root
rm -rf "$O/deb"
mkdir -p "$root/DEBIAN" "$O/deb/debian"
# Units under /lib, where Debian 12 has them; systemd itself says where.
"$MAKE" --no-print-directory O="$O" install DESTDIR="$(realpath "$root")" prefix=/usr libdir="$libdir" >&2

strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root"/usr/sbin/ttmond "$root"/usr/bin/ttmon "$root$libdir"/libttmon.so.0 \
	"$root$libdir"/libttmon-pin.so "$root$libdir"/libttmon-memtrace.so
strip --strip-debug "$root$libdir"/libttmon.a
gzip -9nr "$root"/usr/share/man
doc=$root/usr/share/doc/ttmon
mv "$doc/LICENSE" "$doc/copyright"
mv "$doc/CHANGELOG.md" "$doc/changelog"
gzip -9n "$doc/changelog"
[ "$(find "$root" -type d -empty | grep -vc DEBIAN)" -eq 0 ] || find "$root" -type d -empty -not -name DEBIAN -delete

# The tool wants a control file of a source package where it runs.
echo "Source: ttmon" >"$O/deb/debian/control"
programs=("$(realpath "$root/usr/sbin/ttmond")" "$(realpath "$root/usr/bin/ttmon")" "$(realpath "$root$libdir/libttmon.so.0")"
	"$(realpath "$root$libdir/libttmon-pin.so")" "$(realpath "$root$libdir/libttmon-memtrace.so")")
depends=$(cd "$O/deb" && dpkg-shlibdeps -O "${programs[@]}" | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || die "dpkg-shlibdeps found nothing"

sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@DEPENDS@/$depends/; s/@SIZE@/$(du -ks --exclude=DEBIAN "$root" | cut -f 1)/" \
	packaging/debian/control >"$root/DEBIAN/control"
echo /etc/default/ttmond >"$root/DEBIAN/conffiles"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
for script in postinst prerm postrm; do
	install -m 0755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
deb=$O/ttmon_${version}_$arch.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >&2
rm -rf "$O/deb"
echo "$deb"
