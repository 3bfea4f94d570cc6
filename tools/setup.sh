#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# setup.sh: install what building and testing ttmon needs, on Debian 12 and 13 and Ubuntu 24.04, and
# mount the two kernel file systems that tracing needs (tracefs, bpffs). Says what it does; does and
# says nothing when nothing is missing. `make check`, `make check-fast` and `make demo` run it first,
# `make` never does. Without root it only names what is missing.

set -u
me=tools/setup.sh

packages=(gcc g++ libc6-dev make pkg-config clang clang-format clang-tidy
	libbpf-dev libelf-dev zlib1g-dev libjansson-dev
	libmicrohttpd-dev libncurses-dev libzstd-dev liblz4-dev libiberty-dev libcmocka-dev python3
	python3-jsonschema python3-yaml dpkg-dev curl)

say() { echo "$me: $*"; }
die() {
	echo "$me: $*" >&2
	exit 1
}

installed() {
	dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# Ubuntu packs bpftool per kernel version behind a wrapper that refuses on any other kernel: any of them will do.
have_bpftool() {
	ls /usr/lib/linux-tools-*/bpftool >/dev/null 2>&1 || PATH=$PATH:/usr/sbin bpftool version >/dev/null 2>&1
}

# libFuzzer and clang's sanitizers: a package of their own on Debian 12 and newer, part of libclang-common before.
have_clang_rt() {
	ls "$(clang -print-resource-dir 2>/dev/null)"/lib/*/libclang_rt.fuzzer*.a >/dev/null 2>&1
}

known() {
	apt-cache show "$1" 2>/dev/null | grep -q '^Package:'
}

clang_rt_package() {
	if known libclang-rt-dev; then
		echo libclang-rt-dev
	else
		echo "libclang-rt-$(clang -dumpversion 2>/dev/null | cut -d. -f1)-dev"
	fi
}

find_missing() {
	missing=()
	for p in "${packages[@]}"; do
		installed "$p" || missing+=("$p")
	done
	if ! have_bpftool; then
		case "$ID ${ID_LIKE:-}" in
		*ubuntu*) missing+=(linux-tools-common linux-tools-generic) ;;
		*) missing+=(bpftool) ;;
		esac
	fi
}

# The real server and promtool, for tests. Not installed, which would start a service on port 9090:
# unpacked where the tests look.
prometheus_dir=/var/cache/ttmon/prometheus

have_prometheus() {
	command -v promtool >/dev/null || [ -x $prometheus_dir/usr/bin/promtool ]
}

unpack_prometheus() {
	local tmp deb wanted=(prometheus)

	# Debian 13 packs promtool by itself.
	! known promtool || wanted+=(promtool)
	say "unpacking ${wanted[*]} into $prometheus_dir"
	tmp=$(mktemp -d) || return
	if (cd "$tmp" && chmod 755 . && apt-get -qq -o APT::Sandbox::User=root download "${wanted[@]}" \
		>/dev/null 2>&1) &&
		mkdir -p $prometheus_dir; then
		for deb in "$tmp"/*.deb; do
			dpkg -x "$deb" $prometheus_dir
		done
	else
		say "cannot get the package prometheus: the tests that need it will be skipped"
	fi
	rm -rf "$tmp"
}

# A reader of Parquet that is not ours, for tests: two npm packages, where there are node and npm.
parquet_dir=/var/cache/ttmon/parquet

fetch_parquet() {
	command -v node >/dev/null && command -v npm >/dev/null || return
	say "fetching hyparquet into $parquet_dir"
	mkdir -p $parquet_dir
	timeout -k 5 90 npm install --prefix $parquet_dir --no-audit --no-fund --ignore-scripts --silent \
		hyparquet@1.33.0 hyparquet-compressors@1.1.2 >/dev/null 2>&1 ||
		say "cannot get hyparquet from npm: the tests that need it will be skipped"
}

mount_missing() {
	local type=$1 dir=$2

	[ "$(stat -f -c %T "$dir" 2>/dev/null)" = "$3" ] && return
	if mount -t "$type" "$type" "$dir" 2>/dev/null; then
		say "mounted $type on $dir"
	else
		say "cannot mount $type on $dir: tests that trace will fail"
	fi
}

apt_get() {
	local out

	out=$(DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" 2>&1) ||
		die "apt-get $1 failed: $(echo "$out" | tail -n 1)"
}

install() {
	say "installing $*"
	apt_get install --no-install-recommends "$@"
}

ID=unknown
[ -r /etc/os-release ] && . /etc/os-release
# The page of `ttmon view` is tested in a browser. Ubuntu's is a snap: there those tests are skipped. tools/python is
# tested with pandas.
[ "${1:-} $ID" != "check debian" ] || packages+=(chromium fonts-dejavu-core python3-pandas)
# The screens are tested in a terminal, the packages with lintian.
[ "${1:-}" != check ] || packages+=(tmux lintian)

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
	find_missing
	if [ ${#missing[@]} -gt 0 ] || ! have_clang_rt; then
		if [ "$(id -u)" -ne 0 ]; then
			die "missing: ${missing[*]:-$(clang_rt_package)}: run $me as root"
		fi
		say "updating the package lists"
		apt_get update
		[ ${#missing[@]} -eq 0 ] || install "${missing[@]}"
		# Which clang runtime fits is known only now that there is a clang.
		have_clang_rt || install "$(clang_rt_package)"
		say "done"
	fi
	pkg-config --atleast-version=1.1 libbpf ||
		die "libbpf $(pkg-config --modversion libbpf) is too old to build with, 1.1 is needed;" \
			"programs built elsewhere with STATIC=1 do run here"
else
	say "neither Debian nor Ubuntu: cannot check for ${packages[*]} bpftool"
fi

if [ "$(id -u)" -eq 0 ]; then
	if command -v apt-get >/dev/null && ! have_prometheus; then
		unpack_prometheus
	fi
	if [ "${1:-}" = check ] && ! [ -d $parquet_dir/node_modules/hyparquet-compressors ]; then
		fetch_parquet
	fi
	mount_missing tracefs /sys/kernel/tracing tracefs
	mount_missing bpf /sys/fs/bpf bpf_fs
fi
exit 0
