// SPDX-License-Identifier: GPL-2.0-only
/* mapped.c: see mapped.h. */
#include "lib/unwind/mapped.h"

#include "lib/base/search.h"

#define HDR_SIZE 12u
#define ENTRY	 8u

struct range {
	uint64_t start, end;
};

static bool holds(const struct range *r, uint64_t at, uint64_t n)
{
	return at >= r->start && at <= r->end && n <= r->end - at;
}

static const uint8_t *bytes_at(uint64_t at)
{
	return (const uint8_t *)(uintptr_t)at;
}

static uint32_t get32(uint64_t at)
{
	uint32_t v;

	memcpy(&v, bytes_at(at), sizeof(v));
	return v;
}

static uint64_t relative(uint64_t to, uint64_t at)
{
	return to + (uint64_t)(int64_t)(int32_t)get32(at);
}

/* Finds a CIE or FDE: *n bytes follow its length. */
static int entry_at(const struct range *in, uint64_t at, uint64_t *n)
{
	if (!holds(in, at, 4))
		return -EBADMSG;
	*n = get32(at);
	if (*n == UINT32_MAX)
		return -EOPNOTSUPP;
	return *n < 4 || !holds(in, at + 4, *n) ? -EBADMSG : 0;
}

static int read_entries(const struct range *in, uint64_t fde, struct ttmon_uw_fde *f)
{
	uint64_t n, cie, cie_n;
	uint32_t back;
	int err = entry_at(in, fde, &n);

	if (err)
		return err;
	back = get32(fde + 4);
	if (!back || back > fde + 4 - in->start)
		return -EBADMSG;
	cie = fde + 4 - back;
	err = entry_at(in, cie, &cie_n);
	if (err)
		return err;
	if (get32(cie + 4))
		return -EBADMSG;
	err = ttmon_uw_read_cie(bytes_at(cie + 8), bytes_at(cie + 4 + cie_n), false, f);
	return err ? err : ttmon_uw_read_fde(bytes_at(fde + 8), bytes_at(fde + 4 + n), fde + 8, f);
}

int ttmon_uw_mapped_row(uint64_t hdr, uint64_t start, uint64_t end, uint64_t pc, struct ttmon_uw_row *row,
			struct ttmon_uw_exprs *exprs)
{
	const struct range in = { start, end };
	uint64_t count, entries = hdr + HDR_SIZE, at;
	struct ttmon_uw_fde f;
	int err;

	/* pcrel sdata4, udata4, datarel sdata4: the encodings that ld, gold, lld and mold use. */
	if (!holds(&in, hdr, HDR_SIZE) || get32(hdr) != 0x3b031b01u)
		return -ENOENT;
	count = get32(hdr + 8);
	if (!holds(&in, entries, count * ENTRY))
		return -EBADMSG;
	at = TTMON_SEARCH((uint64_t)0, count, mid, relative(hdr, entries + mid * ENTRY) <= pc);
	if (!at)
		return -ENOENT;
	err = read_entries(&in, relative(hdr, entries + (at - 1) * ENTRY + 4), &f);
	if (err)
		return err;
	if (pc < f.start || pc - f.start >= f.len)
		return -ENOENT;
	return ttmon_uw_rules(&f, pc, row, exprs);
}
