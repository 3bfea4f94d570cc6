#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh: the checks of the end-to-end tests on a real GPU with a real driver, in parts, the most
# valuable first; README.md beside it says what the parts are. As root, after `make all`, or in the
# folder that `make gpu-bundle` makes. It ends within 8 minutes.
#
#	run.sh [--standin] [--only PART]... [--limit SECONDS] [-- OPTIONS OF memtrace.py]
#
# Each check prints "ok", "FAIL" or "SKIP" with what is missing. Everything goes into $OUT/gpu.json
# as well (OUT: .output/gpu-results, in the bundle: results). --standin: on the stand-in libraries,
# after `make e2e-build`: it shows that this works.
#
# CUDA_HOME: the toolkit, where it is not in /usr/local. TORCH_PYTHON: a Python with PyTorch.
# GPU_LIBCUDA, GPU_CUDART: libraries to take instead of those that are found.

set -u
cd "$(dirname "$0")/../.." || exit 2
[ -e out/bundle.json ] && O=${O:-out}
O=${O:-.output}
export O PYTHONDONTWRITEBYTECODE=1
PYTHON=${PYTHON:-$(command -v python3)}
CC=${CC:-$(command -v cc || command -v gcc || echo cc)}
D=${D:-$O/tests/gpu}
CFLAGS=(-O2 -g -Wall -Wextra)
here=tests/gpu

say() {
	echo "$1 gpu/$2${3:+: $3}"
}

# $(newest PATTERN...): the path that sorts last.
newest() {
	ls -d "$@" 2>/dev/null | sort -V | tail -n 1
}

# Prints the path of the library that a program gets by this name.
loaded='
import ctypes, os, sys
ctypes.CDLL(sys.argv[1])
paths = (line.split()[-1] for line in open("/proc/self/maps"))
print(next(path for path in paths if os.path.basename(path).startswith(sys.argv[1][:-2])))'

find_libraries() {
	local standin=$O/tests/standin/lib

	GPU_LIBCUDA=${GPU_LIBCUDA:-}
	GPU_CUDART=${GPU_CUDART:-}
	cuda=${CUDA_HOME:-$(newest /usr/local/cuda-[0-9]*)}
	cuda=${cuda:-/usr/local/cuda}
	if [ "$GPU_STANDIN" = 1 ]; then
		GPU_LIBCUDA=${GPU_LIBCUDA:-$(realpath -e "$standin/libcuda.so.1" 2>/dev/null)}
		GPU_CUDART=${GPU_CUDART:-$(realpath -e "$standin/libcudart.so.13" 2>/dev/null)}
		return
	fi
	# Programs open it by its name: where the system does not find it, it is told where.
	if [ -z "$GPU_LIBCUDA" ]; then
		GPU_LIBCUDA=$("$PYTHON" -c "$loaded" libcuda.so.1 2>/dev/null)
	fi
	if [ -z "$GPU_LIBCUDA" ]; then
		GPU_LIBCUDA=$(newest /usr/local/nvidia/lib64/libcuda.so.1 /usr/local/nvidia/lib/libcuda.so.1 \
			/usr/lib/wsl/lib/libcuda.so.1)
	fi
	if [ -n "$GPU_LIBCUDA" ] && [ -z "$("$PYTHON" -c "$loaded" libcuda.so.1 2>/dev/null)" ]; then
		export LD_LIBRARY_PATH="$(dirname "$GPU_LIBCUDA")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	fi
	GPU_CUDART=${GPU_CUDART:-$(newest "$cuda"/lib64/libcudart.so.[0-9]* "$cuda"/lib/libcudart.so.[0-9]* \
		"$cuda"/targets/*/lib/libcudart.so.[0-9]*)}
}

# What was built where the bundle was made is taken where nothing can be built.
# $(build NAME SOURCE... [FLAGS])
build() {
	local name=$1 log

	shift
	log=$("$CC" "${CFLAGS[@]}" -o "$D/$name.new" "$@" 2>&1) && mv "$D/$name.new" "$D/$name" && return
	[ -e "$D/$name" ] && echo "  $name: the one of the bundle is used (${log%%$'\n'*})" && return
	say SKIP "build/$name" "${log%%$'\n'*}"
}

build_real() {
	local libs

	[ -n "$GPU_CUDART" ] && [ -e "$cuda/include/cuda_runtime_api.h" ] || return
	libs=$(dirname "$GPU_CUDART")
	build real $here/real.c -I "$cuda/include" -Wl,-rpath,"$libs" "$GPU_CUDART"
}

# Machine code for this GPU and PTX for the oldest one that the toolkit knows; the machine code is
# made of the same PTX.
build_runtime_program() {
	local nvcc=$cuda/bin/nvcc oldest capability libs log

	[ -x "$nvcc" ] && [ -n "$GPU_CUDART" ] || return
	libs=$(dirname "$GPU_CUDART")
	oldest=$("$nvcc" --list-gpu-arch | sort -V | head -n 1)
	capability=$("$D/memtrace_drv" --image $here/memtrace.ptx --probe 2>/dev/null | sed -n 's/^arch //p')
	log=$("$nvcc" -O3 -lineinfo -std=c++17 -gencode "arch=$oldest,code=[sm_${capability:-90},$oldest]" \
		-c $here/memtrace.cu \
		-o "$D/memtrace.o" 2>&1 &&
		"$CC" "${CFLAGS[@]}" -I "$cuda/include" -o "$D/memtrace_rt.new" $here/memtrace.c $here/memtrace_rt.c \
			"$D/memtrace.o" \
			"$GPU_CUDART" -Wl,-rpath,"$libs" -lstdc++ -ldl 2>&1) && mv "$D/memtrace_rt.new" \
			"$D/memtrace_rt" && return
	[ -e "$D/memtrace_rt" ] && echo "  memtrace_rt: the one of the bundle is used (${log%%$'\n'*})" && return
	failed=1
	say FAIL build/memtrace_rt "its program for the runtime does not build: ${log//$'\n'/ / }"
}

build_cupti() {
	local where dir log

	for where in "$cuda" "$cuda/extras/CUPTI"; do
		[ -e "$where/include/cupti_sass_metrics.h" ] || continue
		for dir in "$where/lib64" "$where/lib"; do
			[ -e "$dir/libcupti.so" ] || continue
			log=$("$CC" "${CFLAGS[@]}" -shared -fPIC -fvisibility=hidden -I "$cuda/include" \
				-I "$where/include" \
				-o "$D/libmemtrace_cupti.so" $here/cupti.c -L "$dir" -Wl,-rpath,"$(realpath "$dir")" \
				-Wl,-z,defs -lcupti 2>&1) && return
			failed=1
			say FAIL build/cupti "what asks CUPTI does not build: ${log//$'\n'/ / }"
		done
	done
}

GPU_STANDIN=${GPU_STANDIN:-0}
failed=0
parts=()
limit=455
while [ $# -gt 0 ]; do
	case $1 in
	--standin) GPU_STANDIN=1 ;;
	--only)
		parts+=("$1" "${2:?}")
		shift
		;;
	--limit)
		limit=${2:?}
		shift
		;;
	--build-accesses) build_accesses=1 ;;
	--) break ;;
	*)
		sed -n 's/^#\t//p' "$here/run.sh" >&2
		exit 2
		;;
	esac
	shift
done
case $PWD in
*[\ :]*)
	say SKIP run "$PWD has a blank or a colon, and LD_PRELOAD cannot name what lies there: move it"
	exit 0
	;;
esac
[ -n "$PYTHON" ] || { say SKIP run "no python3"; exit 0; }
find_libraries

# Our programs need a libc that is not older than the one they were linked with.
needs=$(sed -n 's/.*"needs_glibc": "\([0-9.]*\)".*/\1/p' out/bundle.json 2>/dev/null)
has=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/.* //')
if [ -n "$needs" ] && [ "$(printf '%s\n' "$needs" "${has:-0}" | sort -V | head -n 1)" != "$needs" ]; then
	say SKIP run \
		"the programs of this bundle need glibc $needs, and here is ${has:-no glibc}:"\
" make gpu-bundle on an older system"
	exit 0
fi

OUT=${OUT:-$([ "$O" = out ] && echo results || echo "$O/gpu-results")}
mkdir -p "$D" "$OUT"
OUT=$(realpath "$OUT")
D=$(realpath "$D")
export D CC CUDA_HOME="$cuda" GPU_CUDA_HOME="$cuda" GPU_STANDIN GPU_LIBCUDA GPU_CUDART GPU_NEEDS_GLIBC="$needs"

# memtrace.py calls this, when its turn comes: nvcc takes its time.
if [ -n "${build_accesses:-}" ]; then
	build_runtime_program
	build_cupti
	exit "$failed"
fi

# ttmond reads system calls through it.
if [ "$(id -u)" -eq 0 ] && [ -d /sys/kernel/tracing ] && ! grep -q ' tracefs ' /proc/mounts; then
	mount -t tracefs tracefs /sys/kernel/tracing && echo "  tracefs is mounted now: it was not"
fi

since=$SECONDS
build hits $here/hits.c -ldl
build calls $here/calls.c -ldl -lpthread
build waits $here/waits.c -ldl -lpthread
build memtrace_drv $here/memtrace.c $here/memtrace_drv.c -ldl
build_real
about=$(printf '{"bundle": %s, "build_seconds": %d}' "$(cat out/bundle.json 2>/dev/null || echo null)" \
	$((SECONDS - since)))
"$PYTHON" $here/parts.py --json "$OUT/gpu.json" --about "$about" --limit "$limit" "${parts[@]}" "$@" 2>&1 | tee \
	"$OUT/gpu.log"
[ "${PIPESTATUS[0]}" -eq 0 ] || failed=1
exit "$failed"
