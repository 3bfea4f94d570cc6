// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_model.c: the rings of <ttmon/mtchan.h> as a model, all schedules of it: two producers and
 * the consumer on one ring of four units that goes round.
 *
 * A step is one access of memory. What a thread stores into the shared memory goes into a buffer of
 * its own and from there, in any order but that of one word, into memory: weaker than any machine this
 * runs on. A fence waits until the buffer is empty. Whether a full ring is waited for or the record is
 * dropped is left open too. What must hold: a record comes once, whole, in the order of its producer;
 * what was dropped and what came are all there is; and at the end the ring is empty.
 *
 * The model is worth something only if it finds what is wrong: each rule of the protocol that is left
 * out must show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"

#define UNITS	  4
#define PRODUCERS 2
#define RECORDS	  3
#define TAIL	  (2 * UNITS) /* word of the shared memory; a unit's are 2 * unit, its tag 2 * unit + 1 */
#define WORDS	  (TAIL + 1)
#define BUFFER	  8 /* a thread that has no room in it waits */
#define ADDRESS	  7 /* what LIST has where a header has its tag */

enum { TAG_NONE, TAG_AFFINE, TAG_LIST, TAG_LOST };

enum rule { NONE, FENCE, ZERO_TAG, ZERO_ALL, RELEASE, SWAP, ROOM, RULES };

struct store {
	uint8_t word, value;
};

struct thread {
	uint8_t pc, nr;
	struct store buf[BUFFER];
	/*
	 * Of a producer: its record, P1's position, units, is one a LOST, drops. Of the consumer: position,
	 * tag, first word.
	 */
	uint8_t rec, h, n, lost, drops;
};

struct state {
	uint8_t mem[WORDS];
	uint8_t head, seen, lost; /* device memory: atomics, seen at once */
	struct thread t[PRODUCERS + 1];
	uint8_t next[PRODUCERS]; /* of the records that came: at least so many */
	uint8_t came, said_lost;
};

static enum rule broken;
static const char *wrong;

/* ---- states that were seen: their hashes ---- */

static uint64_t *seen_set;
static size_t nr_seen, cap_seen;
static struct state *todo;
static size_t nr_todo, cap_todo;

static uint64_t hash(const struct state *s)
{
	const uint8_t *p = (const uint8_t *)s;
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ p[i]) * 0x100000001b3u, h ^= h >> 29;
	return h ?: 1;
}

static bool insert(uint64_t *set, size_t cap, uint64_t h)
{
	size_t i = (size_t)(h * 0x9e3779b97f4a7c15u >> 32) & (cap - 1);

	while (set[i] && set[i] != h)
		i = (i + 1) & (cap - 1);
	if (set[i])
		return false;
	set[i] = h;
	return true;
}

static void reach(const struct state *s)
{
	if (nr_seen * 2 >= cap_seen) {
		size_t more = cap_seen ? cap_seen * 2 : 1 << 16;
		uint64_t *set = calloc(more, sizeof(*set));

		assert_non_null(set);
		for (size_t i = 0; i < cap_seen; i++)
			if (seen_set[i])
				insert(set, more, seen_set[i]);
		free(seen_set);
		seen_set = set;
		cap_seen = more;
	}
	if (!insert(seen_set, cap_seen, hash(s)))
		return;
	nr_seen++;
	if (nr_todo == cap_todo) {
		cap_todo = cap_todo ? cap_todo * 2 : 1024;
		todo = realloc(todo, cap_todo * sizeof(*todo));
		assert_non_null(todo);
	}
	todo[nr_todo++] = *s;
}

/* ---- memory ---- */

static uint8_t unit(unsigned int pos)
{
	return (uint8_t)(2 * (pos % UNITS));
}

static uint8_t load(const struct state *s, const struct thread *t, unsigned int word)
{
	for (unsigned int i = t->nr; i-- > 0;)
		if (t->buf[i].word == word)
			return t->buf[i].value;
	return s->mem[word];
}

static void store(struct thread *t, unsigned int word, unsigned int value)
{
	t->buf[t->nr++] = (struct store){ (uint8_t)word, (uint8_t)value };
}

/* One of the buffered stores of a thread reaches memory. */
static void drain(const struct state *s, unsigned int who)
{
	for (unsigned int i = 0; i < s->t[who].nr; i++) {
		struct state to = *s;
		struct thread *t = &to.t[who];
		bool first = true;

		for (unsigned int k = 0; k < i; k++)
			first &= t->buf[k].word != t->buf[i].word;
		if (!first)
			continue;
		to.mem[t->buf[i].word] = t->buf[i].value;
		memmove(&t->buf[i], &t->buf[i + 1], (--t->nr - i) * sizeof(t->buf[0]));
		t->buf[t->nr] = (struct store){ 0 };
		reach(&to);
	}
}

/* ---- the producer ---- */

/* Sizes in turn, so that headers come to lie where addresses were: 2, 1 and 1, 2. */
static unsigned int size_of(unsigned int who, unsigned int rec)
{
	return (who + rec) % 2 ? 1 : 2;
}

static uint8_t id_of(unsigned int who, unsigned int rec)
{
	return (uint8_t)(16 * (who + 1) + rec);
}

static void producer(const struct state *s, unsigned int who)
{
	struct state to = *s;
	struct thread *t = &to.t[who];
	unsigned int at;

	if (t->nr + 4 > BUFFER)
		return;
	switch (t->pc) {
	case 0: /* P1: is there something to do, and where? */
		if (t->rec == RECORDS)
			return;
		t->lost = to.lost > 0;
		t->n = (uint8_t)(size_of(who, t->rec) + t->lost);
		t->h = to.head;
		t->pc = t->h + t->n - to.seen > UNITS && broken != ROOM ? 1 : 2;
		break;
	case 1: /* P1: full, as far as was seen */
		if (t->h + t->n - load(&to, t, TAIL) > UNITS) {
			struct state drop = to;

			/* It waits: again from the beginning. Or it drops. */
			t->pc = 0;
			reach(&to);
			drop.lost++;
			drop.t[who].drops++;
			drop.t[who].rec++;
			drop.t[who].pc = 0;
			reach(&drop);
			return;
		}
		to.seen = load(&to, t, TAIL);
		t->pc = 2;
		break;
	case 2: /* P2 */
		if (broken != SWAP && to.head != t->h) {
			t->pc = 0;
			break;
		}
		to.head = (uint8_t)(t->h + t->n);
		t->pc = 3;
		break;
	case 3: /* P3, P4: into the buffer, where the order is open anyhow */
		at = t->h;
		if (t->lost) {
			store(t, unit(at++), to.lost);
			to.lost = 0;
		}
		store(t, unit(at), id_of(who, t->rec));
		if (size_of(who, t->rec) == 2) {
			store(t, unit(at + 1), id_of(who, t->rec));
			store(t, unit(at + 1) + 1u, ADDRESS);
		}
		t->pc = 4;
		break;
	default: /* P5: the fence */
		if (t->nr && broken != FENCE)
			return;
		at = t->h;
		if (t->lost)
			store(t, unit(at++) + 1u, TAG_LOST);
		store(t, unit(at) + 1u, size_of(who, t->rec) == 2 ? TAG_LIST : TAG_AFFINE);
		t->rec++;
		t->pc = t->h = t->n = t->lost = 0;
		break;
	}
	reach(&to);
}

/* ---- the consumer ---- */

static void took(struct state *s, unsigned int tag, uint8_t first, uint8_t second)
{
	unsigned int who = first / 16 - 1u, rec = first % 16;

	if (tag == TAG_LOST) {
		s->said_lost = (uint8_t)(s->said_lost + first);
		return;
	}
	if (who >= PRODUCERS || rec >= RECORDS || (tag == TAG_LIST) != (size_of(who, rec) == 2) ||
	    (tag == TAG_LIST && second != first))
		wrong = "a record is not what was written";
	else if (rec < s->next[who])
		wrong = "a record came twice, or out of order";
	else
		s->next[who] = (uint8_t)(rec + 1);
	s->came++;
}

static void consumer(const struct state *s)
{
	struct state to = *s;
	struct thread *t = &to.t[PRODUCERS];
	unsigned int n;

	if (t->nr + 4 > BUFFER)
		return;
	switch (t->pc) {
	case 0: /* C1 */
		t->n = load(&to, t, unit(t->h) + 1u);
		if (!t->n)
			return;
		if (t->n > TAG_LOST) {
			wrong = "a tag that is none";
			return;
		}
		t->pc = 1;
		break;
	case 1: /* C2 */
		t->lost = load(&to, t, unit(t->h));
		t->pc = 2;
		if (t->n == TAG_LIST)
			break;
		took(&to, t->n, t->lost, 0);
		t->pc = 3;
		break;
	case 2:
		took(&to, t->n, t->lost, load(&to, t, unit(t->h + 1u)));
		t->pc = 3;
		break;
	case 3: /* C3: zeros */
		if (broken != ZERO_TAG) {
			store(t, unit(t->h) + 1u, 0);
			store(t, unit(t->h), 0);
		}
		if (t->n == TAG_LIST && broken != ZERO_ALL) {
			store(t, unit(t->h + 1u) + 1u, 0);
			store(t, unit(t->h + 1u), 0);
		}
		t->pc = 4;
		break;
	default: /* C3: release, tail */
		if (t->nr && broken != RELEASE)
			return;
		n = t->n == TAG_LIST ? 2 : 1;
		t->h = (uint8_t)(t->h + n);
		store(t, TAIL, t->h);
		t->pc = t->n = t->lost = 0;
		break;
	}
	reach(&to);
}

/* ---- */

static void check_end(const struct state *s)
{
	unsigned int drops = 0;

	for (unsigned int i = 0; i <= PRODUCERS; i++) {
		if (s->t[i].nr || s->t[i].pc || (i < PRODUCERS && s->t[i].rec < RECORDS))
			return;
		drops += s->t[i].drops;
	}
	if (s->mem[unit(s->t[PRODUCERS].h) + 1u])
		return;
	if (s->t[PRODUCERS].h != s->head)
		wrong = "all have ended, and the ring is not empty";
	else if (s->came + drops != PRODUCERS * RECORDS)
		wrong = "what came and what was dropped is not all";
	else if (s->said_lost + s->lost != drops)
		wrong = "drops were said wrongly";
	for (unsigned int i = 0; i < TAIL; i++)
		if (s->mem[i] && broken != ZERO_TAG && broken != ZERO_ALL)
			wrong = "a unit is not zero at the end";
}

/* All that can be reached, or up to the first that is wrong. */
static const char *explore(enum rule without)
{
	struct state s;

	memset(&s, 0, sizeof(s));
	broken = without;
	wrong = NULL;
	nr_seen = cap_seen = nr_todo = 0;
	reach(&s);
	while (nr_todo && !wrong) {
		s = todo[--nr_todo];
		for (unsigned int i = 0; i < PRODUCERS; i++)
			producer(&s, i);
		if (!wrong)
			consumer(&s);
		for (unsigned int i = 0; i <= PRODUCERS; i++)
			drain(&s, i);
		if (!wrong)
			check_end(&s);
	}
	free(seen_set);
	seen_set = NULL;
	free(todo);
	todo = NULL;
	cap_todo = 0;
	return wrong;
}

static void the_protocol_holds(void **state)
{
	(void)state;
	if (explore(NONE))
		fail_msg("%s", wrong);
	print_message("%zu states\n", nr_seen);
	assert_true(nr_seen > 10000);
}

static void no_rule_can_be_left_out(void **state)
{
	static const char *const names[] = {
		[FENCE] = "P5 without its fence",	 [ZERO_TAG] = "C3 that leaves the header",
		[ZERO_ALL] = "C3 that leaves addresses", [RELEASE] = "C3 without its release",
		[SWAP] = "P2 that does not compare",	 [ROOM] = "P1 that does not look for room",
	};

	(void)state;
	for (unsigned int i = FENCE; i < RULES; i++) {
		if (!explore((enum rule)i))
			fail_msg("%s is not found", names[i]);
		print_message("%s: %s, after %zu states\n", names[i], wrong, nr_seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_protocol_holds),
		cmocka_unit_test(no_rule_can_be_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
