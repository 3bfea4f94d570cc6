// SPDX-License-Identifier: GPL-2.0-only
/* table.c: a table from numbers to numbers: what a channel and its neighbours have named already. */
#include "memtrace/channel/chan_int.h"

static struct ttmon_mt_slot *slot_of(const struct ttmon_mt_table *t, uint64_t key)
{
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (t->cap - 1);

	while (t->slots[i].key && t->slots[i].key != ~key)
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

const uint32_t *ttmon_mt_table_get(const struct ttmon_mt_table *t, uint64_t key)
{
	const struct ttmon_mt_slot *s = t->cap ? slot_of(t, key) : NULL;

	return s && s->key ? &s->value : NULL;
}

int ttmon_mt_table_put(struct ttmon_mt_table *t, uint64_t key, uint32_t value)
{
	if (t->nr >= t->cap / 2) {
		struct ttmon_mt_table more = { .nr = t->nr, .cap = t->cap ? t->cap * 2 : 64 };

		more.slots = calloc(more.cap, sizeof(*more.slots));
		if (!more.slots)
			return -ENOMEM;
		for (size_t i = 0; i < t->cap; i++)
			if (t->slots[i].key)
				*slot_of(&more, ~t->slots[i].key) = t->slots[i];
		free(t->slots);
		*t = more;
	}
	*slot_of(t, key) = (struct ttmon_mt_slot){ .key = ~key, .value = value };
	t->nr++;
	return 0;
}
