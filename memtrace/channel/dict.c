// SPDX-License-Identifier: GPL-2.0-only
/*
 * dict.c: the dictionary of a channel: what the program reports once about its instructions, launches
 * and kernels, and its sums.
 */
#include "memtrace/channel/chan_int.h"
#include "lib/base/grow.h"
#include "lib/base/hash.h"

#define MAX_ADDR (1ull << 57)
/* Limits of counts that a program reports: higher ones are impossible, and would spoil the sums. */
#define MAX_SAID    (1ull << 40)
#define FLAGS_KNOWN (TTMON_MT_LAUNCH_MADE_UP | TTMON_MT_LAUNCH_GRAPH | TTMON_MT_LAUNCH_SAMPLED)

/* ---- entries ---- */

/*
 * The texts behind an entry's struct, one after the other; "" if there are no more. c->entry is
 * followed by a NUL.
 */
struct texts {
	const char *at, *end;
};

static const char *next_text(struct texts *t)
{
	const char *text = t->at;

	if (t->at >= t->end)
		return "";
	t->at += strnlen(text, (size_t)(t->end - text)) + 1;
	return text;
}

static void note(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, const char *text)
{
	char clean[1024];
	size_t n;

	if (!sink->note || c->notes++ >= TTMON_MT_CHAN_NOTES)
		return;
	n = strnlen(text, sizeof(clean) - 1);
	for (size_t i = 0; i < n; i++)
		clean[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
	clean[n] = '\0';
	sink->note(sink->ctx, c->pid, clean);
}

/* An entry beyond a limit of the channel or the dictionary is left out and counted. */
static void leave_out(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	if (!c->full)
		note(c, sink,
		     sink->shared ? "it names more instructions, launches and kernels than a channel's share: the rest "
				    "goes without names"
				  : "it names more instructions, launches and kernels than can be kept: the rest goes "
				    "without names");
	c->full = true;
	sink->stats->malformed++;
}

/*
 * If the channels belong to different users, each may use a quarter of what the others have left, so
 * that none takes everything.
 */
static bool within_share(const struct ttmon_mt_sink *sink, uint64_t limit, uint64_t used, uint64_t own)
{
	return !sink->shared || own < (limit - MIN(limit, used - MIN(used, own))) / 4;
}

/* Returns whether the entry's texts may be kept. */
static bool may_keep(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	uint64_t all = c->names ? c->names->texts : 0;

	if (c->full || c->texts + c->entry.e.bytes > TTMON_MT_CHAN_TEXTS ||
	    all + c->entry.e.bytes > TTMON_MT_ALL_TEXTS ||
	    !within_share(sink, TTMON_MT_ALL_TEXTS, all + c->entry.e.bytes, c->texts + c->entry.e.bytes)) {
		leave_out(c, sink);
		return false;
	}
	c->texts += c->entry.e.bytes;
	if (c->names)
		c->names->texts += c->entry.e.bytes;
	return true;
}

/* err of a ttmon_mt_dict_*() function: only -ENOMEM is an error here. */
static int past_limit(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, int64_t err)
{
	if (err != -E2BIG)
		return (int)err;
	leave_out(c, sink);
	return 0;
}

/* With its NUL. */
static uint64_t hash_text(uint64_t h, const char *text)
{
	return ttmon_fnv(h, text, strlen(text) + 1);
}

static uint64_t site_key(const struct ttmon_mt_site *s)
{
	uint32_t numbers[] = { s->line, s->text_line, (uint32_t)s->space << 16 | (uint32_t)s->kind << 8 | s->width };
	uint64_t h = ttmon_fnv(TTMON_FNV_BASIS, numbers, sizeof(numbers));

	return hash_text(hash_text(hash_text(hash_text(h, s->kernel), s->opcode), s->file), s->module);
}

static bool same_text(const char *kept, const char *text)
{
	size_t n = strlen(kept);

	return !strncmp(kept, text, n) && (!text[n] || n == TTMON_MT_MAX_TEXT);
}

static bool same_site(const struct ttmon_mt_site *kept, const struct ttmon_mt_site *s)
{
	return kept->line == s->line && kept->text_line == s->text_line && kept->space == s->space &&
	       kept->kind == s->kind && kept->width == s->width && same_text(kept->kernel, s->kernel) &&
	       same_text(kept->opcode, s->opcode) && same_text(kept->file, s->file) &&
	       same_text(kept->module, s->module);
}

/* One site for each kind, shared by all channels: a reader that runs for ever keeps no texts. */
static int64_t light_site(struct ttmon_mt_sink *sink, unsigned int kind)
{
	const struct ttmon_mt_dict *d = &sink->dict->dict;

	for (size_t i = 0; i < d->nr_sites; i++)
		if (d->sites[i].kind == kind)
			return (int64_t)i;
	return ttmon_mt_dict_site(
		sink->dict,
		&(struct ttmon_mt_site){
			.kernel = "", .opcode = "", .file = "", .module = "", .kind = (uint8_t)kind, .width = 1 });
}

/*
 * Returns the index of a site in the dictionary, or of an equal one. -ENOSPC: beyond a limit, which
 * was noted.
 */
static int64_t keep_site(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, const struct ttmon_mt_site *site)
{
	uint64_t key = c->names ? site_key(site) : 0;
	uint64_t at = c->names ? ttmon_hmap_get(&c->names->sites, key) : TTMON_HMAP_NONE;
	int64_t index;
	int err;

	if (at != TTMON_HMAP_NONE && same_site(&sink->dict->dict.sites[at], site))
		return (int64_t)at;
	if (!within_share(sink, TTMON_MT_MAX_SITES, sink->dict->dict.nr_sites, c->own_sites)) {
		leave_out(c, sink);
		return -ENOSPC;
	}
	if (!may_keep(c, sink))
		return -ENOSPC;
	index = ttmon_mt_dict_site(sink->dict, site);
	if (index < 0)
		return past_limit(c, sink, index) ?: -ENOSPC;
	c->own_sites++;
	err = c->names && at == TTMON_HMAP_NONE ? ttmon_hmap_put(&c->names->sites, key, (uint32_t)index) : 0;
	return err ?: index;
}

static int grow_sites(struct ttmon_mt_chan *c, uint32_t id)
{
	uint32_t nr = MIN(MAX(id + 1, c->nr_sites * 2), TTMON_MTC_MAX_SITES);
	void *p;

	if (id < c->nr_sites)
		return 0;
	p = reallocarray(c->sites, nr, sizeof(*c->sites));
	if (!p)
		return -ENOMEM;
	c->sites = p;
	memset(c->sites + c->nr_sites, 0, (nr - c->nr_sites) * sizeof(*c->sites));
	c->nr_sites = nr;
	return 0;
}

static int take_site(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, struct texts t)
{
	const struct ttmon_mtc_site *e = &c->entry.site;
	struct ttmon_mt_site site = {
		.line = e->line,
		.text_line = e->text_line,
		.space = e->space,
		.kind = e->kind,
		.width = e->width,
		.flags = e->flags & TTMON_MT_SITE_FUNCTION,
	};
	int64_t index;
	int err;

	if (e->id >= TTMON_MTC_MAX_SITES || e->space >= TTMON_MT_SPACE_MAX || e->kind >= TTMON_MT_KIND_MAX ||
	    !e->width || e->width > 64) {
		sink->stats->malformed++;
		return 0;
	}
	err = grow_sites(c, e->id);
	/* If a site is announced twice, the first one is valid. */
	if (err || c->sites[e->id].index)
		return err;
	site.kernel = next_text(&t);
	site.opcode = next_text(&t);
	site.file = next_text(&t);
	site.module = next_text(&t);
	index = sink->light ? light_site(sink, e->kind) : keep_site(c, sink, &site);
	if (index < 0)
		return index == -ENOSPC ? 0 : (int)index;
	c->sites[e->id] = (struct ttmon_mt_chan_site){
		.index = (uint32_t)index + 1, .space = e->space, .kind = e->kind, .width = e->width
	};
	return 0;
}

static int take_launch(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, struct texts t)
{
	const struct ttmon_mtc_launch *e = &c->entry.launch;
	struct ttmon_mt_launch launch = { .id = e->id,
					  .ctx = c->head.ctx,
					  .kernel = next_text(&t),
					  .grid = { e->grid[0], e->grid[1], e->grid[2] },
					  .block = { e->block[0], e->block[1], e->block[2] },
					  .regs = e->regs,
					  .shmem = e->shmem,
					  .stream = e->stream,
					  .time_ns = e->time_ns,
					  .pid = c->pid,
					  .flags = (uint8_t)(e->flags & FLAGS_KNOWN) };
	int64_t index;

	if (e->id >= TTMON_MTC_MAX_LAUNCHES || ttmon_hmap_get(&c->launches, e->id) != TTMON_HMAP_NONE) {
		sink->stats->malformed++;
		return 0;
	}
	if (c->head.sample > 1)
		launch.flags |= TTMON_MT_LAUNCH_SAMPLED;
	if (sink->light && !(e->flags & TTMON_MT_LAUNCH_GRAPH))
		c->recent[e->id % TTMON_MT_CHAN_RECENT] =
			(struct ttmon_mt_chan_recent){ .id = e->id, .ns = e->time_ns };
	if (sink->light || !may_keep(c, sink))
		return 0;
	index = ttmon_mt_dict_launch(sink->dict, &launch);
	if (index < 0)
		return past_limit(c, sink, index);
	return ttmon_hmap_put(&c->launches, e->id, (uint32_t)index);
}

int64_t ttmon_mt_chan_launch(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, uint32_t id)
{
	uint64_t index = ttmon_hmap_get(&c->launches, id);
	struct ttmon_mt_launch launch = {
		.id = id, .ctx = c->head.ctx, .kernel = "", .pid = c->pid, .flags = TTMON_MT_LAUNCH_MADE_UP
	};
	int64_t made;

	if (index != TTMON_HMAP_NONE)
		return (int64_t)index;
	if (sink->light) {
		if (sink->dict->dict.nr_launches)
			return 0;
		launch = (struct ttmon_mt_launch){ .kernel = "", .flags = TTMON_MT_LAUNCH_MADE_UP };
	}
	/*
	 * One placeholder for the whole channel, so that a program with invented numbers cannot fill the
	 * memory.
	 */
	if (!c->made_up) {
		made = ttmon_mt_dict_launch(sink->dict, &launch);
		if (made < 0)
			return made;
		c->made_up = (uint32_t)made + 1;
	}
	return c->made_up - 1;
}

static int take_kernel(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, struct texts t)
{
	uint64_t key = hash_text(TTMON_FNV_BASIS, next_text(&t));
	struct ttmon_mtc_kernel *copy;
	uint64_t at;
	int err;

	if (sink->light)
		return 0;
	key = hash_text(key, next_text(&t));
	at = ttmon_hmap_get(&c->kernels, key);
	/* The size is counted each time, because a later entry may be longer. */
	if (at != TTMON_HMAP_NONE && c->kernel[at]->e.bytes >= c->entry.e.bytes) {
		memcpy(c->kernel[at], c->entry.bytes, c->entry.e.bytes + 1);
		return 0;
	}
	if (!may_keep(c, sink))
		return 0;
	copy = malloc(c->entry.e.bytes + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, c->entry.bytes, c->entry.e.bytes + 1);
	if (at != TTMON_HMAP_NONE) {
		free(c->kernel[at]);
		c->kernel[at] = copy;
		return 0;
	}
	err = TTMON_GROW(c->kernel, c->cap_kernels, c->nr_kernels + 1, 16);
	err = err ?: ttmon_hmap_put(&c->kernels, key, (uint32_t)c->nr_kernels);
	if (err) {
		free(copy);
		return err;
	}
	c->kernel[c->nr_kernels++] = copy;
	return 0;
}

static int take_agg(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	const struct ttmon_mtc_agg_entry *e = &c->entry.agg;
	uint64_t at = ttmon_hmap_get(&c->aggs, e->site);
	int err;

	if (e->site >= c->nr_sites || !c->sites[e->site].index) {
		sink->stats->malformed++;
		return 0;
	}
	if (sink->light)
		return 0;
	if (at != TTMON_HMAP_NONE) {
		c->agg[at] = *e;
		return 0;
	}
	err = TTMON_GROW(c->agg, c->cap_aggs, c->nr_aggs + 1, 16);
	err = err ?: ttmon_hmap_put(&c->aggs, e->site, (uint32_t)c->nr_aggs);
	if (!err)
		c->agg[c->nr_aggs++] = *e;
	return err;
}

static int take_touch(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	const struct ttmon_mtc_touch *e = &c->entry.touch;
	struct ttmon_mt_touch touch = { .addr = e->addr,
					.size = e->size,
					.reads = MIN(e->reads, MAX_SAID),
					.writes = MIN(e->writes, MAX_SAID),
					.launch = TTMON_MT_NO_LAUNCH,
					.pid = c->pid };
	int64_t index;

	if (!e->size || e->size > MAX_ADDR || e->addr > MAX_ADDR - e->size) {
		sink->stats->malformed++;
		return 0;
	}
	if (sink->touch)
		sink->touch(sink->ctx, &touch);
	if (sink->light || e->e.kind == TTMON_MTC_ENTRY_OWN)
		return 0;
	index = ttmon_mt_dict_touch(sink->dict, &touch);
	return index < 0 ? past_limit(c, sink, index) : 0;
}

/* Bytes of the struct of a kind; 0: not known. */
static size_t size_of(unsigned int kind)
{
	switch (kind) {
	case TTMON_MTC_ENTRY_SITE:
		return sizeof(struct ttmon_mtc_site);
	case TTMON_MTC_ENTRY_LAUNCH:
		return sizeof(struct ttmon_mtc_launch);
	case TTMON_MTC_ENTRY_KERNEL:
		return sizeof(struct ttmon_mtc_kernel);
	case TTMON_MTC_ENTRY_AGG:
		return sizeof(struct ttmon_mtc_agg_entry);
	case TTMON_MTC_ENTRY_TOUCH:
	case TTMON_MTC_ENTRY_OWN:
		return sizeof(struct ttmon_mtc_touch);
	case TTMON_MTC_ENTRY_LOST:
		return sizeof(struct ttmon_mtc_lost);
	case TTMON_MTC_ENTRY_NOTE:
		return sizeof(struct ttmon_mtc_note);
	default:
		return 0;
	}
}

static int take_entry(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	size_t size = size_of(c->entry.e.kind);
	struct texts t = { c->entry.bytes + size, c->entry.bytes + c->entry.e.bytes };

	if (!size || c->entry.e.bytes < size) {
		sink->stats->malformed++;
		return 0;
	}
	switch (c->entry.e.kind) {
	case TTMON_MTC_ENTRY_SITE:
		return take_site(c, sink, t);
	case TTMON_MTC_ENTRY_LAUNCH:
		return take_launch(c, sink, t);
	case TTMON_MTC_ENTRY_KERNEL:
		return take_kernel(c, sink, t);
	case TTMON_MTC_ENTRY_AGG:
		return take_agg(c, sink);
	case TTMON_MTC_ENTRY_TOUCH:
	case TTMON_MTC_ENTRY_OWN:
		return take_touch(c, sink);
	case TTMON_MTC_ENTRY_LOST:
		sink->stats->produced += MIN(c->entry.lost.records, MAX_SAID);
		sink->stats->dropped += MIN(c->entry.lost.records, MAX_SAID);
		c->lost_pages += MIN(c->entry.lost.pages, MAX_SAID);
		return 0;
	default:
		note(c, sink, next_text(&t));
		return 0;
	}
}

/* Copies bytes from a position of the dictionary, word by word: both are multiples of 8. */
static void copy_dict(const struct ttmon_mt_chan *c, uint64_t pos, size_t from, size_t bytes)
{
	const uint8_t *dict = c->mem + c->head.dict_off;

	for (size_t i = from; i < bytes; i += 8) {
		uint64_t word =
			__atomic_load_n((const uint64_t *)(const void *)(dict + ((pos + i) & (c->head.dict_bytes - 1))),
					__ATOMIC_RELAXED);

		memcpy((char *)c->entry.bytes + i, &word, 8);
	}
}

int ttmon_mt_chan_read_dict(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, char *why, size_t n)
{
	struct ttmon_mtc_head *shared = (struct ttmon_mtc_head *)(void *)c->mem;
	uint64_t head = __atomic_load_n(&shared->dict_head, __ATOMIC_ACQUIRE);
	int err = 0;

	if (head == c->dict_tail)
		return 0;
	if (head - c->dict_tail > c->head.dict_bytes || head % 8) {
		snprintf(why, n, "its dictionary is broken: position %llu after %llu", (unsigned long long)head,
			 (unsigned long long)c->dict_tail);
		return -EBADMSG;
	}
	/* A launch that was not known before may be known now. */
	c->has_last = false;
	while (!err && c->dict_tail != head) {
		uint64_t left = head - c->dict_tail;
		uint32_t bytes;

		copy_dict(c, c->dict_tail, 0, sizeof(c->entry.e));
		bytes = c->entry.e.bytes;
		if (bytes < sizeof(c->entry.e) || bytes > TTMON_MTC_MAX_ENTRY || bytes % 8 || bytes > left) {
			snprintf(why, n, "its dictionary is broken: an entry of %u bytes", bytes);
			err = -EBADMSG;
			break;
		}
		copy_dict(c, c->dict_tail, sizeof(c->entry.e), bytes);
		c->entry.bytes[bytes] = '\0';
		c->dict_tail += bytes;
		err = take_entry(c, sink);
		if (err)
			snprintf(why, n, "%s", strerror(-err));
	}
	__atomic_store_n(&shared->dict_tail, c->dict_tail, __ATOMIC_RELEASE);
	return err;
}

/* ---- the end ---- */

static int give_agg(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, const struct ttmon_mtc_agg_entry *e)
{
	struct ttmon_mt_agg agg;
	int64_t index;

	ttmon_mt_chan_agg(&e->agg, &c->sites[e->site], &agg);
	if (!agg.requests)
		return 0;
	index = ttmon_mt_dict_agg(sink->dict, &agg);
	return index < 0 ? past_limit(c, sink, index) : 0;
}

/*
 * Adds up a kernel that was reported before, by this program in another context or by another program.
 */
static bool add_kernel(const struct ttmon_mt_chan *c, const struct ttmon_mt_sink *sink, uint64_t key,
		       const struct ttmon_mt_kernel *k)
{
	uint64_t at = c->names ? ttmon_hmap_get(&c->names->kernels, key) : TTMON_HMAP_NONE;
	struct ttmon_mt_kernel *kept = at != TTMON_HMAP_NONE ? &sink->dict->dict.kernels[at] : NULL;

	if (!kept || !same_text(kept->name, k->name) || !same_text(kept->module, k->module) ||
	    !same_text(kept->why, k->why))
		return false;
	kept->launches += k->launches;
	kept->recorded += k->recorded;
	return true;
}

static int give_kernel(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, const struct ttmon_mtc_kernel *e)
{
	struct texts t = { (const char *)(e + 1), (const char *)e + e->e.bytes };
	struct ttmon_mt_kernel kernel = {
		.launches = e->launches, .recorded = e->recorded, .sites = e->sites, .left_out = e->left_out
	};
	int64_t index;
	uint64_t key;

	kernel.name = next_text(&t);
	kernel.module = next_text(&t);
	kernel.why = next_text(&t);
	key = hash_text(hash_text(hash_text(TTMON_FNV_BASIS, kernel.name), kernel.module), kernel.why);
	if (add_kernel(c, sink, key, &kernel))
		return 0;
	index = ttmon_mt_dict_kernel(sink->dict, &kernel);
	if (index < 0)
		return past_limit(c, sink, index);
	return c->names && ttmon_hmap_get(&c->names->kernels, key) == TTMON_HMAP_NONE
		       ? ttmon_hmap_put(&c->names->kernels, key, (uint32_t)index)
		       : 0;
}

int ttmon_mt_chan_end(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink)
{
	const struct ttmon_mtc_head *shared = (const struct ttmon_mtc_head *)(const void *)c->mem;
	uint64_t lost = __atomic_load_n(&shared->dict_lost, __ATOMIC_RELAXED);
	char text[128];
	int err = 0;

	for (size_t i = 0; i < c->nr_aggs && !err; i++)
		err = give_agg(c, sink, &c->agg[i]);
	for (size_t i = 0; i < c->nr_kernels && !err; i++)
		err = give_kernel(c, sink, c->kernel[i]);
	c->nr_aggs = 0;
	c->notes = 0;
	if (lost) {
		snprintf(text, sizeof(text), "%llu launches were not recorded: the dictionary was full",
			 (unsigned long long)lost);
		note(c, sink, text);
	}
	if (c->lost_pages) {
		snprintf(text, sizeof(text), "%llu touched pages were not kept: no room on the GPU",
			 (unsigned long long)c->lost_pages);
		note(c, sink, text);
	}
	return err;
}

int ttmon_mt_names_new(struct ttmon_mt_names **ret)
{
	struct ttmon_mt_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	*ret = names;
	return 0;
}

void ttmon_mt_names_free(struct ttmon_mt_names *names)
{
	if (!names)
		return;
	ttmon_hmap_fini(&names->sites);
	ttmon_hmap_fini(&names->kernels);
	free(names);
}

void ttmon_mt_chan_dict_free(struct ttmon_mt_chan *c)
{
	free(c->sites);
	for (size_t i = 0; i < c->nr_kernels; i++)
		free(c->kernel[i]);
	free(c->kernel);
	free(c->agg);
	ttmon_hmap_fini(&c->launches);
	ttmon_hmap_fini(&c->kernels);
	ttmon_hmap_fini(&c->aggs);
}
