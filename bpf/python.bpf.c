// SPDX-License-Identifier: GPL-2.0-only
/*
 * python.bpf.c: the Python frames of the thread that hit the probe (include/ttmon/python.h). They are
 * found through the thread's state in the interpreter's list of threads.
 *
 * The interpreter's variable for the running thread cannot be used: a thread that calls into C may
 * have released the lock. A thread that is not in the list has no Python frames. If memory cannot be
 * read, or if there are several interpreters, it is unknown whether there are frames, and the copy of
 * the stack says so.
 */
#include "stack.bpf.h"

#ifdef __TARGET_ARCH_x86
#define CODE_AGAIN_NS 30000000000ULL /* a code object is sent again after this, as the reader may have dropped it */

#define CO_HEAD	     64 /* from this offset on a code object does not change: counts, names, tables */
#define CO_WORDS     10
#define CO_FILE	     6 /* index among these words */
#define CO_NAME	     8
#define CO_LINES     9
#define OWNER_CSTACK 3 /* FRAME_OWNED_BY_CSTACK: not a frame of Python code */

static __always_inline u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

static __always_inline int word_at(u64 at, u64 *ret)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)at);
}

/* The words of a code object from CO_HEAD on. */
struct co {
	u64 w[CO_WORDS];
};

struct py_head {
	u64 len, hash; /* of a string or a bytes object: at offsets 16 and 24 of both */
	u32 state;     /* of a string, at offset 32 */
	u32 pad;
};

#define UNHASHED (~0ULL)

/*
 * Returns a number for the contents of a string or a bytes object. Mostly the interpreter has a hash
 * of the contents. If it has none, the last characters of the string or the first bytes are hashed.
 * Returns 0 if they cannot be read.
 */
GLOBAL_SUBPROG u64 print_of(struct task_state *t, const struct ttmon_py_layout *o, u64 at, u32 is_str)
{
	struct py_head h = {};
	u64 n, text = 32;

	if (!t || !o || bpf_probe_read_user(&h, 20, (void *)(at + 16)))
		return 0;
	if (h.hash != UNHASHED)
		return mix(h.len + 1, h.hash) | 1;
	__builtin_memset(t->py_buf, 0, sizeof(t->py_buf));
	n = h.len;
	if (is_str) {
		n *= h.state >> 2 & 7;
		text = h.state & 64 ? o->text : o->text_other;
	}
	if (n > sizeof(t->py_buf)) {
		text += is_str ? n - sizeof(t->py_buf) : 0;
		n = sizeof(t->py_buf);
	}
	barrier_var(n);
	if (n > sizeof(t->py_buf) || (n && bpf_probe_read_user(t->py_buf, n, (void *)(at + text))))
		return 0;
	n = mix(h.len + 1, 0);
	for (u32 i = 0; i < sizeof(t->py_buf) / 8; i++)
		n = mix(n, t->py_buf[i]);
	return n | 1;
}

/*
 * Returns a number for the contents of a code object, or 0 if it cannot be read. co: the words of the
 * code object from CO_HEAD on.
 */
static __always_inline u64 print_of_code(struct task_state *t, const struct ttmon_py_layout *o, const struct co *co)
{
	u64 print = 1, file, name, lines;

	for (u32 i = 0; i < CO_WORDS; i++)
		print = mix(print, co->w[i]);
	/* Since 3.12 one of the words is co_version, which is unique to each code object. */
	if (o->shape != TTMON_PY_3_11)
		return print | 1;
	if (t->py_file != co->w[CO_FILE] || !t->py_file_print) {
		t->py_file = co->w[CO_FILE];
		t->py_file_print = print_of(t, o, co->w[CO_FILE], 1);
	}
	file = t->py_file_print;
	name = print_of(t, o, co->w[CO_NAME], 1);
	lines = print_of(t, o, co->w[CO_LINES], 0);
	if (!file || !name || !lines)
		return 0;
	return mix(mix(mix(print, file), name), lines) | 1;
}

static __always_inline int copy_str(const struct ttmon_py_layout *o, u64 at, struct ttmon_py_str *s, u8 *text, u32 room)
{
	struct py_head h = {};
	u32 kind;
	u64 n;

	if (bpf_probe_read_user(&h, 20, (void *)(at + 16)))
		return -1;
	s->len = h.len;
	s->state = h.state;
	kind = h.state >> 2 & 7;
	/*
	 * A compact string (bit 5) stores its characters behind the header. Bit 6: all characters are ASCII.
	 */
	if (!(h.state & 32) || !kind || kind > 4 || h.len > room / kind)
		return -1;
	n = h.len * kind;
	barrier_var(n);
	if (n >= room)
		return -1;
	return n ? bpf_probe_read_user(text, n, (void *)(at + (h.state & 64 ? o->text : o->text_other))) : 0;
}

/* Fills in the record except for its head. room: the number of bytes in c->lines. */
static __always_inline int fill_code(struct ttmon_py_code *c, const struct ttmon_py_layout *o, const struct co *co,
				     u64 len, u32 room)
{
	u64 n = len < room ? len : room;

	c->firstlineno = 0;
	c->nlines = n;
	c->cut = len > room;
	barrier_var(n);
	return n > room || bpf_probe_read_user(&c->firstlineno, 4, (void *)(c->code + o->co_firstlineno)) ||
	       copy_str(o, co->w[CO_FILE], &c->file, c->file_text, TTMON_PY_FILE) ||
	       copy_str(o, co->w[CO_NAME], &c->name, c->name_text, TTMON_PY_NAME) ||
	       (n && bpf_probe_read_user(c->lines, n, (void *)(co->w[CO_LINES] + 32)));
}

#define TELL(room)                                                            \
	({                                                                    \
		c = bpf_ringbuf_reserve(&stack_ring, sizeof(*c) + (room), 0); \
		if (!c)                                                       \
			return -1;                                            \
		c->zero = 0;                                                  \
		c->code = code;                                               \
		c->print = print;                                             \
		c->tgid = id >> 32;                                           \
		if (fill_code(c, o, co, len, room)) {                         \
			bpf_ringbuf_discard(c, BPF_RB_NO_WAKEUP);             \
			return -1;                                            \
		}                                                             \
		bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);                      \
	})

/*
 * Sends the contents of a code object, unless they were sent before. Returns -1 if that was not
 * possible.
 */
GLOBAL_SUBPROG int tell_code(struct task_state *t, const struct ttmon_py_layout *o, const struct co *co, u64 code,
			     u64 print)
{
	u64 id = bpf_get_current_pid_tgid(), key, now, *told, len = 0;
	struct ttmon_py_code *c;

	if (!t || !o || !co)
		return -1;
	key = mix(mix(mix(id >> 32, t->py_start), code), print);
	now = t->py_now; /* read once for all frames: it costs as much as the look-up */
	told = bpf_map_lookup_elem(&codes, &key);
	if (told && *told > codes_since && now - *told < CODE_AGAIN_NS)
		return 0;
	if (word_at(co->w[CO_LINES] + 16, &len))
		return -1;
	if (len <= TTMON_PY_LINES)
		TELL(TTMON_PY_LINES);
	else
		TELL(TTMON_PY_LINES_LONG);
	bpf_map_update_elem(&codes, &key, &now, BPF_ANY);
	return 0;
}

struct search {
	const struct ttmon_py_layout *o;
	u64 thread, at;
	u32 bad, found;
};

static int look_at_thread(u32 i, struct search *s)
{
	u64 id = 0;

	if (!s->at)
		return 1;
	s->bad = word_at(s->at + s->o->ts_thread, &id) != 0;
	s->found = !s->bad && id == s->thread;
	if (s->bad || s->found)
		return 1;
	s->bad = word_at(s->at + s->o->ts_next, &s->at) != 0;
	return s->bad;
}

/*
 * Returns the thread's state in the interpreter's list, or 0 if the thread is not there. *err is -1 if
 * that is unknown.
 */
static __always_inline u64 find_thread(const struct ttmon_py_layout *o, u64 thread, int *err)
{
	struct search s = { .o = o, .thread = thread };
	u64 interp = 0, more = 0;

	*err = -1;
	/* With several interpreters a thread can be in more than one of the lists. */
	if (word_at(o->runtime + o->interp_head, &interp) || !interp || word_at(interp + o->interp_next, &more) ||
	    more || word_at(interp + o->threads_head, &s.at))
		return 0;
	bpf_loop(TTMON_PY_THREADS, look_at_thread, &s, 0);
	if (s.found) {
		*err = 0;
		return s.at;
	}
	/* Otherwise the list has more entries than are searched, or an entry could not be read. */
	if (!s.bad && !s.at)
		*err = 0;
	return 0;
}

/*
 * Returns the innermost frame of the thread state, or 0 if there is none or it cannot be read (*err).
 * *cframe is the struct _PyCFrame, in versions that have one.
 */
static __always_inline u64 first_frame(const struct ttmon_py_layout *o, u64 ts, u64 *cframe, int *err)
{
	u64 at = 0;

	*cframe = 0;
	*err = word_at(ts + o->ts_frame, &at);
	if (!o->via_cframe || *err || !at)
		return at;
	*cframe = at;
	at = 0;
	*err = word_at(*cframe + o->cframe_frame, &at);
	return at;
}

/*
 * Returns true if there still is only one interpreter, which a cached thread state does not show.
 */
static __always_inline bool is_alone(const struct ttmon_py_layout *o)
{
	u64 interp = 0, more = 1;

	return !word_at(o->runtime + o->interp_head, &interp) && interp && !word_at(interp + o->interp_next, &more) &&
	       !more;
}

/*
 * Returns the innermost frame of the current thread. The thread state found last is cached. Each time
 * it is checked that it belongs to this thread. A thread state without frames may have belonged to a
 * thread that has ended: then the list is searched again.
 */
static __always_inline u64 top_frame(struct task_state *t, const struct ttmon_py_layout *o, u64 *cframe, int *err)
{
	u64 thread = THREAD_POINTER(bpf_get_current_task_btf()), id = 0, frame = 0;
	int bad = 0;

	*err = 0;
	if (t->py_thread && !word_at(t->py_thread + o->ts_thread, &id) && id == thread && is_alone(o)) {
		frame = first_frame(o, t->py_thread, cframe, &bad);
		if (frame && !bad)
			return frame;
	}
	t->py_thread = find_thread(o, thread, &bad);
	if (bad || !t->py_thread) {
		*err = bad;
		return 0;
	}
	frame = first_frame(o, t->py_thread, cframe, &bad);
	*err = bad;
	return frame;
}

/*
 * struct _PyInterpreterFrame in words. Its flags are at offset 68 in 3.11, and at 70 in 3.12 and 3.13.
 */
#define FRAME_WORDS 9

struct walk {
	struct task_state *t;
	const struct ttmon_py_layout *o;
	u64 sp, frame, cframe;
	u32 n, state; /* enum ttmon_py_state */
};

/* Stores one frame in t->py. Returns 1 after the last one. */
static int take_frame(u32 i, struct walk *w)
{
	const struct ttmon_py_layout *o = w->o;
	u64 code, previous, *fr = w->t->py_words;
	struct task_state *t = w->t;
	struct ttmon_py_frame *f;
	u32 entry = 0, n = w->n;
	struct co *co = (struct co *)t->py_code;

	w->state = TTMON_PY_FAILED;
	if (bpf_probe_read_user(fr, FRAME_WORDS * sizeof(*fr), (void *)w->frame))
		return 1;
	if (o->shape == TTMON_PY_3_11) {
		code = fr[4];
		previous = fr[6];
		if (fr[8] >> 32 & 0xff) {
			entry = w->cframe - w->sp;
			if (word_at(w->cframe + 16, &w->cframe))
				return 1;
		}
	} else {
		code = fr[0];
		previous = fr[1];
		if ((fr[8] >> 48 & 0xff) == OWNER_CSTACK) {
			if (n && n <= TTMON_PY_FRAMES && !t->py[n - 1].entry)
				t->py[n - 1].entry = w->frame - w->sp;
			goto next;
		}
	}
	if (n >= TTMON_PY_FRAMES) {
		w->state = TTMON_PY_CUT;
		return 1;
	}
	f = &t->py[n];
	f->code = code;
	f->off = fr[7] - code - o->co_code;
	f->entry = entry;
	if (bpf_probe_read_user(co, sizeof(*co), (void *)(code + CO_HEAD)))
		return 1;
	f->print = print_of_code(t, o, co);
	/* One whose contents cannot be had is there all the same, and unknown. */
	if (f->print && tell_code(t, o, co, code, f->print))
		f->print = 0;
	w->n = n + 1;
next:
	w->frame = previous;
	w->state = previous ? TTMON_PY_CUT : TTMON_PY_OK;
	return !previous;
}

GLOBAL_SUBPROG int walk_python(struct task_state *t, const struct ttmon_py_layout *o, u64 sp)
{
	struct walk w = { .sp = sp, .state = TTMON_PY_OK };
	int err;

	if (!t || !o)
		return TTMON_PY_FAILED;
	w.t = t;
	w.o = o;
	t->npy = 0;
	t->py_file_print = 0;
	t->py_now = bpf_ktime_get_ns();
	w.frame = top_frame(t, o, &w.cframe, &err);
	if (err)
		return TTMON_PY_FAILED;
	/* The limit is twice the number of Python frames, since some frames are not of Python code. */
	if (w.frame)
		bpf_loop(2 * TTMON_PY_FRAMES, take_frame, &w, 0);
	t->npy = w.n;
	return w.state;
}

#endif
