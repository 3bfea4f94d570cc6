#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh: the checks of the end-to-end tests on a real GPU with a real driver; SKIP elsewhere. As root, after `make all`.
#
# Prints what a driver machine alone can tell (facts/cuda.md 5.4): how the exported functions of libcuda begin, and whether
# cuGetProcAddress gives the exported entry or another one; then "ok", "FAIL" or "SKIP" lines.

set -u
cd "$(dirname "$0")/../.." || exit 2
O=${O:-.output}
CC=${CC:-cc}
D=$O/tests/gpu

skip() {
	echo "SKIP gpu: $1"
	exit 0
}

[ "$(id -u)" -eq 0 ] || skip "needs root"
[ -e /dev/nvidiactl ] || skip "no NVIDIA driver (/dev/nvidiactl)"
driver=$(PATH="$PATH:/usr/sbin:/sbin" ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*x86-64.*=> //p; s/.*libcuda\.so\.1 .*AArch64.*=> //p' | head -n 1)
[ -n "$driver" ] || skip "no libcuda.so.1"
cuda=${CUDA_HOME:-$(ls -d /usr/local/cuda /usr/local/cuda-[0-9]* 2>/dev/null | head -n 1)}
[ -e "$cuda/include/cuda.h" ] || skip "no CUDA headers; set CUDA_HOME"
runtime=$(ls "$cuda"/lib64/libcudart.so "$cuda"/lib/libcudart.so 2>/dev/null | head -n 1)
[ -n "$runtime" ] || skip "no libcudart in $cuda"

mkdir -p "$D"
"$CC" -O2 -g -Wall -Wextra -I "$cuda/include" -o "$D/procaddr" tests/gpu/procaddr.c -ldl || exit 1
"$CC" -O2 -g -Wall -Wextra -fno-omit-frame-pointer -I "$cuda/include" -o "$D/real" tests/gpu/real.c \
	-L "$(dirname "$runtime")" -Wl,-rpath,"$(realpath "$(dirname "$runtime")")" -lcudart || exit 1

echo "driver: $(realpath "$driver")"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
"$D/procaddr" "$driver" include/ttmon/fns.h || echo "FAIL gpu/procaddr"

[ -x "$O/bin/ttmond" ] || skip "no $O/bin/ttmond: make all"
O=$O PYTHONDONTWRITEBYTECODE=1 python3 tests/gpu/check.py "$D/real" "$O/demo/workload" "$(dirname "$runtime")"
