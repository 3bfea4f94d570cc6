// SPDX-License-Identifier: GPL-2.0-only
/* test_decode.c: each check of the decoder at its limit, and the names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ttmon/fns.h>
#include <ttmon/tt_fns.h>

#include "daemon/core/stream/decode.h"

#define NR_CPUS 4

/* A record of any kind, with room after the fixed part. */
union record {
	struct ttmon_event h;
	struct ttmon_ev_proc proc;
	struct ttmon_ev_alloc alloc;
	struct ttmon_ev_free free;
	struct ttmon_ev_copy copy;
	struct ttmon_ev_copy_rect rect;
	struct ttmon_ev_hint hint;
	struct ttmon_ev_reset reset;
	struct ttmon_ev_mmap mmap;
	struct ttmon_ev_mremap mremap;
	struct ttmon_ev_brk brk;
	struct ttmon_ev_tag tag;
	struct ttmon_ev_checkpoint checkpoint;
	struct ttmon_ev_launched launched;
	struct ttmon_ev_copy_site copy_site;
	struct ttmon_ev_wait wait;
	struct ttmon_ev_wait_who wait_who;
	struct ttmon_ev_clock clock;
	struct ttmon_ev_text text;
	struct ttmon_ev_object object;
	struct ttmon_ev_map map;
	struct ttmon_ev_gpu_use gpu_use;
	struct ttmon_ev_unwound unwound;
	struct ttmon_ev_symbol symbol;
	struct ttmon_ev_blind blind;
	struct ttmon_ev_lost lost;
	struct ttmon_ev_launch_sums sums;
	struct ttmon_ev_tt_buffer tt_buffer;
	struct ttmon_ev_tt_call tt_call;
	struct ttmon_ev_tt_cb tt_cb;
	struct ttmon_ev_tt_dispatch tt_dispatch;
	struct ttmon_ev_tt_program tt_program;
	struct ttmon_ev_tt_kernel tt_kernel;
	struct ttmon_ev_tt_pin tt_pin;
	struct ttmon_ev_tt_chip tt_chip;
	struct ttmon_ev_tt_object tt_object;
	struct ttmon_ev_tt_proc tt_proc;
	struct ttmon_ev_tt_sums tt_sums;
	struct ttmon_ev_tt_mesh tt_mesh;
	struct ttmon_ev_cpu_slot cpu_slot;
	struct ttmon_ev_cpu_open cpu_open;
	struct ttmon_ev_task task;
	struct ttmon_ev_rmid rmid;
	struct ttmon_ev_rdt rdt;
	struct ttmon_ev_rmid_info rmid_info;
	uint64_t words[(TTMON_RECORD_MAX + 8) / 8];
};

static const unsigned int kinds[] = {
#define X(id, ...) id,
	TTMON_EVENT_TABLE(X)
#undef X
};

static union record r;

/* Makes the shortest valid record of a kind. Returns its size. */
static size_t good(unsigned int kind)
{
	memset(&r, 0, sizeof(r));
	r.h.kind = (uint16_t)kind;
	r.h.cpu = kind < TTMON_EV_FACT ? NR_CPUS - 1 : TTMON_CPU_DAEMON;
	switch (kind) {
	case TTMON_EV_ALLOC:
		r.alloc.fn = 1;
		break;
	case TTMON_EV_FREE:
		r.free.fn = 3;
		break;
	case TTMON_EV_COPY:
		r.copy.fn = 16;
		break;
	case TTMON_EV_COPY_RECT:
		r.rect.fn = 18;
		r.rect.rows = r.rect.slices = 1;
		break;
	case TTMON_EV_HINT:
		r.hint.fn = 44;
		break;
	case TTMON_EV_RESET:
		r.reset.fn = 51;
		break;
	case TTMON_EV_WAIT:
		r.wait.fn = 520;
		break;
	case TTMON_EV_COPY_SITE:
		r.copy_site.fn = 17;
		break;
	case TTMON_EV_TT_BUFFER:
		r.tt_buffer.fn = 256;
		break;
	case TTMON_EV_TT_CALL:
		r.tt_call.fn = 273;
		break;
	case TTMON_EV_TT_DISPATCH:
		r.tt_dispatch.fn = 310;
		break;
	case TTMON_EV_TT_PROGRAM:
		r.tt_program.fn = 340;
		r.tt_program.count = 1;
		break;
	case TTMON_EV_TT_CHIP:
		r.tt_chip.index = 1;
		break;
	case TTMON_EV_CPU_SLOT:
		r.cpu_slot.t.row_size = TTMON_CPU_ROW_SHORT;
		break;
	case TTMON_EV_CPU_OPEN:
		r.cpu_open.t.row_size = TTMON_CPU_ROW_FULL;
		break;
	case TTMON_EV_RMID:
	case TTMON_EV_RMID_SET:
		r.rmid.rmid = 1;
		break;
	case TTMON_EV_RMID_INFO:
		r.rmid_info.scale = 1;
		r.rmid_info.width = 24;
		break;
	case TTMON_EV_CLOCK:
		r.clock.page_size = 4096;
		break;
	case TTMON_EV_OBJECT:
		r.object.id = 1;
		break;
	case TTMON_EV_MAP:
		r.map.end = 1;
		break;
	case TTMON_EV_GPU_USE:
		r.gpu_use.size = 1;
		break;
	default:
		break;
	}
	return ttmon_event_min_size(kind);
}

#define EXPECT(want, size) assert_int_equal(ttmon_decode(&r, (size), NR_CPUS), TTMON_DECODE_##want)
/* The present record is valid, and with this one change it is invalid. */
#define BREAK(kind, change, want)          \
	do {                               \
		size_t size_ = good(kind); \
		EXPECT(OK, size_);         \
		r.change;                  \
		EXPECT(want, size_);       \
	} while (0)
#define KEEP(kind, change)                 \
	do {                               \
		size_t size_ = good(kind); \
		r.change;                  \
		EXPECT(OK, size_);         \
	} while (0)

/* WAIT with the processes that ran meanwhile. */
static void checks_who_made_a_call_wait(void **state)
{
	(void)state;
	good(TTMON_EV_WAIT);
	r.wait.bits = TTMON_W_WHO;
	EXPECT(LENGTH, sizeof(r.wait_who) - 8);
	EXPECT(OK, sizeof(r.wait_who));
	r.wait_who.nr_rows = TTMON_WHO_ROWS;
	EXPECT(OK, sizeof(r.wait_who));
	r.wait_who.row[TTMON_WHO_ROWS - 1].who.role = TTMON_WAIT_ROLES;
	EXPECT(VALUE, sizeof(r.wait_who));
	r.wait_who.nr_rows--;
	EXPECT(OK, sizeof(r.wait_who));
	r.wait_who.row[0].fn = 520;
	EXPECT(OK, sizeof(r.wait_who));
	r.wait_who.row[0].fn = 520 + (1 << 16);
	EXPECT(VALUE, sizeof(r.wait_who));
	r.wait_who.row[0].fn = 0;
	memset(r.wait_who.row[0].who.comm, 'x', sizeof(r.wait_who.row[0].who.comm));
	EXPECT(VALUE, sizeof(r.wait_who));
	good(TTMON_EV_WAIT);
	r.wait.bits = TTMON_W_WHO;
	r.wait_who.nr_rows = TTMON_WHO_ROWS + 1;
	EXPECT(VALUE, sizeof(r.wait_who));
}

static void takes_the_least_record_of_each_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t size = good(kinds[i]);

		assert_true(size >= sizeof(struct ttmon_event) && size % 8 == 0);
		EXPECT(OK, size);
		EXPECT(OK, size + 8); /* a later version appended a field */
		EXPECT(OK, TTMON_RECORD_MAX);
		EXPECT(SHORT, size - 8);
		EXPECT(SHORT, size - 1);
		EXPECT(SHORT, size + 4);
		EXPECT(SHORT, TTMON_RECORD_MAX + 8);
	}
}

static void refuses_what_is_no_record(void **state)
{
	(void)state;
	good(TTMON_EV_BRK);
	EXPECT(SHORT, 0);
	EXPECT(SHORT, 16);
	for (unsigned int kind = 0; kind <= UINT16_MAX; kind++) {
		if (ttmon_event_min_size(kind))
			continue;
		r.h.kind = (uint16_t)kind;
		EXPECT(KIND, 512);
	}
}

static void checks_the_cpu(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i] < TTMON_EV_FACT) {
			BREAK(kinds[i], h.cpu = NR_CPUS, CPU);
			BREAK(kinds[i], h.cpu = TTMON_CPU_DAEMON, CPU);
		} else {
			BREAK(kinds[i], h.cpu = 0, CPU);
		}
	}
	BREAK(TTMON_EV_LOST, lost.stat_cpu = NR_CPUS, CPU);
	BREAK(TTMON_EV_LAUNCH_SUMS, sums.of_cpu = NR_CPUS, CPU);
	KEEP(TTMON_EV_LAUNCH_SUMS, sums.of_cpu = NR_CPUS - 1);
	KEEP(TTMON_EV_LOST, lost.stat_cpu = NR_CPUS - 1);
}

static void checks_values(void **state)
{
	(void)state;
	BREAK(TTMON_EV_PROC, proc.reason = TTMON_PROC_REASON_MAX, VALUE);
	BREAK(TTMON_EV_ALLOC, alloc.method = TTMON_METHOD_MAX, VALUE);
	BREAK(TTMON_EV_COPY_SITE, copy_site.fn = 0, VALUE);
	BREAK(TTMON_EV_COPY_SITE, copy_site.nframes = 1, LENGTH);
	/* The number of the copy is behind the frames. */
	BREAK(TTMON_EV_COPY_SITE, copy_site.stack = TTMON_STACK_COPY, LENGTH);
	BREAK(TTMON_EV_COPY_SITE, copy_site.stack = 8, VALUE);
	KEEP(TTMON_EV_COPY_SITE, copy_site.stack = TTMON_STACK_CONFIRMED | TTMON_CS_CUT);
	BREAK(TTMON_EV_ALLOC, alloc.bits = TTMON_STACK_COPY << TTMON_B_STACK_SHIFT, LENGTH);
	KEEP(TTMON_EV_ALLOC, alloc.bits = TTMON_STACK_UNCHECKED << TTMON_B_STACK_SHIFT);
	BREAK(TTMON_EV_UNWOUND, unwound.by = TTMON_STACK_BY_MAX, VALUE);
	BREAK(TTMON_EV_UNWOUND, unwound.end = TTMON_STACK_END_MAX, VALUE);
	BREAK(TTMON_EV_UNWOUND, unwound.nframes = 1, LENGTH);
	BREAK(TTMON_EV_ALLOC, alloc.fn = 0, VALUE);
	BREAK(TTMON_EV_ALLOC, alloc.fn = 79, VALUE); /* a gap in the table */
	BREAK(TTMON_EV_ALLOC, alloc.fn = TTMON_FN_COUNT, VALUE);
	KEEP(TTMON_EV_ALLOC, alloc.fn = TTMON_FN_USER + TTMON_FN_USER_MAX - 1);
	KEEP(TTMON_EV_ALLOC, alloc.fn = TTMON_FN_USDT_ALLOC);
	KEEP(TTMON_EV_ALLOC, alloc.size = UINT64_MAX); /* a size that a program requested */
	BREAK(TTMON_EV_FREE, free.method = TTMON_METHOD_MAX, VALUE);
	BREAK(TTMON_EV_ALLOC, alloc.method = TTMON_METHOD_TT_L1, VALUE); /* comes as TT_BUFFER */
	BREAK(TTMON_EV_FREE, free.method = TTMON_METHOD_TT_CB, VALUE);
	BREAK(TTMON_EV_FREE, free.fn = UINT16_MAX, VALUE);
	BREAK(TTMON_EV_COPY, copy.dir = TTMON_DIR_MAX, VALUE);
	KEEP(TTMON_EV_COPY, copy.dir = TTMON_DIR_INVALID);
	BREAK(TTMON_EV_COPY, copy.fn = 0, VALUE);
	BREAK(TTMON_EV_COPY_RECT, rect.dir = TTMON_DIR_MAX, VALUE);
	BREAK(TTMON_EV_COPY_RECT, rect.rows = 0, VALUE);
	BREAK(TTMON_EV_COPY_RECT, rect.slices = 0, VALUE);
	BREAK(TTMON_EV_COPY_RECT, rect.fn = 0, VALUE);
	BREAK(TTMON_EV_HINT, hint.hint = TTMON_HINT_DEVICE_PTR + 1, VALUE);
	BREAK(TTMON_EV_HINT, hint.fn = 0, VALUE);
	BREAK(TTMON_EV_WAIT, wait.fn = 0, VALUE);
	BREAK(TTMON_EV_WAIT, wait.bits = TTMON_W_BITS + 1, VALUE);
	BREAK(TTMON_EV_WAIT, wait.bits = TTMON_W_WHO, LENGTH);
	BREAK(TTMON_EV_RESET, reset.fn = 0, VALUE);
	BREAK(TTMON_EV_MMAP, mmap.addr = r.mmap.len = UINT64_MAX / 2 + 1, VALUE);
	BREAK(TTMON_EV_MREMAP, mremap.new_addr = r.mremap.new_len = UINT64_MAX / 2 + 1, VALUE);
	KEEP(TTMON_EV_MREMAP, mremap.old_addr = r.mremap.old_len = UINT64_MAX / 2 + 1);
	BREAK(TTMON_EV_BRK, brk.start = 1, VALUE);
	KEEP(TTMON_EV_BRK, brk.start = r.brk.brk = 1);
	BREAK(TTMON_EV_CLOCK, clock.page_size = 0, VALUE);
	BREAK(TTMON_EV_CLOCK, clock.page_size = 4097, VALUE);
	BREAK(TTMON_EV_CLOCK, clock.capture = TTMON_CAPTURE_COMMAND + 1, VALUE);
	BREAK(TTMON_EV_PROC_NAME, text.what = TTMON_TEXT_UID + 1, VALUE);
	BREAK(TTMON_EV_OBJECT, object.id = 0, VALUE);
	BREAK(TTMON_EV_OBJECT, object.build_id_len = TTMON_BUILD_ID + 1, VALUE);
	BREAK(TTMON_EV_GPU_USE, gpu_use.size = 0, VALUE);
	BREAK(TTMON_EV_MAP, map.end = 0, VALUE);
	BREAK(TTMON_EV_MAP, map.shared = 2, VALUE);
	BREAK(TTMON_EV_BLIND, blind.how = 9, VALUE);
	BREAK(TTMON_EV_LAUNCHED, launched.since = TTMON_LAUNCHED_MAX, VALUE);
	KEEP(TTMON_EV_LAUNCHED, launched.since = TTMON_LAUNCHED_GAP);
	BREAK(TTMON_EV_LOST, lost.stat_kind = TTMON_EV_FACT, VALUE);

	good(TTMON_EV_TAG);
	memset(r.tag.tag, 't', sizeof(r.tag.tag));
	EXPECT(VALUE, sizeof(r.tag));
	r.tag.tag[sizeof(r.tag.tag) - 1] = 0;
	EXPECT(OK, sizeof(r.tag));
	good(TTMON_EV_CHECKPOINT);
	EXPECT(OK, sizeof(r.checkpoint));
	memset(r.checkpoint.label, 'l', sizeof(r.checkpoint.label));
	EXPECT(VALUE, sizeof(r.checkpoint));
	r.checkpoint.label[sizeof(r.checkpoint.label) - 1] = 0;
	EXPECT(OK, sizeof(r.checkpoint));
	good(TTMON_EV_CLOCK);
	memset(r.clock.hostname, 'h', sizeof(r.clock.hostname));
	EXPECT(VALUE, sizeof(r.clock));
	good(TTMON_EV_CLOCK);
	memset(r.clock.release, 'r', sizeof(r.clock.release));
	EXPECT(VALUE, sizeof(r.clock));
	good(TTMON_EV_CLOCK);
	memset(r.clock.release, 'r', sizeof(r.clock.release) - 1);
	EXPECT(OK, sizeof(r.clock));
}

static void checks_tenstorrent(void **state)
{
	size_t size;

	(void)state;
	BREAK(TTMON_EV_TT_BUFFER, tt_buffer.fn = 281, VALUE); /* a function of another class */
	BREAK(TTMON_EV_TT_BUFFER, tt_buffer.fn = 1, VALUE);
	BREAK(TTMON_EV_TT_BUFFER, tt_buffer.base = TTMON_TT_BASE_MAX, VALUE);
	BREAK(TTMON_EV_TT_BUFFER, tt_buffer.dev_kind = TTMON_TT_DEV_MAX, VALUE);
	BREAK(TTMON_EV_TT_BUFFER, tt_buffer.slot = TTMON_TT_SLOTS, VALUE);
	BREAK(TTMON_EV_TT_CALL, tt_call.fn = 383, VALUE);
	BREAK(TTMON_EV_TT_CALL, tt_call.dev_kind = TTMON_TT_DEV_MAX, VALUE);
	BREAK(TTMON_EV_TT_CALL, tt_call.slot = TTMON_TT_SLOTS, VALUE);
	/* The cores of a circular buffer: none in older records, else as many as the record says. */
	good(TTMON_EV_TT_CALL);
	r.tt_call.fn = 290;
	EXPECT(OK, sizeof(r.tt_call));
	EXPECT(LENGTH, sizeof(r.tt_call) + 8);
	r.tt_cb.nr_ranges = 2;
	EXPECT(LENGTH, offsetof(struct ttmon_ev_tt_cb, range));
	EXPECT(OK, offsetof(struct ttmon_ev_tt_cb, range[2]));
	r.tt_cb.nr_ranges = TTMON_TT_CORE_RANGES;
	EXPECT(OK, sizeof(r.tt_cb));
	r.tt_cb.nr_ranges++;
	EXPECT(VALUE, sizeof(r.tt_cb));
	BREAK(TTMON_EV_TT_DISPATCH, tt_dispatch.fn = 256, VALUE);
	BREAK(TTMON_EV_TT_DISPATCH, tt_dispatch.kind = TTMON_TT_DISPATCH_MAX, VALUE);
	BREAK(TTMON_EV_TT_DISPATCH, tt_dispatch.dev_kind = TTMON_TT_DEV_MAX, VALUE);
	BREAK(TTMON_EV_TT_DISPATCH, tt_dispatch.blocking = 2, VALUE);
	BREAK(TTMON_EV_TT_DISPATCH, tt_dispatch.slot = TTMON_TT_SLOTS, VALUE);
	BREAK(TTMON_EV_TT_PROGRAM, tt_program.fn = 0, VALUE);
	BREAK(TTMON_EV_TT_PROGRAM, tt_program.nth = 1, VALUE);
	BREAK(TTMON_EV_TT_PROGRAM, tt_program.slot = TTMON_TT_SLOTS, VALUE);
	BREAK(TTMON_EV_TT_PIN, tt_pin.op = TTMON_TT_PIN_OP_MAX, VALUE);
	BREAK(TTMON_EV_TT_CHIP, tt_chip.index = 0, VALUE);
	BREAK(TTMON_EV_TT_CHIP, tt_chip.arch = TTMON_TT_ARCH_MAX, VALUE);
	BREAK(TTMON_EV_TT_OBJECT, tt_object.slot = TTMON_TT_SLOTS, VALUE);
	BREAK(TTMON_EV_TT_OBJECT, tt_object.unprobed = 1 << TTMON_TT_DISPATCH_MAX, VALUE);
	BREAK(TTMON_EV_TT_PROC, tt_proc.how = TTMON_TT_HOW_MAX, VALUE);
	BREAK(TTMON_EV_TT_SUMS, tt_sums.of_cpu = NR_CPUS, CPU);
	BREAK(TTMON_EV_TT_SUMS, tt_sums.dev_kind = TTMON_TT_DEV_MAX, VALUE);
	size = good(TTMON_EV_TT_KERNEL);
	memset(r.tt_kernel.name, 'k', sizeof(r.tt_kernel.name));
	EXPECT(VALUE, size);
	size = good(TTMON_EV_TT_CHIP);
	memset(r.tt_chip.card, 'c', sizeof(r.tt_chip.card));
	EXPECT(VALUE, size);
	size = good(TTMON_EV_TT_MESH);
	r.tt_mesh.count = 2;
	EXPECT(LENGTH, size + sizeof(struct ttmon_tt_mesh_dev));
	EXPECT(OK, size + 2 * sizeof(struct ttmon_tt_mesh_dev));
	r.tt_mesh.count = TTMON_TT_MESH_MAX + 1;
	EXPECT(VALUE, size + (TTMON_TT_MESH_MAX + 1) * sizeof(struct ttmon_tt_mesh_dev));
}

static void checks_lengths(void **state)
{
	size_t size;

	(void)state;
	size = good(TTMON_EV_ALLOC);
	r.alloc.nframes = 3;
	EXPECT(LENGTH, size + 16);
	EXPECT(OK, size + 24);
	EXPECT(OK, size + 32);
	r.alloc.nframes = TTMON_MAX_FRAMES;
	EXPECT(OK, size + TTMON_MAX_FRAMES * 8);
	r.alloc.nframes = TTMON_MAX_FRAMES + 1;
	EXPECT(VALUE, size + (TTMON_MAX_FRAMES + 1) * 8);

#define TEXT(kind, field)                         \
	do {                                      \
		size = good(kind);                \
		r.field.len = 9;                  \
		EXPECT(LENGTH, size + 8);         \
		EXPECT(OK, size + 16);            \
		r.field.len = 16;                 \
		EXPECT(OK, size + 16);            \
		r.field.len = UINT32_MAX;         \
		EXPECT(LENGTH, TTMON_RECORD_MAX); \
	} while (0)
	TEXT(TTMON_EV_PROC_NAME, text);
	TEXT(TTMON_EV_OBJECT, object);
	TEXT(TTMON_EV_MAP, map);
	TEXT(TTMON_EV_SYMBOL, symbol);
#undef TEXT
}

static void names_are_those_of_the_tables(void **state)
{
	(void)state;
	assert_string_equal(ttmon_event_name(TTMON_EV_PROC), "proc");
	assert_string_equal(ttmon_event_name(TTMON_EV_COPY_RECT), "copy_rect");
	assert_string_equal(ttmon_event_name(TTMON_EV_MAPS_DONE), "maps_done");
	assert_null(ttmon_event_name(0));
	assert_null(ttmon_event_name(TTMON_EV_FACT - 1));
	assert_null(ttmon_event_name(TTMON_EV_MAX));
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (const char *c = ttmon_event_name(kinds[i]); *c; c++)
			assert_true((*c >= 'a' && *c <= 'z') || *c == '_');
	assert_int_equal(ttmon_event_min_size(TTMON_EV_FREE), 56);
	assert_int_equal(ttmon_event_min_size(TTMON_EV_MAX), 0);

	assert_string_equal(ttmon_method_name(TTMON_METHOD_HOST_ALLOC), "host_alloc");
	assert_string_equal(ttmon_method_name(TTMON_METHOD_CUSTOM), "custom");
	assert_null(ttmon_method_name(TTMON_METHOD_MAX));
	assert_string_equal(ttmon_dir_name(TTMON_DIR_H2D), "h2d");
	for (unsigned int dir = 0; dir < TTMON_DIR_MAX; dir++)
		assert_non_null(ttmon_dir_name(dir));
	assert_null(ttmon_dir_name(TTMON_DIR_MAX));
	assert_string_equal(ttmon_loss_name(TTMON_LOSS_UNPAIRED), "unpaired");
	assert_null(ttmon_loss_name(TTMON_LOSS_MAX));

	assert_string_equal(ttmon_fn_name(1), "cudaHostAlloc");
	assert_string_equal(ttmon_fn_name(149), "cuGraphAddMemcpyNode");
	assert_string_equal(ttmon_fn_name(TTMON_FN_USER), "user0");
	assert_string_equal(ttmon_fn_name(TTMON_FN_USER + 15), "user15");
	assert_string_equal(ttmon_fn_name(TTMON_FN_USDT_ALLOC), "usdt:alloc");
	assert_string_equal(ttmon_fn_name(TTMON_FN_USDT_FREE), "usdt:free");
	assert_string_equal(ttmon_fn_name(TTMON_FN_USDT_CHECKPOINT), "usdt:checkpoint");
	assert_null(ttmon_fn_name(0));
	assert_null(ttmon_fn_name(154));
	assert_null(ttmon_fn_name(TTMON_FN_COUNT));
}

static void names_cuda_errors(void **state)
{
	int named = 0;

	(void)state;
	assert_string_equal(ttmon_cuda_error_name(0), "cudaSuccess");
	assert_string_equal(ttmon_cuda_error_name(2), "cudaErrorMemoryAllocation");
	assert_string_equal(ttmon_cuda_error_name(35), "cudaErrorInsufficientDriver");
	assert_string_equal(ttmon_cuda_error_name(712), "cudaErrorHostMemoryAlreadyRegistered");
	assert_string_equal(ttmon_cuda_error_name(999), "cudaErrorUnknown");
	assert_null(ttmon_cuda_error_name(-1));
	assert_string_equal(ttmon_error_name(1, 2), "cudaErrorMemoryAllocation");
	assert_string_equal(ttmon_error_name(370, -22), "EINVAL");
	assert_null(ttmon_error_name(370, INT32_MIN + 1));
	assert_null(ttmon_cuda_error_name(5));
	assert_null(ttmon_cuda_error_name(INT32_MAX));
	assert_null(ttmon_cuda_error_name(65536 + 2));
	/* The table is searched by bisection: each row is found only if it is sorted. */
	for (int err = 0; err < 1000; err++)
		named += ttmon_cuda_error_name(err) != NULL;
	assert_int_equal(named, 74);
}

static void checks_tables_of_cpus(void **state)
{
	struct ttmon_cpu_row *row;
	size_t size;

	(void)state;
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.row_size = 32, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.nr_rows = TTMON_CPU_ROWS + 1, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.switched = 2, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.who.cls = TTMON_CPU_CLASS_MAX, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.who.flags = 4, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.who.rmid = TTMON_RMID_LIMIT, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.begin_ns = 1, VALUE); /* last before begin */
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.to_ns = UINT64_MAX, VALUE);
	BREAK(TTMON_EV_CPU_SLOT, cpu_slot.t.nr_rows = 1, LENGTH);
	BREAK(TTMON_EV_CPU_OPEN, cpu_open.of_cpu = NR_CPUS, CPU);
	BREAK(TTMON_EV_CPU_OPEN, cpu_open.state = TTMON_CPU_OPEN_STATE_MAX, VALUE);
	BREAK(TTMON_EV_CPU_OPEN, cpu_open.t.row_size = 0, VALUE);

	/* An unknown state of a CPU has no table. */
	good(TTMON_EV_CPU_OPEN);
	r.cpu_open.state = TTMON_CPU_OPEN_OFFLINE;
	r.cpu_open.t.row_size = 0;
	EXPECT(OK, sizeof(r.cpu_open));

	size = good(TTMON_EV_CPU_SLOT);
	r.cpu_slot.t.nr_rows = 2;
	row = (struct ttmon_cpu_row *)((char *)&r + size + TTMON_CPU_ROW_SHORT);
	EXPECT(LENGTH, size + 2 * TTMON_CPU_ROW_SHORT - 8);
	EXPECT(OK, size + 2 * TTMON_CPU_ROW_SHORT);
	row->ns = NSEC_PER_MS;
	EXPECT(OK, size + 2 * TTMON_CPU_ROW_SHORT);
	row->ns++;
	EXPECT(VALUE, size + 2 * TTMON_CPU_ROW_SHORT);
	row->ns = 0;
	row->who.cls = TTMON_CPU_CLASS_MAX;
	EXPECT(VALUE, size + 2 * TTMON_CPU_ROW_SHORT);
}

static void checks_rmids(void **state)
{
	(void)state;
	BREAK(TTMON_EV_TASK, task.reason = TTMON_TASK_REASON_MAX, VALUE);
	BREAK(TTMON_EV_TASK, task.cls = TTMON_CPU_CLASS_MAX, VALUE);
	BREAK(TTMON_EV_TASK, task.comm[15] = memset(r.task.comm, 'x', 15) ? 'x' : 0, VALUE);
	BREAK(TTMON_EV_RMID, rmid.rmid = TTMON_RMID_LIMIT, VALUE);
	BREAK(TTMON_EV_RMID, rmid.rmid = 0, VALUE);
	BREAK(TTMON_EV_RMID, rmid.op = TTMON_RMID_NONE, VALUE); /* it has a number all the same */
	BREAK(TTMON_EV_RMID_SET, rmid.op = TTMON_RMID_OP_MAX, VALUE);
	BREAK(TTMON_EV_RDT, rdt.rmid = TTMON_RMID_LIMIT, VALUE);
	BREAK(TTMON_EV_RDT, rdt.state[2] = TTMON_RDT_STATE_MAX, VALUE);
	BREAK(TTMON_EV_RDT_READ, rdt.state[0] = TTMON_RDT_STATE_MAX, VALUE);
	BREAK(TTMON_EV_RMID_INFO, rmid_info.scale = 0, VALUE);
	BREAK(TTMON_EV_RMID_INFO, rmid_info.width = 23, VALUE);
	BREAK(TTMON_EV_RMID_INFO, rmid_info.width = 65, VALUE);
	BREAK(TTMON_EV_RMID_INFO, rmid_info.backend = TTMON_RMID_BACKEND_MAX, VALUE);
	BREAK(TTMON_EV_RMID_INFO, rmid_info.max_rmid = TTMON_RMID_LIMIT, VALUE);
	KEEP(TTMON_EV_RDT, rdt.rmid = 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_least_record_of_each_kind),
		cmocka_unit_test(checks_who_made_a_call_wait),
		cmocka_unit_test(checks_tables_of_cpus),
		cmocka_unit_test(checks_rmids),
		cmocka_unit_test(refuses_what_is_no_record),
		cmocka_unit_test(checks_the_cpu),
		cmocka_unit_test(checks_values),
		cmocka_unit_test(checks_tenstorrent),
		cmocka_unit_test(checks_lengths),
		cmocka_unit_test(names_are_those_of_the_tables),
		cmocka_unit_test(names_cuda_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
