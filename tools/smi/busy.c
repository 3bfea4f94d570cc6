// SPDX-License-Identifier: GPL-2.0-only
/*
 * busy.c: `ttmon smi --busy`: the share of the time in which each process had a chip run programs,
 * from two readings of the service's sums (/v1/devices). A chip without records is shown as not known.
 */
#include <time.h>

#include "lib/os/clock.h"
#include "lib/read/client.h"
#include "tools/cli/show.h"
#include "tools/smi/smi.h"

#define WAIT_NS NSEC_PER_SEC /* time between the two readings of one picture */

struct sums {
	uint32_t pid, device, chip; /* chip: the number of the chip in the service, 0: not known */
	char name[TTMON_TT_SHM_NAME];
	uint64_t busy_ns, error_ns; /* UNKNOWN if not known */
	bool running;
};

struct ttmon_smi_reading {
	uint64_t at_ns;
	struct sums *v;
	size_t n;
	json_t *chips;
};

void ttmon_smi_reading_free(struct ttmon_smi_reading *r)
{
	if (!r)
		return;
	json_decref(r->chips);
	free(r->v);
	free(r);
}

static uint64_t sum_in(const json_t *o, const char *member)
{
	const json_t *value = json_object_get(o, member);

	return json_is_integer(value) && json_integer_value(value) >= 0 ? (uint64_t)json_integer_value(value)
									: TTMON_SMI_UNKNOWN;
}

static int add(struct ttmon_smi_reading *r, const json_t *process, const json_t *device)
{
	struct sums *v = reallocarray(r->v, r->n + 1, sizeof(*v));
	const json_t *work = json_object_get(device, "work");

	if (!v)
		return -ENOMEM;
	r->v = v;
	v[r->n] = (struct sums){ .pid = (uint32_t)ttmon_show_u64(process, "tgid"),
				 .device = (uint32_t)ttmon_show_u64(device, "logical"),
				 .chip = (uint32_t)ttmon_show_u64(device, "chip"),
				 .busy_ns = sum_in(work, "busy_ns"),
				 .error_ns = sum_in(work, "busy_error_ns"),
				 .running = ttmon_show_bool(process, "running") };
	snprintf(v[r->n].name, sizeof(v[r->n].name), "%s", ttmon_show_str(process, "comm"));
	r->n++;
	return 0;
}

static int parse(const json_t *doc, struct ttmon_smi_reading *r)
{
	const json_t *processes = json_object_get(doc, "processes"), *process, *device;
	size_t i, k;
	int err = 0;

	r->chips = json_incref(json_object_get(doc, "chips"));
	json_array_foreach(processes, i, process) json_array_foreach(json_object_get(process, "devices"), k,
								     device) if (!err) err = add(r, process, device);
	return err;
}

/* Returns NULL on failure; text then has the reason. */
static struct ttmon_smi_reading *read_sums(const char *socket, char *text, size_t n)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	struct ttmon_smi_reading *r = calloc(1, sizeof(*r));
	int err = r ? ttmon_client_get(socket, "/v1/devices", &reply) : -ENOMEM;
	json_t *doc = NULL;

	if (!err && reply.status != 200)
		err = -EREMOTEIO;
	if (!err) {
		doc = json_loadb(reply.body, reply.len, 0, NULL);
		r->at_ns = ttmon_mono_ns();
		err = doc ? parse(doc, r) : -EBADMSG;
	}
	json_decref(doc);
	if (!err)
		return r;
	snprintf(text, n, "%s", strerror(-err));
	ttmon_smi_reading_free(r);
	return NULL;
}

/* Finds the ID that the chip has in the table. */
static void find_id(const struct ttmon_smi *v, const struct ttmon_smi_reading *r, uint32_t chip, char *ret, size_t n)
{
	const json_t *c;
	size_t i;

	snprintf(ret, n, "n/a");
	json_array_foreach(r->chips, i, c)
	{
		uint64_t unique = strtoull(ttmon_show_str(c, "unique_id"), NULL, 16);
		uint64_t ordinal = sum_in(c, "ordinal");
		bool remote = ttmon_show_bool(c, "remote");

		if (!chip || ttmon_show_u64(c, "index") != chip)
			continue;
		for (size_t k = 0; k < v->nr_chips; k++) {
			const struct ttmon_smi_chip *mine = &v->chips[k];
			bool here = mine->sys && mine->sys->fact.ordinal == ordinal &&
				    !!(mine->sys->fact.flags & TTMON_TT_CHIP_REMOTE) == remote;

			if (unique && mine->unique_id ? unique == mine->unique_id : here)
				snprintf(ret, n, "%s", mine->id);
		}
	}
}

/* Returns the growth of a sum. A sum that was not known before counts from 0. */
static uint64_t since(const struct ttmon_smi_reading *before, const struct sums *now, bool error)
{
	uint64_t value = error ? now->error_ns : now->busy_ns;

	for (size_t i = 0; i < before->n && value != TTMON_SMI_UNKNOWN; i++) {
		const struct sums *b = &before->v[i];
		uint64_t had = error ? b->error_ns : b->busy_ns;

		if (b->pid != now->pid || b->device != now->device)
			continue;
		if (had == TTMON_SMI_UNKNOWN)
			return error && b->busy_ns != TTMON_SMI_UNKNOWN ? TTMON_SMI_UNKNOWN : value;
		return value >= had ? value - had : value;
	}
	return value;
}

static int by_id(const void *a, const void *b)
{
	const struct ttmon_smi_busy *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	if (order || x->busy_ns == y->busy_ns)
		return order;
	/* Unknown values come last. */
	return (x->busy_ns + 1 > y->busy_ns + 1) ? -1 : 1;
}

/* If the time of one process is not known, the sum of the chip is a lower bound. */
static void add_to_chip(struct ttmon_smi_chip *chip, const struct ttmon_smi_busy *b)
{
	if (b->busy_ns == TTMON_SMI_UNKNOWN) {
		chip->busy_least = true;
		return;
	}
	if (chip->busy_ns == TTMON_SMI_UNKNOWN)
		chip->busy_ns = chip->busy_error_ns = 0;
	chip->busy_ns += b->busy_ns;
	if (b->error_ns == TTMON_SMI_UNKNOWN || chip->busy_error_ns == TTMON_SMI_UNKNOWN)
		chip->busy_error_ns = TTMON_SMI_UNKNOWN;
	else
		chip->busy_error_ns += b->error_ns;
}

static int compare(struct ttmon_smi *v, const struct ttmon_smi_reading *before, const struct ttmon_smi_reading *now)
{
	v->busy = calloc(now->n + 1, sizeof(*v->busy));
	if (!v->busy)
		return -ENOMEM;
	v->busy_window_ns = now->at_ns - before->at_ns;
	for (size_t i = 0; i < now->n; i++) {
		struct ttmon_smi_busy *b = &v->busy[v->nr_busy];
		uint64_t gained = since(before, &now->v[i], false);

		/* The process ended before the interval, and nothing more was reported of it. */
		if (!now->v[i].running && (!gained || gained == TTMON_SMI_UNKNOWN))
			continue;
		v->nr_busy++;
		b->pid = now->v[i].pid;
		memcpy(b->name, now->v[i].name, sizeof(b->name));
		find_id(v, now, now->v[i].chip, b->id, sizeof(b->id));
		b->busy_ns = gained;
		b->error_ns = since(before, &now->v[i], true);
		for (size_t k = 0; k < v->nr_chips; k++)
			if (!strcmp(v->chips[k].id, b->id))
				add_to_chip(&v->chips[k], b);
	}
	qsort(v->busy, v->nr_busy, sizeof(*v->busy), by_id);
	return 0;
}

int ttmon_smi_read_busy(const struct ttmon_smi_ask *ask, struct ttmon_smi *v)
{
	struct ttmon_smi_reading **last = ask->reading, *first = NULL, *now;
	char why[128];
	int err;

	if (!ask->busy)
		return 0;
	v->wants_busy = true;
	for (size_t i = 0; i < v->nr_chips; i++)
		v->chips[i].busy_ns = v->chips[i].busy_error_ns = TTMON_SMI_UNKNOWN;
	if (!last) {
		first = read_sums(ask->socket, why, sizeof(why));
		if (first)
			nanosleep(&(struct timespec){ .tv_sec = WAIT_NS / NSEC_PER_SEC }, NULL);
		last = &first;
	}
	now = last == &first && !first ? NULL : read_sums(ask->socket, why, sizeof(why));
	if (!now) {
		ttmon_smi_add_problem(v, true, ask->socket, why);
		return 0;
	}
	/* The first of several pictures has no earlier reading to compare with. */
	err = *last ? compare(v, *last, now) : 0;
	ttmon_smi_reading_free(*last);
	*last = now;
	if (last == &first)
		ttmon_smi_reading_free(first);
	return err;
}
