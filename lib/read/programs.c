// SPDX-License-Identifier: GPL-2.0-only
/*
 * programs.c: see programs.h. Rows have a parser of their own for speed: there may be 100,000 a
 * second.
 */
#include "lib/read/programs.h"

#include "lib/read/db.h"

#define COLUMNS 11

struct cursor {
	const char *at, *end;
};

/* Parses "null" or a 64-bit integer; missing: the value for null. */
static bool take_number(struct cursor *c, uint64_t missing, uint64_t *ret)
{
	const char *begin = c->at;
	uint64_t value = 0;

	if (c->end - c->at >= 4 && !memcmp(c->at, "null", 4)) {
		c->at += 4;
		*ret = missing;
		return true;
	}
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
			return false;
	*ret = value;
	return c->at > begin;
}

bool ttmon_program_row_parse(const char *at, size_t n, struct ttmon_program_row *ret)
{
	struct cursor c = { at, at + n };
	uint64_t v[COLUMNS];

	if (!n || *c.at++ != '[')
		return false;
	for (unsigned int i = 0; i < COLUMNS; i++) {
		if (!take_number(&c, i == 7 ? UINT64_MAX : 0, &v[i]) || c.at == c.end)
			return false;
		/* A later daemon may add columns. */
		if (*c.at != ',' && (*c.at != ']' || i + 1 < COLUMNS))
			return false;
		c.at++;
	}
	if (!v[0] || MAX(MAX(MAX(v[1], v[2]), MAX(v[3], v[4])), MAX(v[8], v[10])) > UINT32_MAX || v[6] < v[5])
		return false;
	*ret = (struct ttmon_program_row){ .seq = v[0],
					   .pid = (uint32_t)v[1],
					   .device = (uint32_t)v[2],
					   .chip = (uint32_t)v[3],
					   .program = (uint32_t)v[4],
					   .start_ns = v[5],
					   .end_ns = v[6],
					   .error_ns = v[7],
					   .clock = (uint32_t)v[8],
					   .seen_ns = v[9],
					   .kernels = (uint32_t)v[10] };
	return true;
}

static void drop(struct ttmon_program_names *names, uint64_t number)
{
	uint64_t had = ttmon_hmap_del(&names->by_number, number);

	if (had != TTMON_HMAP_NONE)
		free((char *)(uintptr_t)had);
}

int ttmon_program_names_take(struct ttmon_program_names *names, const json_t *line)
{
	const char *text = json_string_value(json_object_get(line, "names"));
	uint64_t number;
	char *copy;
	int err;

	if (json_is_true(json_object_get(line, "forget")))
		ttmon_program_names_fini(names);
	if (!text || !ttmon_db_u64(line, "kernels", &number))
		return 0;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	drop(names, number);
	err = ttmon_hmap_put(&names->by_number, number, (uintptr_t)copy);
	if (err)
		free(copy);
	return err;
}

const char *ttmon_program_names_get(const struct ttmon_program_names *names, uint32_t number)
{
	uint64_t at = number ? ttmon_hmap_get(&names->by_number, number) : TTMON_HMAP_NONE;

	return at == TTMON_HMAP_NONE ? NULL : (const char *)(uintptr_t)at;
}

void ttmon_program_names_fini(struct ttmon_program_names *names)
{
	for (size_t i = 0; i < names->by_number.cap; i++)
		if (names->by_number.v[i].val != TTMON_HMAP_NONE)
			free((char *)(uintptr_t)names->by_number.v[i].val);
	ttmon_hmap_fini(&names->by_number);
}
