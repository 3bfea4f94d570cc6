// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_pipeline.c: a stream of records and watermarks of any bytes, through slots and history, to the
 * end.
 *
 * The input is a row of operations, a byte each: bit 0 clear: a record follows, n = the byte / 2 words
 * long (as far as there is input); bit 0 set: advance by (byte / 2) * 16 us. With the first word of a
 * record a small number, it is an offset in us from the last watermark, so that the fuzzer need not
 * guess times. At the end the accounting identity has to hold, slot numbers must have come one by one
 * (but for the jump over a long gap), and their sums must be those of the accounting.
 */
#include "daemon/core/history/live.h"
#include "daemon/core/stream/pipeline.h"

#define NR_CPUS 8
#define NEAR	(1ULL << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint64_t slots, events, late, dropped, next_no;
	uint64_t row; /* slots since the last gap */
};

static bool publish(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	struct seen *seen = ctx;

	for (size_t i = 0; i < n; i++)
		if (rows[i].cls >= TTMON_ROW_CLASS_MAX)
			abort();
	if (seen->slots && slot->no != seen->next_no) {
		/* Only what is left of a gap after its first 4096 slots may be jumped. */
		if (seen->row < 4096 || ttmon_before(slot->no, seen->next_no))
			abort();
		seen->row = 0;
	}
	seen->row++;
	if (slot->late > slot->events)
		abort();
	seen->next_no = slot->no + 1;
	seen->slots++;
	seen->events += slot->events;
	seen->late += slot->late;
	seen->dropped += slot->dropped;
	return slot->no % 7 != 0;
}

static size_t feed_one(struct ttmon_pipeline *p, const uint8_t *data, size_t size, size_t words, uint64_t now_ns)
{
	_cleanup_free_ uint64_t *rec = NULL;
	size_t n = MIN(words * sizeof(uint64_t), size);

	/* Of exactly this size, so that one byte too far is seen. */
	rec = malloc(n ? n : 1);
	if (!rec)
		return size;
	if (n)
		memcpy(rec, data, n);
	if (n >= sizeof(rec[0]) && rec[0] < NEAR)
		rec[0] = now_ns + rec[0] * NSEC_PER_US - NEAR / 8 * NSEC_PER_US;
	ttmon_pipeline_feed(p, rec, n);
	return n;
}

/* Lines of live advice: those that are kept, one after the other, and as many as were said. */
static void check_lines(const struct ttmon_history *h)
{
	struct ttmon_live_totals t;
	struct ttmon_live_line line;
	uint64_t said = 0;

	ttmon_history_live_totals(h, &t);
	for (size_t i = 0; i < ARRAY_SIZE(t.said); i++)
		said += t.said[i];
	if (said != t.next_seq - 1 || t.next_seq - t.first_seq > 64 || ttmon_history_live(h, t.next_seq, &line))
		abort();
	for (uint64_t seq = t.first_seq; seq < t.next_seq; seq++)
		if (!ttmon_history_live(h, seq, &line) || line.seq != seq || !ttmon_live_name(line.said) ||
		    !(line.confidence >= 0 && line.confidence <= 1))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ttmon_pipeline_cfg cfg = {
		.nr_cpus = NR_CPUS,
		.slots = { .window = 8, .arena_bytes = 2 * 65536 },
		.history = { .keep_all = size % 2,
			     .max_allocations = 64,
			     .max_events = 256,
			     .fold_ns = 3 * NSEC_PER_MS,
			     .live = { .pin = (unsigned int)(size / 2 % 4), .cold_ns = NSEC_PER_MS, .lines = 64 } },
	};
	uint64_t now_ns = size % 3 ? 5000 * NSEC_PER_MS : UINT64_MAX - 3 * NSEC_PER_MS;
	struct ttmon_pipeline *p = NULL;
	struct ttmon_accounting acct;
	struct seen seen = { 0 };
	char why[200];

	if (ttmon_pipeline_new(&cfg, publish, &seen, &p))
		return 0;
	ttmon_pipeline_advance(p, now_ns);
	while (size) {
		uint8_t op = *data++;

		size--;
		if (op & 1) {
			now_ns += (uint64_t)(op >> 1) * 16 * NSEC_PER_US;
			ttmon_pipeline_advance(p, now_ns);
		} else {
			size_t n = feed_one(p, data, size, op >> 1, now_ns);

			data += n;
			size -= n;
		}
	}
	ttmon_pipeline_finish(p, now_ns);

	ttmon_pipeline_accounting(p, &acct);
	if (acct.closed != seen.slots || acct.slotted + acct.late != seen.events || acct.late != seen.late ||
	    acct.arena_full != seen.dropped)
		abort();
	/* What LOST facts claim is the fuzzer's; without any the rest must hold. */
	if (!acct.decoded[TTMON_EV_LOST] && !ttmon_pipeline_check(p, why, sizeof(why)))
		abort();
	check_lines(ttmon_pipeline_history(p));
	ttmon_pipeline_free(p);
	return 0;
}
