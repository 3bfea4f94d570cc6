#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh VERSION: make Debian packages in $O of what `make install` installs; run by `make deb`. Prints
# where they are, ttmon last.
#
#	libttmon0	the library that allocators link, libttmon.so.0
#	libttmon-dev	the public headers, libttmon.a and what a compiler needs
#	ttmon-preload	libraries that are loaded into programs: libttmon-pin.so, libttmon-memtrace.so
#	ttmon		the service, its client, manual pages, documentation
#
# Needs dpkg-dev, no root, and no debhelper: a package is a tree, a control file and a few scripts.

set -eu
cd "$(dirname "$0")/.."
O=${O:-.output}
MAKE=${MAKE:-make}
. packaging/common.sh
version=$(debian_version "$1")

die() {
	echo "deb.sh: $*" >&2
	exit 1
}

command -v dpkg-deb dpkg-shlibdeps >/dev/null || die "needs dpkg-dev"
arch=$(dpkg --print-architecture)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
top=$(realpath -m "$O/deb")
rm -rf "$top"
mkdir -p "$top/ttmon" "$top/debian"
# Units under /lib, where Debian 12 has them; systemd itself says where.
"$MAKE" --no-print-directory O="$O" install DESTDIR="$top/ttmon" prefix=/usr libdir="$libdir" >&2

strip --strip-unneeded --remove-section=.comment --remove-section=.note \
	"$top"/ttmon/usr/sbin/ttmond "$top"/ttmon/usr/bin/ttmon \
	"$top/ttmon$libdir"/libttmon.so.0 "$top/ttmon$libdir"/libttmon-pin.so "$top/ttmon$libdir"/libttmon-memtrace.so
strip --strip-debug "$top/ttmon$libdir"/libttmon.a
gzip -9nr "$top"/ttmon/usr/share/man
rm "$top"/ttmon/usr/share/doc/ttmon/{LICENSE,CHANGELOG.md}

# move PACKAGE PATH...: out of what was installed.
move() {
	local to=$top/$1 path
	shift
	for path in "$@"; do
		mkdir -p "$to$(dirname "$path")"
		mv "$top/ttmon$path" "$to$path"
	done
}

# depends FILE...: the packages of the libraries that the programs need, with the versions that have what they use.
depends() {
	local found
	# The tool wants a control file of a source package where it runs.
	echo "Source: ttmon" >"$top/debian/control"
	found=$(cd "$top" && dpkg-shlibdeps -O "$@" | sed -n 's/^shlibs:Depends=//p')
	[ -n "$found" ] || die "dpkg-shlibdeps found nothing for $*"
	echo "$found"
}

# pack PACKAGE [DEPENDS]
pack() {
	local deb=$O/$1_${version}_$arch.deb
	documents "$top/$1" "$1"
	build "$top/$1" "packaging/debian/$1.control" "$deb" -e "s/@ARCH@/$arch/; s/@DEPENDS@/${2:-}/"
	echo "$deb"
}

move libttmon0 "$libdir/libttmon.so.0"
move libttmon-dev "$libdir"/{libttmon.so,libttmon.a,pkgconfig} /usr/include /usr/share/man/man3
move ttmon-preload "$libdir"/{libttmon-pin.so,libttmon-memtrace.so} /usr/share/man/man7/libttmon-pin.7.gz

mkdir -p "$top"/{libttmon0,ttmon-preload,ttmon}/DEBIAN
echo "libttmon 0 libttmon0 (>= ${version%-*})" >"$top/libttmon0/DEBIAN/shlibs"
echo "activate-noawait ldconfig" | tee "$top/libttmon0/DEBIAN/triggers" >"$top/ttmon-preload/DEBIAN/triggers"
echo /etc/default/ttmond >"$top/ttmon/DEBIAN/conffiles"
for script in postinst prerm postrm; do
	install -m 0755 "packaging/debian/ttmon.$script" "$top/ttmon/DEBIAN/$script"
done
chmod 0644 "$top"/{libttmon0,ttmon-preload}/DEBIAN/* "$top/ttmon/DEBIAN/conffiles"

pack libttmon0 "$(depends "libttmon0$libdir/libttmon.so.0")"
pack libttmon-dev
pack ttmon-preload "$(depends "ttmon-preload$libdir/libttmon-pin.so" "ttmon-preload$libdir/libttmon-memtrace.so")"
pack ttmon "$(depends ttmon/usr/sbin/ttmond ttmon/usr/bin/ttmon)"
rm -rf "$top"
