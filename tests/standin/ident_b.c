// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_b.c: the library that the ident programs load while they run (ident.h): deep stacks, and
 * stacks with equal inner ends.
 */
#include "ident.h"

#define B_SITES(X)         \
	X(b, 0, 64, 0, 4)  \
	X(b, 1, 64, 1, 0)  \
	X(b, 2, 128, 0, 3) \
	X(b, 3, 20, 1, 0)  \
	X(b, 4, 36, 0, 16) \
	X(b, 5, 512, 1, 0) \
	X(b, 6, 8, 0, 0) X(b, 7, 100, 1, 11) X(b, 8, 40, 0, 0) X(b, 9, 64, 0, 25) X(b, 10, 64, 1, 6) X(b, 11, 256, 0, 0)
B_SITES(IDENT_SITE)

/* Each one through a stack that is one frame deeper than the one before. */
static IDENT_HIDDEN void descend(int depth, void (*fn)(size_t), size_t batch)
{
	if (depth)
		descend(depth - 1, fn, batch);
	else
		fn(batch);
	IDENT_HERE(200);
}

/* Recursion: only the outer frames differ. */
static IDENT_HIDDEN void recurse(int depth, const char *label)
{
	if (depth) {
		recurse(depth - 1, label);
	} else {
		void *p = IDENT_PIN(label, 68 << 10);

		ident_copy(p, 4096, 2);
	}
	IDENT_HERE(201);
}

static IDENT_HIDDEN void from_left(void)
{
	recurse(8, "deep.left.8");
	recurse(14, "deep.left.14");
	recurse(26, "deep.left.26");
	recurse(40, "deep.left.40");
	IDENT_HERE(202);
}

static IDENT_HIDDEN void from_right(void)
{
	recurse(8, "deep.right.8");
	recurse(26, "deep.right.26");
	recurse(34, "deep.right.34");
	recurse(40, "deep.right.40");
	IDENT_HERE(203);
}

#define B_NAME(module, n, kib, scale, copies) module##_##n,
static void (*const sites[])(size_t) = { B_SITES(B_NAME) };

void ident_b_run(size_t batch)
{
	for (int i = 0; i < 12; i++)
		descend(i, sites[i], batch);
	from_left();
	from_right();
	IDENT_HERE(204);
}
