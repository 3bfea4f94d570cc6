#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh: the checks of the end-to-end tests on a real GPU with a real driver; SKIP elsewhere. As root, after `make all`.
#
# Prints what a driver machine alone can tell (facts/cuda.md 5.4): how the exported functions of libcuda begin, and whether
# cuGetProcAddress gives the exported entry or another one; then "ok", "FAIL" or "SKIP" lines; then what memory-access traces
# cost on this GPU, as Markdown. CUDA_HOME: the toolkit, where it is not in /usr/local. TORCH_PYTHON: a Python with PyTorch.
#
#	run.sh --standin [OPTIONS OF memtrace.py]	memory-access traces on the stand-in driver, after `make e2e-build`: that this works

set -u
cd "$(dirname "$0")/../.." || exit 2
O=${O:-.output}
export O PYTHONDONTWRITEBYTECODE=1
CC=${CC:-cc}
D=${D:-$O/tests/gpu}
CFLAGS=(-O2 -g -Wall -Wextra)
failed=0

skip() {
	echo "SKIP gpu: $1"
	exit "$failed"
}

build_driver_program() {
	mkdir -p "$D"
	"$CC" "${CFLAGS[@]}" -o "$D/memtrace_drv" tests/gpu/memtrace.c tests/gpu/memtrace_drv.c -ldl || exit 1
}

# Machine code for this GPU and PTX for the oldest one that the toolkit knows; the machine code is made of the same PTX.
build_runtime_program() {
	local nvcc=$cuda/bin/nvcc oldest capability

	rm -f "$D/memtrace_rt" "$D/libmemtrace_cupti.so"
	[ -x "$nvcc" ] || return
	oldest=$("$nvcc" --list-gpu-arch | sort -V | head -n 1)
	capability=$("$D/memtrace_drv" --image tests/gpu/memtrace.ptx --probe | sed -n 's/^arch //p')
	"$nvcc" -O3 -lineinfo -std=c++17 -gencode "arch=$oldest,code=[sm_$capability,$oldest]" -c tests/gpu/memtrace.cu -o "$D/memtrace.o" &&
		"$CC" "${CFLAGS[@]}" -I "$cuda/include" -o "$D/memtrace_rt" tests/gpu/memtrace.c tests/gpu/memtrace_rt.c "$D/memtrace.o" \
			-L "$libs" -Wl,-rpath,"$libs" -lcudart -lstdc++ -ldl || {
		failed=1
		echo "FAIL gpu/memtrace: its program for the runtime does not build"
	}
}

build_cupti() {
	local where

	for where in "$cuda" "$cuda/extras/CUPTI"; do
		[ -e "$where/include/cupti_sass_metrics.h" ] || continue
		for dir in "$where/lib64" "$where/lib" "$libs"; do
			[ -e "$dir/libcupti.so" ] || continue
			"$CC" "${CFLAGS[@]}" -shared -fPIC -fvisibility=hidden -I "$cuda/include" -I "$where/include" -o "$D/libmemtrace_cupti.so" \
				tests/gpu/cupti.c -L "$dir" -Wl,-rpath,"$(realpath "$dir")" -Wl,-z,defs -lcupti && return
			failed=1
			echo "FAIL gpu/memtrace: what asks CUPTI does not build"
		done
	done
}

if [ "${1:-}" = --standin ]; then
	build_driver_program
	python3 tests/gpu/memtrace.py "$@" "$D"
	exit
fi

[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -e /dev/nvidiactl ] || skip "no NVIDIA driver (/dev/nvidiactl)"
driver=$(PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*x86-64.*=> //p; s/.*libcuda\.so\.1 .*AArch64.*=> //p' | head -n 1)
[ -n "$driver" ] || skip "no libcuda.so.1"
cuda=${CUDA_HOME:-$(ls -d /usr/local/cuda /usr/local/cuda-[0-9]* 2>/dev/null | head -n 1)}
[ -e "$cuda/include/cuda.h" ] || skip "no CUDA headers; set CUDA_HOME"
runtime=$(ls "$cuda"/lib64/libcudart.so "$cuda"/lib/libcudart.so 2>/dev/null | head -n 1)
[ -n "$runtime" ] || skip "no libcudart in $cuda"
libs=$(realpath "$(dirname "$runtime")")

mkdir -p "$D"
"$CC" "${CFLAGS[@]}" -I "$cuda/include" -o "$D/procaddr" tests/gpu/procaddr.c -ldl || exit 1
"$CC" "${CFLAGS[@]}" -fno-omit-frame-pointer -I "$cuda/include" -o "$D/real" tests/gpu/real.c -L "$libs" -Wl,-rpath,"$libs" -lcudart || exit 1

echo "driver: $(realpath "$driver")"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
"$D/procaddr" "$driver" include/ttmon/fns.h || {
	failed=1
	echo "FAIL gpu/procaddr"
}

[ -x "$O/bin/ttmond" ] || skip "no $O/bin/ttmond: make all"
python3 tests/gpu/check.py "$D/real" "$O/demo/workload" "$libs" || failed=1
build_driver_program
build_runtime_program
build_cupti
python3 tests/gpu/memtrace.py "$D" || failed=1
exit "$failed"
