#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# setup.sh [SERIES ...]: fetch Debian's newest cloud kernel of each series (default: 6.1 and 6.12; new: the newest that
# Debian 13's backports have, for which kmod/every.sh makes a Debian 13) and two small tools as packages and unpack them
# into $QVM_HOME (default ~/.cache/ttmon-vm). Nothing is installed but qemu, no boot loader is touched. Then an initrd
# is made for each kernel. Prints one line a kernel: its series and its name. A series that is there already is not
# fetched again.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
mkdir -p "$Q"/debs "$Q"/k "$Q"/tools "$Q"/ird
[ $# -gt 0 ] || set -- 6.1 6.12

die() {
	echo "setup.sh: $*" >&2
	exit 1
}

quiet() {
	local out

	out=$("$@" 2>&1) || die "$*: $(echo "$out" | tail -n 1)"
}

[ "$(uname -m)" = x86_64 ] || die "the kernels are for x86_64, this machine is $(uname -m)"
command -v apt-get dpkg >/dev/null || die "needs apt-get and dpkg"
if ! command -v qemu-system-x86_64 >/dev/null || [ ! -x /usr/lib/qemu/virtiofsd ]; then
	[ "$(id -u)" -eq 0 ] || die "needs the packages qemu-system-x86 and qemu-system-common"
	quiet apt-get -qq update
	quiet apt-get -qq install -y --no-install-recommends qemu-system-x86 qemu-system-common
fi

# Packages are downloaded into the folder that apt-get runs in.
cd "$Q/debs"
if [ ! -x "$Q/tools/bin/busybox" ] || [ ! -x "$Q/tools/bin/kmod" ]; then
	quiet apt-get -qq download busybox-static kmod
	for deb in busybox-static_*.deb kmod_*.deb; do
		dpkg -x "$deb" "$Q/tools"
	done
	for t in depmod modprobe; do
		ln -sf kmod "$Q/tools/bin/$t"
	done
	rm -f ./*.deb
fi

# Names like 6.1.0-56-cloud-amd64 and 6.12.117+deb12-cloud-amd64, not the metapackage of the series.
newest() {
	apt-cache search --names-only "^linux-image-${1//./\\.}[.][0-9].*-cloud-amd64\$" | sed -n \
		's/^linux-image-\([^ ]*\) .*/\1/p' |
		sort -V | tail -n 1
}

for series in "$@"; do
	if [ "$series" = new ]; then
		kernel=$("$here/kmod/every.sh" --newest)
	else
		kernel=$(newest "$series")
	fi
	if [ -z "$kernel" ] && [ "$(id -u)" -eq 0 ]; then
		apt-get -qq update >/dev/null 2>&1 || true
		kernel=$(newest "$series")
	fi
	[ -n "$kernel" ] || \
		kernel=$(cd "$Q/ird" && find . -name "$series.*.cpio.gz" |
			sed 's,^\./,,; s,\.cpio\.gz$,,' | sort -V | tail -n 1)
	[ -n "$kernel" ] || die "apt knows no cloud kernel $series, and none was fetched before"
	if [ ! -d "$Q/k/$kernel" ]; then
		quiet apt-get -qq download "linux-image-$kernel"
		rm -rf "$Q/k/$kernel.new"
		dpkg -x "linux-image-${kernel}"_*.deb "$Q/k/$kernel.new"
		mv "$Q/k/$kernel.new" "$Q/k/$kernel"
		rm -f ./*.deb
	fi
	# Made anew each time: it takes a second and holds our init.
	"$here/mkinitrd.sh" "$kernel"
	echo "$series $kernel"
done
