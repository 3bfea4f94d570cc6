// SPDX-License-Identifier: GPL-2.0-only
/*
 * decode.c: the gate between bytes and the core, and the names of what passes it.
 *
 * Any thread; no state. A record that comes through (TTMON_DECODE_OK) has a known kind, a CPU that may index a table, lengths
 * that end inside the record, and numbers within their enums, so that nothing behind looks at them again. A record longer than
 * its struct is let through: later versions append fields. What a program may well have passed to a call (sizes, addresses,
 * flags, device numbers, and ranges that wrap) is not judged here; ranges that the kernel or the daemon vouches for are.
 *
 * The record must be aligned to 8 bytes; the ring and the pipeline see to that.
 */
#include "core/decode.h"

#include <ttmon/family.h>
#include <ttmon/fns.h>

#include "core/ttfns.h"

/* Lower case of the table's names, made by the compiler: a literal indexed by a constant is a constant. */
#define PADDED(s)   s "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define LOWER(s, i) (PADDED(s)[i] >= 'A' && PADDED(s)[i] <= 'Z' ? PADDED(s)[i] + ('a' - 'A') : PADDED(s)[i])
#define NAME_LEN    16
#define LOWER_NAME(s)                                                                                                  \
	{                                                                                                              \
		LOWER(s, 0), LOWER(s, 1), LOWER(s, 2), LOWER(s, 3), LOWER(s, 4), LOWER(s, 5), LOWER(s, 6),             \
			LOWER(s, 7), LOWER(s, 8), LOWER(s, 9), LOWER(s, 10), LOWER(s, 11), LOWER(s, 12), LOWER(s, 13), \
			LOWER(s, 14), 0,                                                                               \
	}

static const char event_names[TTMON_EV_MAX][NAME_LEN] = {
#define X(id, NAME, type, help) [id] = LOWER_NAME(#NAME),
	TTMON_EVENT_TABLE(X)
#undef X
};

#define X(id, NAME, type, help) _Static_assert(sizeof(#NAME) <= NAME_LEN, "name of " #NAME);
TTMON_EVENT_TABLE(X)
#undef X

static const uint16_t min_sizes[TTMON_EV_MAX] = {
#define X(id, NAME, type, help) [id] = sizeof(struct type),
	TTMON_EVENT_TABLE(X)
#undef X
};

static const char *const method_names[TTMON_METHOD_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_METHOD_TABLE(X)
#undef X
};

static const char *const loss_names[TTMON_LOSS_MAX] = {
#define X(id, NAME, name, help) [id] = name,
	TTMON_LOSS_TABLE(X)
#undef X
};

static const char *const dir_names[TTMON_DIR_MAX] = {
	[TTMON_DIR_H2H] = "h2h", [TTMON_DIR_H2D] = "h2d",	  [TTMON_DIR_D2H] = "d2h",
	[TTMON_DIR_D2D] = "d2d", [TTMON_DIR_DEFAULT] = "default", [TTMON_DIR_INVALID] = "invalid",
};

/* Left alone by clang-format, which would put each name on a line of its own. */
/* clang-format off */
#define USER(n) [TTMON_FN_USER + (n)] = "user" #n
static const char *const fn_names[TTMON_FN_COUNT] = {
#define F(id, symbol, ...) [id] = #symbol,
	TTMON_FN_TABLE(F)
#undef F
	USER(0), USER(1), USER(2), USER(3), USER(4), USER(5), USER(6), USER(7),
	USER(8), USER(9), USER(10), USER(11), USER(12), USER(13), USER(14), USER(15),
	[TTMON_FN_USDT_ALLOC] = "usdt:alloc",
	[TTMON_FN_USDT_FREE] = "usdt:free",
	[TTMON_FN_USDT_CHECKPOINT] = "usdt:checkpoint",
};
/* clang-format on */
_Static_assert(TTMON_FN_USER_MAX == 16, "a name for each");

/* Sorted by code. Codes that no call seen here returns (textures, surfaces, MPS, profiler) are left to be printed as numbers. */
static const struct {
	int16_t code;
	const char *name;
} cuda_errors[] = {
	{ 0, "cudaSuccess" },
	{ 1, "cudaErrorInvalidValue" },
	{ 2, "cudaErrorMemoryAllocation" },
	{ 3, "cudaErrorInitializationError" },
	{ 4, "cudaErrorCudartUnloading" },
	{ 9, "cudaErrorInvalidConfiguration" },
	{ 12, "cudaErrorInvalidPitchValue" },
	{ 13, "cudaErrorInvalidSymbol" },
	{ 16, "cudaErrorInvalidHostPointer" },
	{ 17, "cudaErrorInvalidDevicePointer" },
	{ 21, "cudaErrorInvalidMemcpyDirection" },
	{ 34, "cudaErrorStubLibrary" },
	{ 35, "cudaErrorInsufficientDriver" },
	{ 36, "cudaErrorCallRequiresNewerDriver" },
	{ 46, "cudaErrorDevicesUnavailable" },
	{ 49, "cudaErrorIncompatibleDriverContext" },
	{ 52, "cudaErrorMissingConfiguration" },
	{ 98, "cudaErrorInvalidDeviceFunction" },
	{ 100, "cudaErrorNoDevice" },
	{ 101, "cudaErrorInvalidDevice" },
	{ 103, "cudaErrorSoftwareValidityNotEstablished" },
	{ 127, "cudaErrorStartupFailure" },
	{ 200, "cudaErrorInvalidKernelImage" },
	{ 201, "cudaErrorDeviceUninitialized" },
	{ 205, "cudaErrorMapBufferObjectFailed" },
	{ 206, "cudaErrorUnmapBufferObjectFailed" },
	{ 208, "cudaErrorAlreadyMapped" },
	{ 209, "cudaErrorNoKernelImageForDevice" },
	{ 211, "cudaErrorNotMapped" },
	{ 214, "cudaErrorECCUncorrectable" },
	{ 216, "cudaErrorDeviceAlreadyInUse" },
	{ 217, "cudaErrorPeerAccessUnsupported" },
	{ 218, "cudaErrorInvalidPtx" },
	{ 220, "cudaErrorNvlinkUncorrectable" },
	{ 226, "cudaErrorContained" },
	{ 304, "cudaErrorOperatingSystem" },
	{ 400, "cudaErrorInvalidResourceHandle" },
	{ 401, "cudaErrorIllegalState" },
	{ 500, "cudaErrorSymbolNotFound" },
	{ 600, "cudaErrorNotReady" },
	{ 700, "cudaErrorIllegalAddress" },
	{ 701, "cudaErrorLaunchOutOfResources" },
	{ 702, "cudaErrorLaunchTimeout" },
	{ 704, "cudaErrorPeerAccessAlreadyEnabled" },
	{ 705, "cudaErrorPeerAccessNotEnabled" },
	{ 708, "cudaErrorSetOnActiveProcess" },
	{ 709, "cudaErrorContextIsDestroyed" },
	{ 710, "cudaErrorAssert" },
	{ 711, "cudaErrorTooManyPeers" },
	{ 712, "cudaErrorHostMemoryAlreadyRegistered" },
	{ 713, "cudaErrorHostMemoryNotRegistered" },
	{ 714, "cudaErrorHardwareStackError" },
	{ 715, "cudaErrorIllegalInstruction" },
	{ 716, "cudaErrorMisalignedAddress" },
	{ 717, "cudaErrorInvalidAddressSpace" },
	{ 718, "cudaErrorInvalidPc" },
	{ 719, "cudaErrorLaunchFailure" },
	{ 720, "cudaErrorCooperativeLaunchTooLarge" },
	{ 800, "cudaErrorNotPermitted" },
	{ 801, "cudaErrorNotSupported" },
	{ 802, "cudaErrorSystemNotReady" },
	{ 803, "cudaErrorSystemDriverMismatch" },
	{ 804, "cudaErrorCompatNotSupportedOnDevice" },
	{ 900, "cudaErrorStreamCaptureUnsupported" },
	{ 901, "cudaErrorStreamCaptureInvalidated" },
	{ 902, "cudaErrorStreamCaptureMerge" },
	{ 903, "cudaErrorStreamCaptureUnmatched" },
	{ 904, "cudaErrorStreamCaptureUnjoined" },
	{ 905, "cudaErrorStreamCaptureIsolation" },
	{ 906, "cudaErrorStreamCaptureImplicit" },
	{ 907, "cudaErrorCapturedEvent" },
	{ 908, "cudaErrorStreamCaptureWrongThread" },
	{ 909, "cudaErrorTimeout" },
	{ 999, "cudaErrorUnknown" },
};

static bool range_wraps(uint64_t addr, uint64_t len)
{
	return addr + len < addr;
}

static bool is_terminated(const char *s, size_t n)
{
	return memchr(s, 0, n) != NULL;
}

static enum ttmon_decode_err value_if(bool bad)
{
	return bad ? TTMON_DECODE_VALUE : TTMON_DECODE_OK;
}

/* A text of len bytes must end within what follows the fixed part. */
static enum ttmon_decode_err check_tail(uint16_t kind, size_t size, uint64_t len, bool bad_value)
{
	if (len > size - min_sizes[kind])
		return TTMON_DECODE_LENGTH;
	return value_if(bad_value);
}

/* Those of Tenstorrent come with events of their own. */
static bool is_cuda_method(uint8_t method)
{
	return method < TTMON_METHOD_MAX && (method < TTMON_METHOD_TT_DRAM || method == TTMON_METHOD_CUSTOM);
}

static enum ttmon_decode_err check_alloc(const struct ttmon_ev_alloc *ev, size_t size)
{
	return check_tail(TTMON_EV_ALLOC, size, (uint64_t)ev->nframes * sizeof(ev->frames[0]),
			  ev->nframes > TTMON_MAX_FRAMES || !is_cuda_method(ev->method) || !ttmon_fn_name(ev->fn));
}

static enum ttmon_decode_err check_clock(const struct ttmon_ev_clock *ev)
{
	return value_if(ev->capture > TTMON_CAPTURE_COMMAND || ev->page_size == 0 ||
			(ev->page_size & (ev->page_size - 1)) || !is_terminated(ev->hostname, sizeof(ev->hostname)) ||
			!is_terminated(ev->release, sizeof(ev->release)));
}

static bool is_tt_fn(uint16_t fn, unsigned int cls)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(fn);

	return d && (!cls || d->cls == cls);
}

static enum ttmon_decode_err check_tt(const struct ttmon_event *ev)
{
	switch (ev->kind) {
	case TTMON_EV_TT_BUFFER: {
		const struct ttmon_ev_tt_buffer *e = (const void *)ev;

		return value_if(!is_tt_fn(e->fn, TTMON_TT_CLS_BUFFER) || e->base >= TTMON_TT_BASE_MAX ||
				e->dev_kind >= TTMON_TT_DEV_MAX || e->slot >= TTMON_TT_SLOTS);
	}
	case TTMON_EV_TT_CALL: {
		const struct ttmon_ev_tt_call *e = (const void *)ev;

		return value_if(!is_tt_fn(e->fn, 0) || e->dev_kind >= TTMON_TT_DEV_MAX || e->slot >= TTMON_TT_SLOTS);
	}
	case TTMON_EV_TT_DISPATCH: {
		const struct ttmon_ev_tt_dispatch *e = (const void *)ev;

		return value_if(!is_tt_fn(e->fn, TTMON_TT_CLS_DISPATCH) || e->kind >= TTMON_TT_DISPATCH_MAX ||
				e->dev_kind >= TTMON_TT_DEV_MAX || e->blocking > 1 || e->slot >= TTMON_TT_SLOTS);
	}
	case TTMON_EV_TT_PROGRAM: {
		const struct ttmon_ev_tt_program *e = (const void *)ev;

		return value_if(!is_tt_fn(e->fn, 0) || e->nth >= e->count || e->slot >= TTMON_TT_SLOTS);
	}
	case TTMON_EV_TT_KERNEL: {
		const struct ttmon_ev_tt_kernel *e = (const void *)ev;

		return value_if(!is_terminated(e->name, sizeof(e->name)));
	}
	case TTMON_EV_TT_PIN:
		return value_if(((const struct ttmon_ev_tt_pin *)ev)->op >= TTMON_TT_PIN_OP_MAX);
	default:
		return TTMON_DECODE_OK;
	}
}

static bool bad_who(const struct ttmon_cpu_who *who)
{
	return who->cls >= TTMON_CPU_CLASS_MAX || who->flags & ~TTMON_WHO_FLAGS || who->rmid >= TTMON_RMID_LIMIT;
}

/* The rows lie behind the record's fixed part. */
static enum ttmon_decode_err check_table(const struct ttmon_event *ev, size_t size, const struct ttmon_cpu_table *t)
{
	const uint8_t *row = (const uint8_t *)ev + min_sizes[ev->kind];

	if (t->nr_rows > TTMON_CPU_ROWS || (t->row_size != TTMON_CPU_ROW_SHORT && t->row_size != TTMON_CPU_ROW_FULL) ||
	    t->switched > 1 || bad_who(&t->who) || t->last_ns - t->begin_ns > NSEC_PER_MS)
		return TTMON_DECODE_VALUE;
	if ((size_t)t->nr_rows * t->row_size > size - min_sizes[ev->kind])
		return TTMON_DECODE_LENGTH;
	for (unsigned int i = 0; i < t->nr_rows; i++, row += t->row_size) {
		const struct ttmon_cpu_row *r = (const void *)row;

		if (bad_who(&r->who) || r->ns > NSEC_PER_MS)
			return TTMON_DECODE_VALUE;
	}
	return TTMON_DECODE_OK;
}

static enum ttmon_decode_err check_rmid(const struct ttmon_ev_rmid *e)
{
	return value_if(e->op >= TTMON_RMID_OP_MAX || e->rmid >= TTMON_RMID_LIMIT ||
			!e->rmid != (e->op == TTMON_RMID_NONE) || !is_terminated(e->comm, sizeof(e->comm)));
}

static enum ttmon_decode_err check_rdt(const struct ttmon_ev_rdt *e)
{
	bool bad = e->rmid >= TTMON_RMID_LIMIT;

	for (unsigned int i = 0; i < TTMON_RDT_VALUES; i++)
		bad |= e->state[i] >= TTMON_RDT_STATE_MAX;
	return value_if(bad);
}

/* Who used the CPUs. */
static enum ttmon_decode_err check_cpu(const struct ttmon_event *ev, size_t size, uint32_t nr_cpus)
{
	switch (ev->kind) {
	case TTMON_EV_CPU_SLOT: {
		const struct ttmon_ev_cpu_slot *e = (const void *)ev;

		if ((int64_t)(e->t.to_ns - e->t.last_ns) < 0)
			return TTMON_DECODE_VALUE;
		return check_table(ev, size, &e->t);
	}
	case TTMON_EV_CPU_OPEN: {
		const struct ttmon_ev_cpu_open *e = (const void *)ev;

		if (e->of_cpu >= nr_cpus)
			return TTMON_DECODE_CPU;
		if (e->state >= TTMON_CPU_OPEN_STATE_MAX)
			return TTMON_DECODE_VALUE;
		return e->state == TTMON_CPU_OPEN_KNOWN ? check_table(ev, size, &e->t) : TTMON_DECODE_OK;
	}
	case TTMON_EV_TASK: {
		const struct ttmon_ev_task *e = (const void *)ev;

		return value_if(e->reason >= TTMON_TASK_REASON_MAX || e->cls >= TTMON_CPU_CLASS_MAX ||
				!is_terminated(e->comm, sizeof(e->comm)));
	}
	case TTMON_EV_RMID:
	case TTMON_EV_RMID_SET:
		return check_rmid((const struct ttmon_ev_rmid *)ev);
	case TTMON_EV_RDT:
	case TTMON_EV_RDT_READ:
		return check_rdt((const struct ttmon_ev_rdt *)ev);
	case TTMON_EV_RMID_INFO: {
		const struct ttmon_ev_rmid_info *e = (const void *)ev;

		return value_if(e->backend >= TTMON_RMID_BACKEND_MAX || e->max_rmid >= TTMON_RMID_LIMIT || !e->scale ||
				e->width < 24 || e->width > 64);
	}
	default:
		return TTMON_DECODE_OK;
	}
}

/* The record is at least as long as its struct. */
static enum ttmon_decode_err check_event(const struct ttmon_event *ev, size_t size, uint32_t nr_cpus)
{
	switch (ev->kind) {
	case TTMON_EV_PROC:
		return value_if(((const struct ttmon_ev_proc *)ev)->reason > TTMON_PROC_EXEC);
	case TTMON_EV_ALLOC:
		return check_alloc((const struct ttmon_ev_alloc *)ev, size);
	case TTMON_EV_FREE: {
		const struct ttmon_ev_free *e = (const void *)ev;

		return value_if(!is_cuda_method(e->method) || !ttmon_fn_name(e->fn));
	}
	case TTMON_EV_COPY: {
		const struct ttmon_ev_copy *e = (const void *)ev;

		return value_if(e->dir >= TTMON_DIR_MAX || !ttmon_fn_name(e->fn));
	}
	case TTMON_EV_COPY_RECT: {
		const struct ttmon_ev_copy_rect *e = (const void *)ev;

		return value_if(e->dir >= TTMON_DIR_MAX || !ttmon_fn_name(e->fn) || !e->rows || !e->slices);
	}
	case TTMON_EV_HINT: {
		const struct ttmon_ev_hint *e = (const void *)ev;

		return value_if(e->hint > TTMON_HINT_DEVICE_PTR || !ttmon_fn_name(e->fn));
	}
	case TTMON_EV_RESET:
		return value_if(!ttmon_fn_name(((const struct ttmon_ev_reset *)ev)->fn));
	case TTMON_EV_MMAP: {
		const struct ttmon_ev_mmap *e = (const void *)ev;

		return value_if(range_wraps(e->addr, e->len));
	}
	case TTMON_EV_MREMAP: {
		const struct ttmon_ev_mremap *e = (const void *)ev;

		return value_if(range_wraps(e->new_addr, e->new_len));
	}
	case TTMON_EV_BRK: {
		const struct ttmon_ev_brk *e = (const void *)ev;

		return value_if(e->brk < e->start);
	}
	case TTMON_EV_TAG: {
		const struct ttmon_ev_tag *e = (const void *)ev;

		return value_if(!is_terminated(e->tag, sizeof(e->tag)));
	}
	case TTMON_EV_CHECKPOINT: {
		const struct ttmon_ev_checkpoint *e = (const void *)ev;

		return value_if(!is_terminated(e->label, sizeof(e->label)));
	}
	case TTMON_EV_LAUNCHED:
		return value_if(((const struct ttmon_ev_launched *)ev)->since >= TTMON_LAUNCHED_MAX);
	case TTMON_EV_COPY_SITE: {
		const struct ttmon_ev_copy_site *e = (const void *)ev;

		return check_tail(ev->kind, size, (uint64_t)e->nframes * sizeof(e->frames[0]),
				  e->nframes > TTMON_MAX_FRAMES || !ttmon_fn_name(e->fn));
	}
	default: /* nothing in them is an index or a length */
		if (ttmon_event_is_cpu(ev->kind))
			return check_cpu(ev, size, nr_cpus);
		return ev->kind >= TTMON_EV_TT_BUFFER ? check_tt(ev) : TTMON_DECODE_OK;
	}
}

static enum ttmon_decode_err check_tt_fact(const struct ttmon_event *ev, size_t size, uint32_t nr_cpus)
{
	switch (ev->kind) {
	case TTMON_EV_TT_CHIP: {
		const struct ttmon_ev_tt_chip *e = (const void *)ev;

		return value_if(!e->index || e->arch >= TTMON_TT_ARCH_MAX || !is_terminated(e->card, sizeof(e->card)));
	}
	case TTMON_EV_TT_OBJECT:
		return value_if(((const struct ttmon_ev_tt_object *)ev)->slot >= TTMON_TT_SLOTS ||
				((const struct ttmon_ev_tt_object *)ev)->unprobed >> TTMON_TT_DISPATCH_MAX);
	case TTMON_EV_TT_PROC:
		return value_if(((const struct ttmon_ev_tt_proc *)ev)->how >= TTMON_TT_HOW_MAX);
	case TTMON_EV_TT_SUMS: {
		const struct ttmon_ev_tt_sums *e = (const void *)ev;

		if (e->of_cpu >= nr_cpus)
			return TTMON_DECODE_CPU;
		return value_if(e->dev_kind >= TTMON_TT_DEV_MAX);
	}
	case TTMON_EV_TT_MESH: {
		const struct ttmon_ev_tt_mesh *e = (const void *)ev;

		return check_tail(ev->kind, size, (uint64_t)e->count * sizeof(e->dev[0]), e->count > TTMON_TT_MESH_MAX);
	}
	default:
		return TTMON_DECODE_OK;
	}
}

static enum ttmon_decode_err check_fact(const struct ttmon_event *ev, size_t size, uint32_t nr_cpus)
{
	switch (ev->kind) {
	case TTMON_EV_CLOCK:
		return check_clock((const struct ttmon_ev_clock *)ev);
	case TTMON_EV_PROC_NAME: {
		const struct ttmon_ev_text *e = (const void *)ev;

		return check_tail(ev->kind, size, e->len, e->what > TTMON_TEXT_UID);
	}
	case TTMON_EV_FAMILY: {
		const struct ttmon_ev_family *e = (const void *)ev;

		return value_if(e->family >= TTMON_FAMILY_MAX || e->state >= TTMON_FAMILY_STATE_MAX || e->why > 1);
	}
	case TTMON_EV_OBJECT: {
		const struct ttmon_ev_object *e = (const void *)ev;

		return check_tail(ev->kind, size, e->len, !e->id || e->build_id_len > TTMON_BUILD_ID);
	}
	case TTMON_EV_MAP: {
		const struct ttmon_ev_map *e = (const void *)ev;

		return check_tail(ev->kind, size, e->len, e->start >= e->end || e->shared > 1);
	}
	case TTMON_EV_SYMBOL:
		return check_tail(ev->kind, size, ((const struct ttmon_ev_symbol *)ev)->len, false);
	case TTMON_EV_BLIND:
		return value_if(((const struct ttmon_ev_blind *)ev)->held > 1);
	case TTMON_EV_GPU_USE:
		return value_if(!((const struct ttmon_ev_gpu_use *)ev)->size);
	case TTMON_EV_LAUNCH_SUMS:
		return ((const struct ttmon_ev_launch_sums *)ev)->of_cpu < nr_cpus ? TTMON_DECODE_OK : TTMON_DECODE_CPU;
	case TTMON_EV_LOST: {
		const struct ttmon_ev_lost *e = (const void *)ev;

		if (e->stat_cpu >= nr_cpus)
			return TTMON_DECODE_CPU;
		return value_if(e->stat_kind >= TTMON_EV_FACT);
	}
	default:
		if (ev->kind >= TTMON_EV_CPU_OPEN)
			return check_cpu(ev, size, nr_cpus);
		return ev->kind >= TTMON_EV_TT_CHIP ? check_tt_fact(ev, size, nr_cpus) : TTMON_DECODE_OK;
	}
}

enum ttmon_decode_err ttmon_decode(const void *rec, size_t size, uint32_t nr_cpus)
{
	const struct ttmon_event *ev = rec;

	if (size < sizeof(*ev) || size % sizeof(uint64_t) || size > TTMON_RECORD_MAX)
		return TTMON_DECODE_SHORT;
	if (ev->kind >= TTMON_EV_MAX || !min_sizes[ev->kind])
		return TTMON_DECODE_KIND;
	if (size < min_sizes[ev->kind])
		return TTMON_DECODE_SHORT;
	if (ev->kind >= TTMON_EV_FACT)
		return ev->cpu == TTMON_CPU_DAEMON ? check_fact(ev, size, nr_cpus) : TTMON_DECODE_CPU;
	return ev->cpu < nr_cpus ? check_event(ev, size, nr_cpus) : TTMON_DECODE_CPU;
}

size_t ttmon_event_min_size(unsigned int kind)
{
	return kind < TTMON_EV_MAX ? min_sizes[kind] : 0;
}

const char *ttmon_event_name(unsigned int kind)
{
	return kind < TTMON_EV_MAX && event_names[kind][0] ? event_names[kind] : NULL;
}

const char *ttmon_method_name(unsigned int method)
{
	return method < TTMON_METHOD_MAX ? method_names[method] : NULL;
}

const char *ttmon_dir_name(unsigned int dir)
{
	return dir < TTMON_DIR_MAX ? dir_names[dir] : NULL;
}

const char *ttmon_fn_name(unsigned int fn)
{
	return fn < TTMON_FN_COUNT ? fn_names[fn] : ttmon_tt_fn_name((uint16_t)fn);
}

const char *ttmon_loss_name(unsigned int reason)
{
	return reason < TTMON_LOSS_MAX ? loss_names[reason] : NULL;
}

const char *ttmon_cuda_error_name(int err)
{
	size_t lo = 0, hi = ARRAY_SIZE(cuda_errors);

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (cuda_errors[mid].code == err)
			return cuda_errors[mid].name;
		if (cuda_errors[mid].code < err)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const char *ttmon_error_name(unsigned int fn, int err)
{
	return fn >= TTMON_TT_FN_FIRST ? strerrorname_np((int)(0u - (unsigned int)err)) : ttmon_cuda_error_name(err);
}
