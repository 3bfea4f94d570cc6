#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# away.sh BUNDLE [OPTIONS OF run.sh]: the bundle of `make gpu-bundle` in a root of its own, on the
# stand-in libraries. As root.
#
# The root holds Debian's smallest system and Python. Nothing of this machine's /usr is in it, so
# that a library which is missing in the bundle is missing there. AWAY_ROOT: such a root; AWAY_SUITE
# (trixie) is fetched there where it does not exist. Where this machine has CUDA, it is mounted in
# it. One line at the end: ok, FAIL or SKIP.

set -u
bundle=$(realpath -e "${1:?}") || exit 2
shift
suite=${AWAY_SUITE:-trixie}
root=${AWAY_ROOT:-/var/cache/ttmon/away-$suite}
cuda=$(ls -d /usr/local/cuda-13* 2>/dev/null | sort -V | tail -n 1)

skip() {
	echo "SKIP gpu/away: $1"
	exit 0
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
if [ ! -e "$root/usr/bin/python3" ]; then
	command -v debootstrap >/dev/null || skip "no debootstrap"
	mkdir -p "$root.new" || exit 2
	debootstrap --variant=minbase --include=python3 "$suite" "$root.new" >"$root.log" 2>&1 || skip \
		"no $suite here: $(tail -n 1 "$root.log")"
	rm -rf "$root.new/var/cache/apt/archives" && mv "$root.new" "$root" || exit 2
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/root" "$work/away"
cp -r "$bundle" "$work/away/some-where"

# Mounts end with the namespace.
unshare --mount --propagation private bash -c '
	root=$1 work=$2 cuda=$3
	shift 3
	mount --bind "$root" "$work/root" && mount -o remount,bind,ro "$work/root" || exit 2
	for dir in proc sys dev; do
		mount --rbind "/$dir" "$work/root/$dir" || exit 2
	done
	mount -t tmpfs tmpfs "$work/root/tmp" && mount -t tmpfs tmpfs "$work/root/run" || exit 2
	mount --bind "$work/away" "$work/root/opt" || exit 2
	if [ -n "$cuda" ]; then
		mount -t tmpfs tmpfs "$work/root/usr/local" && mkdir "$work/root/usr/local/cuda-13.0" &&
			mount --bind -o ro "$cuda" "$work/root/usr/local/cuda-13.0" || exit 2
	fi
	exec chroot "$work/root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		TTMON_TEST_SLOW="${TTMON_TEST_SLOW:-1}" \
		"/opt/some-where/run.sh" --standin "$@"
' away "$root" "$work" "$cuda" "$@"
status=$?
results=${AWAY_OUT:-$(dirname "$bundle")/gpu-away}
mkdir -p "$results" && cp "$work/away/some-where/results/"* "$results/" 2>/dev/null
wrong=$(python3 - "$results/gpu.json" "$status" <<'END'
import json, sys

# libc alone may come from elsewhere; its parts by their names.
LIBC = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so")
wrong = [] if sys.argv[2] == "0" else [f"status {sys.argv[2]}"]
with open(sys.argv[1], encoding="utf-8") as f:
    results = json.load(f)
if not results["ended"]:
    wrong.append("it was cut off")
for part in results["parts"]:
    if part["name"] == "facts":
        loads = part["facts"]["programs"]["loads"]
        wrong += [line for line in loads if "/out/bin/../lib/" not in line and not any(name in line for name in LIBC)]
        if not any("/out/bin/../lib/libbpf" in line for line in loads):
            wrong += [f"it loads no library of the bundle: {loads}"]
print("; ".join(wrong))
END
)
if [ -n "$wrong" ]; then
	echo "FAIL gpu/away: $wrong"
	exit 1
fi
echo "ok gpu/away: in $suite, with results in $results"
