#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh SUITE...: build and run test suites (lint builds unit tsan fuzz fuzz-short e2e e2e-fast vm
# vm-short release) and count what they say.
#
# Every suite prints one line per test: "ok NAME", "FAIL NAME: why" or "SKIP NAME: why". The last line
# is "N passed, N failed[, N skipped]" and the status is 0 only when nothing failed and something
# passed. A suite that does not build or ends badly without saying so is a failure of its own.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

O=${O:-.output}
MAKE=${MAKE:-make}
PYTHON=${PYTHON:-/usr/bin/python3}
FUZZ_SECS=${FUZZ_SECS:-600}
export PYTHONDONTWRITEBYTECODE=1
# Warnings are errors in what is built here.
export WERROR=${WERROR:-1}
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# Under `make -j` the job server of that make is used, otherwise every core.
case "${MAKEFLAGS:-}" in
*jobserver*) jobs=() ;;
*) jobs=(-j"$(nproc)") ;;
esac

results=$(mktemp) && scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$results" "$scratch"' EXIT

# build NAME TARGET...: with -k, so that what does build is still run.
build() {
	local name=$1
	shift
	"$MAKE" --no-print-directory "${jobs[@]}" -k "$@" >&2 && return 0
	echo "FAIL builds/$name: does not build"
	return 1
}

# abreast N FUNCTION ITEM...: one process each, N at a time; what each says comes out whole and in order.
abreast() {
	local width=$1 fn=$2 n=0 i
	shift 2

	for i in "$@"; do
		while [ "$(jobs -rp | wc -l)" -ge "$width" ]; do
			wait -n
		done
		"$fn" "$i" >"$scratch/out.$n" 2>"$scratch/err.$n" &
		n=$((n + 1))
	done
	wait
	for ((i = 0; i < n; i++)); do
		cat "$scratch/err.$i" >&2
		cat "$scratch/out.$i"
	done
}

# A cmocka program: its tests are counted from its TAP lines, its output is shown when it fails.
run_program() {
	local program=$1 label=$2 log=$scratch/log.${2//\//.} n rc

	[ -x "$program" ] || {
		echo "FAIL $label: not built"
		return
	}
	# One that hangs is ended; the slowest takes some seconds on an idle machine, and a minute on one
	# with a load of 4.
	CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 600 "$program" >"$log" 2>&1
	rc=$?
	if [ $rc -eq 77 ]; then
		echo "SKIP $label: $(tail -n 1 "$log")"
	elif [ $rc -ne 0 ]; then
		sed 's/^/    /' "$log" >&2
		echo "FAIL $label: exit status $rc"
	else
		n=$(grep -c '^ok ' "$log")
		if [ "$n" -eq 0 ]; then
			echo "FAIL $label: no test in it ran"
		else
			echo "ok $label ($n tests)"
			sed -n "s/.*# SKIP *\(.*\)/SKIP ${label//\//\\/}: \1/p" "$log"
		fi
	fi
}

suite_lint() {
	build lint lint-build
	script tests/lint/lint.py --objects "$O/obj"
}

# The static programs must want nothing but libmicrohttpd and glibc, and no glibc newer than Ubuntu
# 22.04's. That holds where they are built for others, on Debian 12; what a newer system links is good
# for newer systems.
check_static() {
	local glibc p bad

	glibc=$(getconf GNU_LIBC_VERSION)
	if [ "$(printf 'glibc 2.36\n%s\n' "$glibc" | sort -V | tail -n 1)" != "glibc 2.36" ]; then
		echo "SKIP builds/static: links; whether it runs on older systems shows where glibc is 2.36 or older," \
			"here $glibc"
		return
	fi
	for p in "$O/static/ttmond" "$O/static/ttmon"; do
		bad=$(readelf -d "$p" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
			grep -vE '^(libmicrohttpd|libc|ld-linux.*)\.so' | xargs)
		bad+=$(objdump -T "$p" | grep -oE 'GLIBC_2\.(3[6-9]|[4-9][0-9])' | sort -u | xargs)
		[ -z "$bad" ] || {
			echo "FAIL builds/static: ${p##*/} needs $bad"
			return
		}
	done
	echo "ok builds/static"
}

suite_builds() {
	build gcc all && echo "ok builds/gcc"
	build clang clang-build && echo "ok builds/clang"
	build static static-build && check_static
	build bpf-arm64 bpf-arm64 && echo "ok builds/bpf-arm64"
}

run_unit() { run_program "$O/asan/tests/$1" "unit/$1"; }
run_tsan() { run_program "$O/tsan/tests/$1" "tsan/$1"; }
# In whatever folder below tests/unit they are; the programs lie in one.
unit_tests() { find tests/unit -name 'test_*.c' -exec basename -s .c {} + | sort; }

suite_unit() {
	build unit unit-build
	# One more than there are CPUs: some of them wait for the disk.
	abreast $(($(nproc) + 1)) run_unit $(unit_tests)
	script tests/e2e/check_schema.py --write "$O/asan/tests/test_db"
}

# A script that prints our lines itself; 77 means that it has skipped and said why. It has
# SCRIPT_SECS, 1500 when not said.
script() {
	local log=$scratch/script rc

	timeout -k 30 "${SCRIPT_SECS:-1500}" "$PYTHON" "$@" | tee "$log"
	rc=${PIPESTATUS[0]}
	if [ "$rc" -ne 0 ] && [ "$rc" -ne 77 ] && ! grep -q '^FAIL ' "$log"; then
		echo "FAIL $1: ended with status $rc"
	fi
}

suite_tsan() {
	build tsan tsan-build
	abreast "$(nproc)" run_tsan $(unit_tests)
}

# A long run keeps the inputs that it finds in .output/fuzz/new and goes on from them; a short one
# starts from the committed corpus and one seed, so that it says the same tomorrow. The corpus grows
# by hand alone.
fuzz() {
	fuzz_secs=$1 fuzz_keep=$2
	shift 2
	fuzz_options=("$@")
	build fuzz fuzz-build
	abreast "$(nproc)" fuzz_one $(basename -s .c tests/fuzz/fuzz_*.c)
}

fuzz_one() {
	local t=$1 x=${1#fuzz_} log=$scratch/log.$1 runs

	mkdir -p "$fuzz_keep/$x" "$O/fuzz/crash"
	if [ ! -x "$O/fuzz/bin/$t" ]; then
		echo "FAIL fuzz/$x: not built"
	elif [ ! -d "tests/fuzz/corpus/$x" ]; then
		echo "FAIL fuzz/$x: no corpus in tests/fuzz/corpus/$x"
	elif "$O/fuzz/bin/$t" -max_total_time="$fuzz_secs" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		"${fuzz_options[@]}" \
		-artifact_prefix="$O/fuzz/crash/$x-" "$fuzz_keep/$x" "tests/fuzz/corpus/$x" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "ok fuzz/$x (${runs:-0} runs in $fuzz_secs s)"
	else
		grep -vE '^#[0-9]+|^INFO:' "$log" | head -n 30 | sed 's/^/    /' >&2
		echo "FAIL fuzz/$x: $(sed -n 's/.*Test unit written to //p' "$log")"
	fi
}

suite_fuzz() { fuzz "$FUZZ_SECS" "$O/fuzz/new"; }
suite_fuzz-short() { fuzz 10 "$scratch/new" -seed=1; }

e2e() {
	if [ "$(id -u)" -ne 0 ]; then
		echo "SKIP e2e: needs root: as root: make e2e"
		return
	fi
	build e2e e2e-build
	script tests/e2e/run.py "$@"
}

suite_e2e() { SCRIPT_SECS=3600 e2e; }
suite_e2e-fast() { e2e --fast; }

# Other kernels than this one, in QEMU.
vm() {
	if [ "$(id -u)" -ne 0 ]; then
		echo "SKIP vm: needs root: as root: make check-vm"
		return
	fi
	build vm e2e-build bpf-build
	script tests/vm/run.py "$@"
}

suite_vm() { SCRIPT_SECS=7200 vm; }
suite_vm-short() { SCRIPT_SECS=600 vm --short; }

# Another release of Debian or Ubuntu, in a root of its own.
suite_release() {
	SCRIPT_SECS=7200 script tests/release/release.py --parts "${RELEASE_PARTS:-build,unit,demo}" \
		--compilers "${RELEASE_COMPILERS:-gcc,clang}" "${RELEASE:-trixie}"
}

start=$SECONDS
for suite in "$@"; do
	if ! declare -F "suite_$suite" >/dev/null; then
		echo "run.sh: no suite '$suite'" >&2
		exit 2
	fi
	echo "== $suite"
	began=$SECONDS
	"suite_$suite" | tee -a "$results"
	echo "== $suite took $((SECONDS - began)) s"
done

passed=$(grep -c '^ok ' "$results")
failed=$(grep -c '^FAIL ' "$results")
skipped=$(grep -c '^SKIP ' "$results")
echo "== $((SECONDS - start)) s"
grep '^FAIL ' "$results" | sed 's/^/  /'
summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary+=", $skipped skipped"
echo "$summary"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
