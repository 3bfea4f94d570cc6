// SPDX-License-Identifier: GPL-2.0-only
/*
 * link.c: programs that link at run time, cuLink*(). The linker gets rewritten texts in place of its
 * inputs' PTX, and the cubin that comes out is known again by what is in it when it is loaded, also
 * from a copy. The inputs are kept as the program gave them until the link ends: if the driver refuses
 * one of ours, or the link as a whole, everything is done again with them, in a state of our own that
 * the program's handle then stands for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memtrace/ptx/image.h"
#include "memtrace/inject/inj_mod.h"

/*
 * CU_JIT_*: options that the driver writes to, buffers that it fills, and options that are pointers to
 * what is the program's.
 */
enum { OPT_THREADS = 1, OPT_INFO = 3, OPT_INFO_BYTES, OPT_ERROR, OPT_ERROR_BYTES, OPT_TARGET = 9 };
#define OPT_IS_POINTER(o) ((o) == 17 || (o) == 18 || (o) == 25 || (o) == 27)
/* CU_JIT_INPUT_* */
enum { INPUT_CUBIN, INPUT_PTX, INPUT_FATBINARY, INPUT_OBJECT, INPUT_LIBRARY, INPUT_NVVM };
#define MAX_LOG (16u << 20)
/* No error of the driver's. */
#define AS_IT_IS (-1)

struct options {
	unsigned int n;
	int *opts;
	void **vals;
};

/* As the program gave it. */
struct input {
	int type;
	char *data, *name; /* name: NULL where it had none */
	size_t size;
	struct options o;
};

struct link {
	struct link *next;
	void *handle, *state; /* handle: what the program has, the driver's first state; state: the one that is used */
	struct options o;
	void **out; /* the program's own values, which the driver writes to; NULL: it writes to none */
	struct {
		char *buffer, *was; /* was: what was in it before */
		size_t size;
	} log[2];
	struct input *inputs;
	size_t nr_inputs;
	const struct ttmon_inj_text **texts; /* that stand for inputs */
	size_t nr_texts;
	bool plain; /* inputs go to the driver as they are */
	char why[160], name[128];
};

/* What came out of a link. */
struct linked {
	struct linked *next;
	size_t size;
	uint64_t hash[2];
	struct ttmon_inj_linked pub;
	char name[128];
};

static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
static struct link *links;
static struct linked *linked; /* with ttmon_inj_lock; never freed */

/* ---- what is kept ---- */

static void options_fini(struct options *o)
{
	free(o->opts);
	free(o->vals);
}

/* False: no memory, or one of them is a pointer to what may be gone later. */
static bool options_keep(struct options *o, unsigned int n, const int *opts, void *const *vals)
{
	*o = (struct options){ .opts = calloc(n + 1, sizeof(*opts)), .vals = calloc(n + 1, sizeof(*vals)) };
	if (!o->opts || !o->vals)
		return false;
	for (; o->n < n; o->n++) {
		if (OPT_IS_POINTER(opts[o->n]))
			return false;
		o->opts[o->n] = opts[o->n];
		o->vals[o->n] = vals[o->n];
	}
	return true;
}

static void *option(const struct options *o, int opt)
{
	for (unsigned int i = 0; i < o->n; i++)
		if (o->opts[i] == opt)
			return o->vals[i];
	return NULL;
}

static void link_free(struct link *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr_inputs; i++) {
		free(l->inputs[i].data);
		free(l->inputs[i].name);
		options_fini(&l->inputs[i].o);
	}
	free(l->inputs);
	free(l->texts);
	free(l->log[0].was);
	free(l->log[1].was);
	options_fini(&l->o);
	free(l);
}

/* Before the driver has seen anything. NULL: not to be followed. */
static struct link *link_new(unsigned int n, const int *opts, void **vals)
{
	static const int buffers[] = { OPT_INFO, OPT_ERROR }, sizes[] = { OPT_INFO_BYTES, OPT_ERROR_BYTES };
	struct link *l = calloc(1, sizeof(*l));
	bool ok = l && options_keep(&l->o, n, opts, vals);

	for (unsigned int i = 0; ok && i < n; i++)
		if (opts[i] >= OPT_THREADS && opts[i] <= OPT_ERROR_BYTES)
			l->out = vals;
	for (int i = 0; ok && i < 2; i++) {
		l->log[i].buffer = option(&l->o, buffers[i]);
		l->log[i].size = l->log[i].buffer ? (uint32_t)(uintptr_t)option(&l->o, sizes[i]) : 0;
		ok = l->log[i].size <= MAX_LOG;
		l->log[i].was = ok ? malloc(l->log[i].size + 1) : NULL;
		ok = l->log[i].was;
		if (ok && l->log[i].size)
			memcpy(l->log[i].was, l->log[i].buffer, l->log[i].size);
	}
	if (ok)
		return l;
	link_free(l);
	return NULL;
}

static struct link *link_of(const void *handle)
{
	struct link *l;

	pthread_mutex_lock(&links_lock);
	for (l = links; l && l->handle != handle; l = l->next)
		;
	pthread_mutex_unlock(&links_lock);
	return l;
}

/* One more input; NULL: no memory. */
static struct input *keep(struct link *l, int type, const void *data, size_t size, const char *name, unsigned int n,
			  const int *opts, void *const *vals)
{
	struct input *more = reallocarray(l->inputs, l->nr_inputs + 1, sizeof(*more)), *in;

	if (!more)
		return NULL;
	l->inputs = more;
	in = &more[l->nr_inputs];
	*in = (struct input){
		.type = type, .data = malloc(size + 1), .size = size, .name = name ? strdup(name) : NULL
	};
	if (in->data && (!name || in->name) && options_keep(&in->o, n, opts, vals)) {
		memcpy(in->data, data, size);
		in->data[size] = '\0';
		l->nr_inputs++;
		return in;
	}
	free(in->data);
	free(in->name);
	options_fini(&in->o);
	return NULL;
}

/* ---- inputs ---- */

static int add(struct link *l, const struct input *in, int type, const void *data, size_t size)
{
	return CALL(cuLinkAddData_v2, l->state, type, (void *)(uintptr_t)data, size, in->name, in->o.n, in->o.opts,
		    in->o.vals);
}

/*
 * From the beginning, with what the program gave, as l->why says. 0, or the error that the driver has
 * for that; nothing is rewritten any more.
 */
static int again(struct link *l)
{
	void *state = NULL;
	int err;

	ttmon_inj_say(false, "%s: %s; it is linked as it is", l->name, l->why);
	l->plain = true;
	l->nr_texts = 0;
	if (l->out)
		memcpy(l->out, l->o.vals, l->o.n * sizeof(*l->out));
	for (int i = 0; i < 2; i++)
		if (l->log[i].size)
			memcpy(l->log[i].buffer, l->log[i].was, l->log[i].size);
	err = CALL(cuLinkCreate_v2, l->o.n, l->o.opts, l->out ? l->out : l->o.vals, &state);
	if (err)
		return err;
	l->state = state;
	for (size_t i = 0; i < l->nr_inputs && !err; i++)
		err = add(l, &l->inputs[i], l->inputs[i].type, l->inputs[i].data, l->inputs[i].size);
	return err;
}

/* The driver did not take what is rewritten. */
static int refused(struct link *l, int err)
{
	snprintf(l->why, sizeof(l->why), "the driver did not link the rewritten PTX: error %d", err);
	return again(l);
}

/* The architecture that is linked for: 90. */
static uint32_t target(const struct link *l)
{
	uint32_t t = (uint32_t)(uintptr_t)option(&l->o, OPT_TARGET);

	return t ? t & 0xffff : (uint32_t)ttmon_inj_max_arch();
}

/*
 * What an input is called: as the program or its file says, else as the object that it lies in. False:
 * that is one of NVIDIA's libraries, which are left alone.
 */
static bool label(const char *name, const void *origin, char *ret, size_t n)
{
	if (!ttmon_inj_module_name(origin, ret, n))
		return false;
	if (name && *name)
		snprintf(ret, n, "%s", strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	return true;
}

/* The PTX of an input; false: why it is not followed. */
static bool ptx_of(const struct link *l, const struct input *in, const void *origin, struct ttmon_mt_image *ptx,
		   char *module, size_t n_module, char *why, size_t n)
{
	if (!label(in->name, origin, module, n_module))
		snprintf(why, n, "one of NVIDIA's libraries");
	else if (in->type == INPUT_NVVM)
		snprintf(why, n, "linked from LTO-IR, which has no PTX");
	else if (in->type > INPUT_FATBINARY)
		snprintf(why, n, "linked from an object file or a library, whose PTX is not looked for");
	else
		return !ttmon_mt_image_ptx(in->data, in->size, target(l), ptx, why, n);
	return false;
}

/*
 * Adds the newest input, rewritten where it can be. 0: added; AS_IT_IS: it is to be added so; else the
 * driver's error, and nothing was added.
 */
static int add_rewritten(struct link *l, const void *origin)
{
	const struct input *in = &l->inputs[l->nr_inputs - 1];
	const struct ttmon_inj_text *text = NULL, **more;
	char why[160] = "", module[128];
	struct ttmon_mt_image ptx = { 0 };
	int err = AS_IT_IS;

	if (ptx_of(l, in, origin, &ptx, module, sizeof(module), why, sizeof(why))) {
		pthread_mutex_lock(&ttmon_inj_rewriting);
		text = ttmon_inj_rewrite(&ptx, module, NULL, why, sizeof(why));
		more = text ? reallocarray(l->texts, l->nr_texts + 1, sizeof(*more)) : NULL;
		if (more) {
			l->texts = more;
			more[l->nr_texts++] = text;
		}
		if (more && !text->none) {
			err = add(l, in, INPUT_PTX, text->ptx, strlen(text->ptx) + 1);
			ttmon_inj_settle(text);
		}
		pthread_mutex_unlock(&ttmon_inj_rewriting);
		free(ptx.text);
	}
	if (!text && !*l->why)
		snprintf(l->why, sizeof(l->why), "%s", why);
	ttmon_inj_say(true, "%s: an input of a link, %s%s", module, err ? "as it is: " : "recorded", err ? why : "");
	return err;
}

/* path NULL: of no file. origin: where the program has it. */
static int add_input(struct link *l, int type, const void *data, size_t size, const char *name, const char *path,
		     unsigned int n, int *opts, void **vals)
{
	struct input *in = keep(l, type, data, size, path ? path : name, n, opts, vals);
	int err;

	if (!*l->name)
		label(path ? path : name, data, l->name, sizeof(l->name));
	/* Text has a NUL at its end, which a file has not. */
	if (in && path && type == INPUT_PTX)
		in->size++;
	if (!in && !l->plain) {
		/* Without it nothing can be done again: now or never. */
		snprintf(l->why, sizeof(l->why), "options of an input are pointers, or there is no memory for a copy");
		err = l->nr_texts ? again(l) : 0;
		l->plain = true;
		if (err)
			return err;
	} else if (!l->plain) {
		err = add_rewritten(l, data);
		if (err != AS_IT_IS)
			return err ? refused(l, err) : 0;
	}
	return path ? CALL(cuLinkAddFile_v2, l->state, type, path, n, opts, vals)
		    : CALL(cuLinkAddData_v2, l->state, type, (void *)(uintptr_t)data, size, name, n, opts, vals);
}

/* ---- what comes out ---- */

/*
 * The same kernel in two inputs, .weak in both: which of its copies the linker takes is not known, so
 * both count. NULL: no memory.
 */
static struct ttmon_inj_kernel *either(const struct ttmon_inj_kernel *a, const struct ttmon_inj_kernel *b)
{
	const struct ttmon_inj_kernel *both[] = { a, b };
	bool same = a->params == b->params && a->param_bytes == b->param_bytes;
	struct ttmon_inj_kernel *k =
		ttmon_inj_kernel_new(a->name, a->module, same ? NULL : "there are two of its name in a link");
	struct ttmon_inj_kernel **parts = calloc(a->nr_parts + b->nr_parts + 2, sizeof(struct ttmon_inj_kernel *));

	if (!k || !parts) {
		free(parts);
		return NULL;
	}
	k->parts = parts;
	k->params = a->params;
	k->param_bytes = a->param_bytes;
	k->counted = a->counted > b->counted ? a->counted : b->counted;
	k->left_out = a->left_out > b->left_out ? a->left_out : b->left_out;
	for (int i = 0; i < 2; i++) {
		k->parts[k->nr_parts++] = (struct ttmon_inj_kernel *)(uintptr_t)both[i];
		for (uint32_t p = 0; p < both[i]->nr_parts; p++)
			k->parts[k->nr_parts++] = both[i]->parts[p];
	}
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	ttmon_inj_kernel_list(k);
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return k;
}

/* The kernels of all inputs. NULL: none, or no memory. */
static struct ttmon_inj_text *merge(const struct link *l)
{
	struct ttmon_inj_text *t = calloc(1, sizeof(*t));
	size_t all = 0;

	for (size_t i = 0; i < l->nr_texts; i++)
		all += l->texts[i]->nr_kernels;
	if (t)
		t->kernels = calloc(all + 1, sizeof(struct ttmon_inj_kernel *));
	if (!all || !t || !t->kernels)
		goto none;
	for (size_t i = 0; i < l->nr_texts; i++) {
		for (size_t j = 0; j < l->texts[i]->nr_kernels; j++) {
			struct ttmon_inj_kernel *k = l->texts[i]->kernels[j];
			size_t at = 0;

			while (at < t->nr_kernels && strcmp(t->kernels[at]->name, k->name))
				at++;
			if (at < t->nr_kernels && !t->kernels[at]->why && !k->why)
				k = either(t->kernels[at], k);
			else if (at < t->nr_kernels && k->why)
				continue;
			if (!k)
				goto none;
			t->kernels[at] = k;
			t->nr_kernels += at == t->nr_kernels;
		}
	}
	return t;
none:
	if (t)
		free(t->kernels);
	free(t);
	return NULL;
}

/* hash NULL: any of that size. */
static struct linked *find(size_t size, const uint64_t *hash)
{
	struct linked *k;

	pthread_rwlock_rdlock(&ttmon_inj_lock);
	for (k = linked; k; k = k->next)
		if (k->size == size && (!hash || (k->hash[0] == hash[0] && k->hash[1] == hash[1])))
			break;
	pthread_rwlock_unlock(&ttmon_inj_lock);
	return k;
}

static void remember(const struct link *l, const void *cubin, size_t n)
{
	size_t size = ttmon_mt_image_cubin(cubin, n);
	struct linked *k;
	uint64_t hash[2];

	if (!size)
		return;
	ttmon_inj_hash(cubin, size, hash);
	if (find(size, hash))
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->size = size;
	memcpy(k->hash, hash, sizeof(k->hash));
	snprintf(k->name, sizeof(k->name), "%s", l->name);
	k->pub.name = k->name;
	k->pub.text = merge(l);
	k->pub.why = *l->why ? strdup(l->why) : NULL;
	pthread_rwlock_wrlock(&ttmon_inj_lock);
	k->next = linked;
	linked = k;
	pthread_rwlock_unlock(&ttmon_inj_lock);
}

const struct ttmon_inj_linked *ttmon_inj_linked(const void *image, size_t n)
{
	size_t size = ttmon_mt_image_cubin(image, n);
	const struct linked *k;
	uint64_t hash[2];

	if (!size || !find(size, NULL))
		return NULL;
	ttmon_inj_hash(image, size, hash);
	k = find(size, hash);
	return k ? &k->pub : NULL;
}

/* ---- the driver's functions ---- */

#define CREATE(fn)                                                                       \
	int fn(unsigned int n, int *opts, void **vals, void **state)                     \
	{                                                                                \
		struct link *l = ttmon_inj_conf()->off ? NULL : link_new(n, opts, vals); \
		int err = CALL(fn, n, opts, vals, state);                                \
                                                                                         \
		created(l, err ? NULL : *state);                                         \
		return err;                                                              \
	}

static void created(struct link *l, void *state)
{
	if (!l)
		return;
	if (!state) {
		link_free(l);
		return;
	}
	l->handle = l->state = state;
	pthread_mutex_lock(&links_lock);
	l->next = links;
	links = l;
	pthread_mutex_unlock(&links_lock);
}
CREATE(cuLinkCreate)
CREATE(cuLinkCreate_v2)

#define ADD_DATA(fn)                                                                                        \
	int fn(void *state, int type, void *data, size_t size, const char *name, unsigned int n, int *opts, \
	       void **vals)                                                                                 \
	{                                                                                                   \
		struct link *l = link_of(state);                                                            \
                                                                                                            \
		return l && data ? add_input(l, type, data, size, name, NULL, n, opts, vals)                \
				 : CALL(fn, l ? l->state : state, type, data, size, name, n, opts, vals);   \
	}
ADD_DATA(cuLinkAddData)
ADD_DATA(cuLinkAddData_v2)

/* A file that cannot be read is the driver's to refuse. */
static int add_file(struct link *l, int type, const char *path, unsigned int n, int *opts, void **vals)
{
	size_t size;
	void *p = ttmon_inj_map(path, &size);
	int err;

	if (!p)
		return CALL(cuLinkAddFile_v2, l->state, type, path, n, opts, vals);
	err = add_input(l, type, p, size, NULL, path, n, opts, vals);
	munmap(p, size);
	return err;
}

#define ADD_FILE(fn)                                                                                            \
	int fn(void *state, int type, const char *path, unsigned int n, int *opts, void **vals)                 \
	{                                                                                                       \
		struct link *l = link_of(state);                                                                \
                                                                                                                \
		return l ? add_file(l, type, path, n, opts, vals) : CALL(fn, state, type, path, n, opts, vals); \
	}
ADD_FILE(cuLinkAddFile)
ADD_FILE(cuLinkAddFile_v2)

int cuLinkComplete(void *state, void **cubin, size_t *size)
{
	struct link *l = link_of(state);
	size_t n = 0;
	int err;

	if (!l)
		return CALL(cuLinkComplete, state, cubin, size);
	err = CALL(cuLinkComplete, l->state, cubin, &n);
	if (err && !l->plain && l->nr_texts) {
		err = refused(l, err);
		if (!err)
			err = CALL(cuLinkComplete, l->state, cubin, &n);
	}
	if (size && !err)
		*size = n;
	if (!err)
		remember(l, *cubin, n);
	return err;
}

int cuLinkDestroy(void *state)
{
	struct link *l = NULL;

	pthread_mutex_lock(&links_lock);
	for (struct link **p = &links; *p; p = &(*p)->next)
		if ((*p)->handle == state) {
			l = *p;
			*p = l->next;
			break;
		}
	pthread_mutex_unlock(&links_lock);
	if (l && l->state != state)
		CALL(cuLinkDestroy, l->state);
	link_free(l);
	return CALL(cuLinkDestroy, state);
}
