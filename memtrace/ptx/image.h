/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/ptx/image.h: the PTX in what programs hand to the driver: PTX text, a fat binary (plain,
 * LZ4, zstd; whole, several of them one behind the other) or its wrapper, a cubin with
 * .nv_debug_ptx_txt (as -lineinfo makes it), also one in a fat binary. Formats:
 * ../shared/facts/memtrace.md 2.3.
 */
#ifndef TTMON_MEMTRACE_IMAGE_H
#define TTMON_MEMTRACE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct ttmon_mt_image {
	char *text; /* NUL-terminated, to be freed */
	size_t len;
	uint32_t arch;	  /* 90; of a text: its .target, 0 where it has none */
	const char *from; /* "PTX text", "fat binary", "fat binary, LZ4", "fat binary, zstd", "cubin's debug section" */
};

/*
 * image: as handed to the driver: no length comes with it there (n SIZE_MAX: the headers' lengths are
 * believed; a wrapper's pointer is followed). With n it is a file's content or part of one, never read
 * past n, and no pointer is followed. Of several PTX texts the one of the highest architecture up to
 * max_arch (90; 0: any) is taken; one for a single architecture (sm_90a) or a family (sm_100f) only
 * where max_arch is of it or 0; a cubin's only where there is no other. -ENOENT: an image, but with no
 * PTX in it that fits (why says what there is); -EBADMSG: no image; -E2BIG: more than TTMON_PTX_MAX;
 * -ENOMEM. ret is untouched then.
 */
int ttmon_mt_image_ptx(const void *image, size_t n, uint32_t max_arch, struct ttmon_mt_image *ret, char *why,
		       size_t n_why);

/*
 * Bytes of the cubin at image, up to the end of its last section or of their table; n as above. 0: it
 * is none.
 */
size_t ttmon_mt_image_cubin(const void *image, size_t n);

#endif
