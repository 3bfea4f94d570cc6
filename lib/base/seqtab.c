// SPDX-License-Identifier: GPL-2.0-only
/*
 * seqtab.c: see seqtab.h. Maps the number of each allocation, in the order of allocations, to its
 * place. Nodes of level 0 have values, the others pointers; the height of the tree depends on the
 * largest number it has had.
 */
#include "lib/base/seqtab.h"

#define FAN_BITS 5
#define FAN	 (1u << FAN_BITS)
#define LEVELS	 ((64 + FAN_BITS - 1) / FAN_BITS)

struct leaf {
	uint32_t used;
	uint32_t val[FAN];
};

struct inner {
	void *child[FAN];
	uint32_t used;
};

static unsigned int digit(uint64_t seq, unsigned int level)
{
	return (seq >> (level * FAN_BITS)) & (FAN - 1);
}

/* Returns how many levels a number needs. */
static unsigned int levels_of(uint64_t seq)
{
	unsigned int n = 1;

	while (n < LEVELS && seq >> (n * FAN_BITS))
		n++;
	return n;
}

static void *new_node(unsigned int level)
{
	struct leaf *leaf;

	if (level)
		return calloc(1, sizeof(struct inner));
	leaf = calloc(1, sizeof(*leaf));
	if (leaf)
		memset(leaf->val, 0xff, sizeof(leaf->val));
	return leaf;
}

static bool in_reach(const struct ttmon_seqtab *t, uint64_t seq)
{
	return t->height && levels_of(seq) <= t->height;
}

/* Frees empty nodes on the path to seq, after a deletion or a failed insertion. */
static void prune(struct ttmon_seqtab *t, uint64_t seq)
{
	void *path[LEVELS] = { 0 };
	void *node = t->root;

	for (unsigned int level = t->height; level-- > 0 && node;) {
		path[level] = node;
		node = level ? ((struct inner *)node)->child[digit(seq, level)] : NULL;
	}
	for (unsigned int level = 0; level < t->height; level++) {
		if (path[level]) {
			if (level ? ((struct inner *)path[level])->used : ((struct leaf *)path[level])->used)
				return;
			free(path[level]);
		}
		if (level + 1 == t->height) {
			t->root = NULL;
			t->height = 0;
		} else if (path[level]) {
			struct inner *up = path[level + 1];

			up->child[digit(seq, level + 1)] = NULL;
			up->used--;
		}
	}
}

/* Raises the tree to at least this height. */
static int raise_to(struct ttmon_seqtab *t, unsigned int height)
{
	if (!t->height) {
		t->root = new_node(height - 1);
		if (!t->root)
			return -ENOMEM;
		t->height = height;
	}
	while (t->height < height) {
		struct inner *top = new_node(t->height);

		if (!top)
			return -ENOMEM;
		top->child[0] = t->root;
		top->used = 1;
		t->root = top;
		t->height++;
	}
	return 0;
}

int ttmon_seqtab_put(struct ttmon_seqtab *t, uint64_t seq, uint32_t val)
{
	struct leaf *leaf;
	void *node;
	int err = raise_to(t, levels_of(seq));

	if (err)
		return err;
	node = t->root;
	for (unsigned int level = t->height - 1; level > 0; level--) {
		struct inner *in = node;
		void **slot = &in->child[digit(seq, level)];

		if (!*slot) {
			*slot = new_node(level - 1);
			if (!*slot) {
				prune(t, seq);
				return -ENOMEM;
			}
			in->used++;
		}
		node = *slot;
	}
	leaf = node;
	leaf->used += leaf->val[digit(seq, 0)] == TTMON_SEQTAB_NONE;
	leaf->val[digit(seq, 0)] = val;
	return 0;
}

uint32_t ttmon_seqtab_get(const struct ttmon_seqtab *t, uint64_t seq)
{
	const void *node = t->root;

	if (!in_reach(t, seq))
		return TTMON_SEQTAB_NONE;
	for (unsigned int level = t->height - 1; level > 0 && node; level--)
		node = ((const struct inner *)node)->child[digit(seq, level)];
	return node ? ((const struct leaf *)node)->val[digit(seq, 0)] : TTMON_SEQTAB_NONE;
}

void ttmon_seqtab_del(struct ttmon_seqtab *t, uint64_t seq)
{
	void *node = t->root;
	struct leaf *leaf;

	if (!in_reach(t, seq))
		return;
	for (unsigned int level = t->height - 1; level > 0 && node; level--)
		node = ((struct inner *)node)->child[digit(seq, level)];
	leaf = node;
	if (!leaf || leaf->val[digit(seq, 0)] == TTMON_SEQTAB_NONE)
		return;
	leaf->val[digit(seq, 0)] = TTMON_SEQTAB_NONE;
	leaf->used--;
	prune(t, seq);
}

/*
 * Returns the first number >= seq with a value below this node, whose first number is base; seq may be
 * less than base.
 */
static uint64_t next_below(const void *node, unsigned int level, uint64_t base, uint64_t seq)
{
	unsigned int i = seq > base ? (seq - base) >> (level * FAN_BITS) : 0;

	for (; i < FAN; i++) {
		uint64_t at = base + ((uint64_t)i << (level * FAN_BITS));
		uint64_t found;

		if (level == 0) {
			if (((const struct leaf *)node)->val[i] != TTMON_SEQTAB_NONE)
				return at;
			continue;
		}
		if (!((const struct inner *)node)->child[i])
			continue;
		found = next_below(((const struct inner *)node)->child[i], level - 1, at, seq);
		if (found != TTMON_SEQTAB_END)
			return found;
	}
	return TTMON_SEQTAB_END;
}

uint64_t ttmon_seqtab_next(const struct ttmon_seqtab *t, uint64_t seq)
{
	return in_reach(t, seq) ? next_below(t->root, t->height - 1, 0, seq) : TTMON_SEQTAB_END;
}

static void free_below(void *node, unsigned int level)
{
	for (unsigned int i = 0; level && i < FAN; i++)
		if (((struct inner *)node)->child[i])
			free_below(((struct inner *)node)->child[i], level - 1);
	free(node);
}

void ttmon_seqtab_fini(struct ttmon_seqtab *t)
{
	if (t->height)
		free_below(t->root, t->height - 1);
	*t = (struct ttmon_seqtab){ 0 };
}
