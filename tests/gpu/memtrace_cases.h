/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace_cases.h: access patterns and what each costs, once for the kernels (memtrace.cu), for the
 * program that checks their results (memtrace.c), and for memtrace.py, to which the program prints
 * what is to be expected. The figures are those of a request, that is of one warp: worked out by hand.
 */
#ifndef GPU_MEMTRACE_CASES_H
#define GPU_MEMTRACE_CASES_H

#define ALL_LANES 0xffffffffu
#define PITCH	  256 /* elements of a row, where there are rows */

/*
 * Global memory. C(name, type, span, expr, lanes, sectors, lines, ideal): thread i of those whose bit
 * i % 32 is in lanes loads in[expr] and stores it to out[i]; the input has span elements for each
 * thread. The figures are the load's; ideal is of distinct bytes. l is i % 32.
 */
#define GLOBAL_CASES(C)                                                                                                \
	C(unit_u8, u8, 1, i, ALL_LANES, 1, 1, 1)                                                                       \
	C(unit_u16, u16, 1, i, ALL_LANES, 2, 1, 2)                                                                     \
	C(unit_f32, f32, 1, i, ALL_LANES, 4, 1, 4)                                                                     \
	C(unit_f64, f64, 1, i, ALL_LANES, 8, 2, 8)                                                                     \
	C(unit_f32x4, f32x4, 1, i, ALL_LANES, 16, 4, 16)                                                               \
	C(off_by_4_bytes, f32, 1, i + 1, ALL_LANES, 5, 2, 4)                                                           \
	C(off_by_16_bytes, f32, 1, i + 4, ALL_LANES, 5, 2, 4)                                                          \
	C(reversed, f32, 1, i - l + 31 - l, ALL_LANES, 4, 1, 4)                                                        \
	C(permuted, f32, 1, i - l + (l * 5 + 3) % 32, ALL_LANES, 4, 1, 4)                                              \
	C(stride_2, f32, 2, i * 2, ALL_LANES, 8, 2, 4)                                                                 \
	C(stride_3, f32, 3, i * 3, ALL_LANES, 12, 3, 4)                                                                \
	C(stride_4, f32, 4, i * 4, ALL_LANES, 16, 4, 4)                                                                \
	C(stride_5, f32, 5, i * 5, ALL_LANES, 20, 5, 4)                                                                \
	C(stride_8, f32, 8, i * 8, ALL_LANES, 32, 8, 4)                                                                \
	C(stride_16, f32, 16, i * 16, ALL_LANES, 32, 16, 4)                                                            \
	C(stride_32, f32, 32, i * 32, ALL_LANES, 32, 32, 4)                                                            \
	C(stride_2_f64, f64, 2, i * 2, ALL_LANES, 16, 4, 8)                                                            \
	C(stride_3_f64, f64, 3, i * 3, ALL_LANES, 24, 6, 8)                                                            \
	C(broadcast, f32, 1, i - l, ALL_LANES, 1, 1, 1)                                                                \
	C(half_warp, f32, 1, i, 0x0000ffffu, 2, 1, 2)                                                                  \
	C(odd_lanes, f32, 1, i, 0xaaaaaaaau, 4, 1, 2)                                                                  \
	C(one_lane, f32, 1, i, 0x00000001u, 1, 1, 1)                                                                   \
	C(block_rows, f32, 1,                                                                                          \
	  i / (16 * PITCH) * 16 * PITCH + i % 256 / 16 * PITCH + i / 256 % (PITCH / 16) * 16 + i % 16, ALL_LANES, 4,   \
	  2, 4)                                                                                                        \
	C(tile_8x4, f32, 1, i / (4 * PITCH) * 4 * PITCH + l / 8 * PITCH + i / 32 % (PITCH / 8) * 8 + i % 8, ALL_LANES, \
	  4, 4, 4)

/*
 * Shared memory. C(name, type, size, expr, stored, loaded): blocks of one warp fill size elements in
 * order and load [expr] of them; wavefronts of a request when they are stored and loaded. l is the
 * lane.
 */
#define SHARED_CASES(C)                                    \
	C(banks_unit, f32, 32, l, 1, 1)                    \
	C(banks_stride_2, f32, 64, l * 2, 1, 2)            \
	C(banks_stride_3, f32, 128, l * 3, 1, 1)           \
	C(banks_stride_16, f32, 512, l * 16, 1, 16)        \
	C(banks_stride_32, f32, 1024, l * 32, 1, 32)       \
	C(banks_stride_33, f32, 1024, l * 33 % 1024, 1, 1) \
	C(banks_broadcast, f32, 32, 7, 1, 1)               \
	C(banks_unit_f64, f64, 32, l, 2, 2)                \
	C(banks_stride_2_f64, f64, 64, l * 2, 2, 4)        \
	C(banks_unit_f32x4, f32x4, 32, l, 4, 4)            \
	C(banks_stride_2_f32x4, f32x4, 64, l * 2, 4, 8)

/* Those that are neither; memtrace.c has what becomes of them. */
#define OTHER_KERNELS(K) \
	K(vadd) K(transpose_naive) K(transpose_banks) K(transpose_padded) K(divergent) K(atomics) K(smid)

#endif
