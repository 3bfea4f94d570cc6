#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bpftrace.sh [ROUNDS]: what a traced copy costs its caller with ttmond and with bpftrace printing the
# same fields. Both have their probes in at once, at copies of the same library, and one program calls
# the copies in turns (bench_probe --peer). bpftrace does its printing on the CPUs CPUS=0 and has 20
# ms for it after each block of calls; PAUSE_MS=0 gives it none, and it loses events. Needs root and
# bpftrace; without them one line says SKIP.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 2

O=${O:-.output}
rounds=${1:-51}
calls=500 # a block of bench_probe; one round more is made to warm up

command -v bpftrace >/dev/null || {
	echo "SKIP bpftrace: bpftrace is not installed"
	exit 0
}
[ "$(id -u)" -eq 0 ] || {
	echo "SKIP bpftrace: needs root"
	exit 0
}

work=$(mktemp -d) || exit 2
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT
lib=$work/libnothing.so
cp "$O/tests/bench/libnothing.so" "$lib" || exit 2

cat >"$work/copies.bt" <<EOF
uprobe:$lib:cudaMemcpyAsync {
	printf("async %lx %lx %lu %d %lx %d %lu\n", arg0, arg1, arg2, arg3, arg4, tid, nsecs);
}
uprobe:$lib:cudaMemcpy {
	@at[tid] = nsecs; @dst[tid] = arg0; @src[tid] = arg1; @bytes[tid] = arg2; @kind[tid] = arg3;
}
uretprobe:$lib:cudaMemcpy /@at[tid]/ {
	printf("sync %lx %lx %lu %d %d %lu %lu %d\n", @dst[tid], @src[tid], @bytes[tid], @kind[tid], tid,
		@at[tid], nsecs, retval);
}
END { clear(@at); clear(@dst); clear(@src); clear(@bytes); clear(@kind); }
EOF

# bench_probe takes the last CPU.
taskset -c "${CPUS:-0}" bpftrace -B full -o "$work/out" "$work/copies.bt" >/dev/null 2>"$work/err" &
pid=$!
for _ in $(seq 200); do
	[ "$(PATH="$PATH:/usr/sbin" bpftool perf show 2>/dev/null | grep -c "$lib")" -lt 3 ] || break
	kill -0 "$pid" 2>/dev/null || break
	sleep 0.1
done
kill -0 "$pid" 2>/dev/null || {
	echo "SKIP bpftrace: it does not run here: $(tail -n 1 "$work/err")"
	pid=
	exit 0
}

"$O/tests/bench/bench_probe" --rounds "$rounds" --peer "$lib" --pause "${PAUSE_MS:-20}" || exit 1
kill -INT "$pid"
wait "$pid"
pid=
made=$((calls * (rounds + 1)))
for what in async sync; do
	echo "$what: bpftrace printed $(grep -c "^$what " "$work/out") of $made calls, ttmond saw all"
done
grep -h '^Lost' "$work/out" "$work/err" | tail -n 1
exit 0
