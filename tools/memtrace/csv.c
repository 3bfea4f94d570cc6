// SPDX-License-Identifier: GPL-2.0-only
/* csv.c: `ttmon memtrace --csv`: a row for each site, launch, kernel or buffer. What is not known is empty. */
#include <inttypes.h>

#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"
#include "tools/slots/slots_tool.h"

static void put_text(const char *text)
{
	_cleanup_free_ char *clean = ttmon_show_clean(text);

	if (clean)
		ttmon_slots_put_csv(clean, strlen(clean));
}

/* A comma, and the value where it is known. */
static void put_known(uint64_t value)
{
	if (value)
		printf(",%" PRIu64, value);
	else
		putchar(',');
}

/* The figures that all four have, with a comma before each. */
static const char sums_head[] =
	",requests,records,inferred,lanes,full,reads,writes,bytes,unique_bytes,sectors,lines,ideal_sectors,ideal_lane_sectors,"
	"misaligned,wavefronts,ideal_wavefronts,max_wavefronts,efficiency,class,class_share,stride,first_byte,last_byte";

static void put_sums(const struct ttmon_mt_report *r, const struct ttmon_mt_sums *s)
{
	const uint64_t plain[] = { s->requests,	   s->records,	  s->inferred, s->lanes,       s->full,	    s->reads,
				   s->writes,	   s->bytes,	  s->unique,   s->sectors,     s->lines,    s->ideal,
				   s->ideal_lanes, s->misaligned, s->waves,    s->ideal_waves, s->max_waves };
	double e = ttmon_mt_efficiency(s, r->args->requested), part = 0;
	unsigned int class = ttmon_mt_main_class(s, &part);

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		printf(",%" PRIu64, plain[i]);
	if (e >= 0)
		printf(",%.4f", e);
	else
		putchar(',');
	if (part > 0)
		printf(",%s,%.4f", ttmon_mt_class_name(class), part);
	else
		printf(",,");
	if (s->stride_votes)
		printf(",%" PRId64, s->stride);
	else
		putchar(',');
	if (s->requests && s->min_addr <= s->max_addr)
		printf(",0x%" PRIx64 ",0x%" PRIx64 "\n", s->min_addr, s->max_addr);
	else
		puts(",,");
}

static void sites(const struct ttmon_mt_report *r, size_t n)
{
	printf("kernel,opcode,space,kind,width,file,line,pc,ptx_line,could_save%s\n", sums_head);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_site_row *row = r->sites[i];
		const struct ttmon_mt_site *s = ttmon_mt_row_site(r->dict, row);

		put_text(s->kernel);
		putchar(',');
		put_text(s->opcode);
		printf(",%s,%s,%u,", ttmon_mt_space_name(row->space), ttmon_mt_kind_name(row->kind), row->width);
		put_text(s->file);
		put_known(s->line);
		if (s->pc)
			printf(",0x%" PRIx64, s->pc);
		else
			putchar(',');
		put_known(s->text_line);
		printf(",%" PRIu64, ttmon_mt_waste(row));
		put_sums(r, &row->sums);
	}
}

static void launches(const struct ttmon_mt_report *r, size_t n)
{
	printf("id,context,kernel,grid_x,grid_y,grid_z,block_x,block_y,block_z,registers,shared_bytes,stream,time_ns,distinct_sectors,again_sectors,"
	       "shared_requests,shared_wavefronts,shared_ideal_wavefronts,local_requests,local_sectors%s\n",
	       sums_head);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_launch_row *row = r->launches[i];
		static const struct ttmon_mt_launch others = { .kernel = "others" };
		bool known = row->launch < r->dict->nr_launches;
		const struct ttmon_mt_launch *l = known ? &r->dict->launches[row->launch] : &others;

		if (known)
			printf("%" PRIu64, l->id);
		printf(",0x%" PRIx64 ",", l->ctx);
		put_text(l->kernel);
		for (unsigned int k = 0; k < 6; k++)
			put_known(k < 3 ? l->grid[k] : l->block[k - 3]);
		printf(",%u,%u,%" PRIu64, l->regs, l->shmem, l->stream);
		put_known(l->time_ns);
		printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
		       row->sectors, row->again, row->shared.requests, row->shared.waves, row->shared.ideal_waves,
		       row->local.requests, row->local.sectors);
		put_sums(r, &row->global);
	}
}

/* ",global_copy_from" */
static void put_name(const char *space, const char *kind)
{
	printf(",%s_", space);
	for (; *kind; kind++)
		putchar(*kind == ' ' ? '_' : *kind);
}

static void kernels(const struct ttmon_mt_report *r, size_t n)
{
	printf("kernel,launches,device_function");
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		for (unsigned int k = 0; k < TTMON_MT_KIND_MAX; k++)
			put_name(ttmon_mt_space_name(s), ttmon_mt_kind_name(k));
	printf(",width_1,width_2,width_4,width_8,width_16,width_32,width_other%s\n", sums_head);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_kernel_row *k = r->kernels[i];

		put_text(k->kernel);
		if (k->function)
			printf(",,1");
		else
			printf(",%" PRIu64 ",0", k->launches);
		for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
			for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++)
				printf(",%" PRIu64, k->requests[s][kind]);
		for (size_t w = 0; w < ARRAY_SIZE(k->widths); w++)
			printf(",%" PRIu64, k->widths[w]);
		put_sums(r, &k->sums);
	}
}

static void buffers(const struct ttmon_mt_report *r, size_t n)
{
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;

	printf("addr,size,memory,id,name,call_site,pid,copies,copied,distinct_sectors,coverage,touches%s\n", sums_head);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_buffer_row *b = r->buffers[i];
		const struct ttmon_mt_alloc *a = b->alloc < nr ? &allocs[b->alloc] : NULL;

		printf("0x%" PRIx64 ",%" PRIu64 ",%s,", b->addr, b->size,
		       ttmon_mt_mem_name(a ? a->mem : TTMON_MT_MEM_UNKNOWN));
		if (a) {
			put_text(a->id);
			putchar(',');
			put_text(a->name);
			putchar(',');
			put_text(a->site);
			printf(",%u,%" PRIu64 ",%" PRIu64, a->pid, a->copies, a->bytes);
		} else {
			printf(",,,,,");
		}
		put_known(b->sectors);
		if (b->size && b->sectors)
			printf(",%.4f", MIN((double)b->sectors * TTMON_MT_SECTOR / (double)b->size, 1));
		else
			putchar(',');
		printf(",%" PRIu64, b->touches);
		put_sums(r, &b->sums);
	}
}

void ttmon_mt_csv(const struct ttmon_mt_report *r)
{
	uint64_t most = r->args->has_lines ? r->args->lines : UINT64_MAX;

	switch (r->args->csv) {
	case TTMON_MT_SHOW_LAUNCHES:
		launches(r, (size_t)MIN((uint64_t)r->nr_launches, most));
		break;
	case TTMON_MT_SHOW_KERNELS:
		kernels(r, (size_t)MIN((uint64_t)r->nr_kernels, most));
		break;
	case TTMON_MT_SHOW_BUFFERS:
		buffers(r, (size_t)MIN((uint64_t)r->nr_buffers, most));
		break;
	default:
		sites(r, (size_t)MIN((uint64_t)r->nr_sites, most));
		break;
	}
}
