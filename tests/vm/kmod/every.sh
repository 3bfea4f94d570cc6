#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# every.sh [PATTERN]          build kmod/ against every linux-headers package for amd64 that Debian 12 (bookworm), 13
#                             (trixie) and their updates, backports and security archives hold (whose name matches)
# every.sh --module KERNEL    build it for that kernel alone into $QVM_HOME/mod/rmid-KERNEL
# every.sh --newest           fetch the newest cloud kernel of those into $QVM_HOME/k, and print its name
#
# The compiler is the one that the headers name; warnings of W=1 are errors. Without an option DKMS builds the package
# of packaging/dkms.sh for the newest of them after that, and has to skip a kernel that is not among those it knows.
# Prints "ok VERSION" or "FAIL VERSION: why", and the counts: 78 in twenty minutes on two busy cores. As root: it works
# in a trixie of its own, $QVM_HOME/trixie (600 MB), where headers are unpacked and removed again; nothing is installed
# on this machine.

set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
Q=${QVM_HOME:-$HOME/.cache/ttmon-vm}
R=$Q/trixie
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
ok=0 failed=0

die() {
	echo "every.sh: $*" >&2
	exit 1
}

# In that trixie, with a /proc (objtool wants one) that goes with the command.
inside() {
	unshare -m bash -c 'r=$1 && shift && mount --make-rprivate / && mount -t proc proc "$r/proc" &&
		exec chroot "$r" "$@"' - "$R" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}

# Only what ends with the last step has the file "ready".
make_root() {
	local tmp

	tmp=$(mktemp -d)
	(cd "$tmp" && apt-get -qq download debootstrap 2>/dev/null && dpkg -x debootstrap_*.deb .) ||
		die "cannot have debootstrap"
	rm -rf "$R"
	mkdir -p "$Q"
	DEBOOTSTRAP_DIR=$tmp/usr/share/debootstrap "$tmp/usr/sbin/debootstrap" --variant=minbase trixie "$R" \
		"$mirror/debian" >"$tmp/log" || die "debootstrap: $(tail -n 1 "$tmp/log")"
	rm -rf "$tmp"
	for suite in bookworm trixie; do
		for part in "" -updates -backports; do
			echo "deb $mirror/debian $suite$part main"
		done
		echo "deb $mirror/debian-security $suite-security main"
	done >"$R/etc/apt/sources.list"
	printf 'APT::Sandbox::User "root";\nDpkg::Use-Pty "0";\n' >"$R/etc/apt/apt.conf.d/00root"
	inside apt-get -qq update
	inside apt-get -qq install -y --no-install-recommends -t trixie gcc-12 gcc make kmod libelf1t64 pahole dkms \
		>/dev/null
	touch "$R/ready"
}

say() {
	case $1 in
	ok) ok=$((ok + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
	echo "$*"
}

clean() {
	rm -rf "$R"/usr/src/linux-* "$R"/usr/lib/linux-kbuild-* "$R"/debs
}

# Headers of a version in some flavours: VERSION FLAVOUR...
unpack() {
	local version=$1 names=() more

	shift
	for flavour in "$@"; do
		names+=("linux-headers-$version-$flavour")
	done
	more=$(inside apt-cache depends "${names[@]}" | sed -n 's/^ *Depends: //p' |
		grep -E '^linux-(headers-.*-common.*|kbuild-.*)$' | sort -u)
	clean
	mkdir -p "$R/debs"
	# shellcheck disable=SC2086 # words
	inside sh -c 'cd /debs && apt-get -qq download "$@" && for deb in *.deb; do dpkg -x "$deb" /; done' - \
		"${names[@]}" $more
	rm -rf "$R/debs"
}

# The module for a kernel whose headers are there, in /m; status 1: why is in the log.
build() {
	local kernel=$1

	rm -rf "$R/m"
	make -s -C "$top/kmod" tree DIR="$R/m"
	inside make -s -C "/usr/src/linux-headers-$kernel" M=/m W=1 KCFLAGS=-Werror modules >"$R/log" 2>&1 || return 1
	[ "$(inside modinfo -F vermagic /m/ttmon_rmid.ko | cut -d ' ' -f 1)" = "$kernel" ] && return 0
	echo "error: the module is for another kernel" >"$R/log"
	return 1
}

# A kernel that DKMS finds headers of: its name, and the headers that it has.
dkms_kernel() {
	mkdir -p "$R/lib/modules/$1"
	ln -sfn "/usr/src/linux-headers-$2" "$R/lib/modules/$1/build"
}

dkms() {
	local kernel=$1 other=9.9.9-amd64 deb status=0

	deb=$(O=$R/deb "$top/packaging/dkms.sh" 0 2>"$R/log")
	rm -rf "$R/lib/modules" "$R"/var/lib/dkms/*
	mkdir -p "$R/var/lib/dkms"
	dkms_kernel "$kernel" "$kernel"
	inside dpkg -i "/deb/${deb##*/}" >"$R/log" 2>&1 || die "dpkg: $(tail -n 1 "$R/log")"
	if inside dkms status -m ttmon_rmid -k "$kernel" | grep -q installed; then
		say ok "dkms $kernel"
	else
		say FAIL "dkms $kernel: $(tail -n 1 "$R/log")"
	fi
	# As when a kernel is installed: all modules there are, for it. One that is skipped is no error.
	dkms_kernel "$other" "$kernel"
	inside dkms autoinstall -k "$other" >"$R/log" 2>&1 || status=$?
	if [ $status -eq 0 ] && ! inside dkms status -m ttmon_rmid -k "$other" | grep -q "$other"; then
		say ok "dkms skips $other"
	else
		say FAIL "dkms $other: status $status: $(tail -n 1 "$R/log")"
	fi
	inside dpkg -P ttmon-dkms >"$R/log" 2>&1 || die "dpkg: $(tail -n 1 "$R/log")"
	if [ -z "$(inside dkms status)" ] && [ -z "$(find "$R/lib/modules" "$R/usr/src" -name '*ttmon_rmid*')" ]; then
		say ok "dkms leaves nothing"
	else
		say FAIL "dkms: something of it stays: $(inside dkms status)"
	fi
	rm -rf "$R/deb" "$R/lib/modules"
}

# PATTERN
every() {
	local names flavours last=""

	names=$(inside apt-cache search --names-only '^linux-headers-[0-9].*[0-9](-cloud|-rt)?-amd64$' |
		sed -n 's/^linux-headers-\([^ ]*\) .*/\1/p')
	# Not the metapackages of a series, like 6.12-amd64.
	names=$(echo "$names" | grep -E '^[0-9]+\.[0-9]+\.[0-9]' | grep -E -- "$1" | sort -V)
	[ -n "$names" ] || die "no headers match $1"
	for version in $(echo "$names" | sed 's/-\(cloud-\|rt-\)\?amd64$//' | sort -Vu); do
		flavours=$(echo "$names" | awk -v v="$version-" 'index($0, v) == 1 { print substr($0, length(v) + 1) }')
		# shellcheck disable=SC2086 # words
		unpack "$version" $flavours
		for flavour in $flavours; do
			last=$version-$flavour
			if build "$last"; then
				say ok "$last"
			else
				say FAIL "$last: $(grep -m 1 -E 'error|Error' "$R/log")"
			fi
		done
	done
	dkms "$last"
	clean
	rm -rf "$R/m"
	echo "$ok passed, $failed failed"
	[ $failed -eq 0 ]
}

# KERNEL
module() {
	local out=$Q/mod/rmid-$1 flavour=amd64

	case $1 in
	*-cloud-amd64) flavour=cloud-amd64 ;;
	*-rt-amd64) flavour=rt-amd64 ;;
	esac
	unpack "${1%-"$flavour"}" "$flavour"
	build "$1" || die "$1: $(grep -m 1 -E 'error|Error' "$R/log")"
	mkdir -p "$out"
	cp "$R/m/ttmon_rmid.ko" "$out/"
	clean
	rm -rf "$R/m"
}

newest() {
	local kernel more

	kernel=$(inside apt-cache search --names-only '^linux-image-[0-9].*-cloud-amd64$' |
		sed -n 's/^linux-image-\([0-9]*\.[0-9]*\.[0-9][^ ]*\) .*/\1/p' | grep -v unsigned | sort -V | tail -n 1)
	[ -n "$kernel" ] || die "apt knows no cloud kernel"
	if [ ! -d "$Q/k/$kernel" ]; then
		rm -rf "$R/debs"
		mkdir -p "$R/debs" "$Q/k"
		# The image itself, and the packages that newer ones have it in.
		more=$(inside apt-cache depends "linux-image-$kernel" | sed -n 's/^ *Depends: //p' |
			grep -E '^linux-(binary|modules|base)-[0-9]' || true)
		# shellcheck disable=SC2086 # words
		inside sh -c 'cd /debs && apt-get -qq download "$@"' - "linux-image-$kernel" $more
		for deb in "$R"/debs/*.deb; do
			dpkg -x "$deb" "$Q/k/$kernel.new"
		done
		mv "$Q/k/$kernel.new" "$Q/k/$kernel"
		rm -rf "$R/debs"
	fi
	echo "$kernel"
}

[ "$(id -u)" -eq 0 ] || die "needs root"
[ -e "$R/ready" ] || make_root
inside apt-get -qq update
case ${1:-.} in
--module) module "$2" ;;
--newest) newest ;;
*) every "${1:-.}" ;;
esac
