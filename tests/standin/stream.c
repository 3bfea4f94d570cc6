// SPDX-License-Identifier: GPL-2.0-only
/*
 * stream.c: streams, events, capture and graphs of the stand-in libraries. Work in a stream is done at
 * once. In a stream that is being captured it becomes a node of the graph, and copies its bytes at
 * each launch. While the device is held (model_hold), copies wait in one queue for all streams, and
 * events recorded behind them are not done, until a thread waits or the device is released.
 *
 * Streams and graphs are plain structures, so that the runtime's handles are valid for the driver
 * stand-in too.
 */
#include <pthread.h>
#include <stdlib.h>

#include "model.h"

struct node {
	struct node *next;
	struct model_copy copy;
};

struct graph {
	struct node *first, **end;
	int refs;
};

/*
 * One capture, from its begin to its end. It is never freed: streams that joined it, and events, keep
 * pointing to it and see that it is over.
 */
struct capture {
	struct graph *graph;
	struct stream *origin;
	bool active;
};

struct stream {
	struct capture *capture;
};

struct event {
	struct capture *capture;
	uint64_t after; /* it is done when this many held copies are done */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Guarded by it. */
static bool held;
static struct node *waiting, **waiting_end = &waiting;
static uint64_t copies_held, copies_done;

/*
 * The default streams are not pointers: 0, 1 (legacy) and 2 (per thread). They are never captured.
 */
static struct stream *real_stream(void *stream)
{
	return (uintptr_t)stream > 2 ? stream : NULL;
}

static int new_object(void **p, size_t size)
{
	void *o = calloc(1, size);

	if (!o)
		return E_MEMORY;
	*p = o;
	return 0;
}

int model_stream_new(void **stream)
{
	return stream ? new_object(stream, sizeof(struct stream)) : E_VALUE;
}

int model_stream_free(void *stream)
{
	free(real_stream(stream));
	return 0;
}

int model_event_new(void **event)
{
	return event ? new_object(event, sizeof(struct event)) : E_VALUE;
}

static bool capturing(const struct stream *s)
{
	return s && s->capture && s->capture->active;
}

int model_event_record(void *event, void *stream)
{
	struct stream *s = real_stream(stream);

	if (!event)
		return E_VALUE;
	((struct event *)event)->capture = capturing(s) ? s->capture : NULL;
	pthread_mutex_lock(&lock);
	((struct event *)event)->after = copies_held;
	pthread_mutex_unlock(&lock);
	return 0;
}

bool model_event_done(const void *event)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = ((const struct event *)event)->after <= copies_done;
	pthread_mutex_unlock(&lock);
	return done;
}

bool model_is_capturing(void *stream)
{
	return capturing(real_stream(stream));
}

void model_hold(bool on)
{
	pthread_mutex_lock(&lock);
	held = on;
	pthread_mutex_unlock(&lock);
	if (!on)
		model_wait();
}

void model_wait(void)
{
	pthread_mutex_lock(&lock);
	for (struct node *n = waiting; n; n = waiting) {
		waiting = n->next;
		model_copy_now(&n->copy);
		free(n);
		copies_done++;
	}
	waiting_end = &waiting;
	pthread_mutex_unlock(&lock);
}

/* Returns false if nothing is held, or if there is no memory. */
static bool hold_copy(const struct model_copy *c)
{
	struct node *n = NULL;

	pthread_mutex_lock(&lock);
	if (held)
		n = calloc(1, sizeof(*n));
	if (n) {
		n->copy = *c;
		*waiting_end = n;
		waiting_end = &n->next;
		copies_held++;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

/* Waiting for an event of a capturing stream joins its capture. */
int model_stream_wait(void *stream, void *event)
{
	struct stream *s = real_stream(stream);

	if (!event)
		return E_VALUE;
	if (s && !capturing(s))
		s->capture = ((struct event *)event)->capture;
	return 0;
}

int model_graph_new(void **graph)
{
	int err = graph ? new_object(graph, sizeof(struct graph)) : E_VALUE;

	if (!err) {
		struct graph *g = *graph;

		g->end = &g->first;
		g->refs = 1;
	}
	return err;
}

/* An instantiated graph shares the nodes; the last reference frees them. */
int model_graph_free(void *graph)
{
	struct graph *g = graph;
	int refs;

	if (!g)
		return E_VALUE;
	pthread_mutex_lock(&lock);
	refs = --g->refs;
	pthread_mutex_unlock(&lock);
	if (refs)
		return 0;
	while (g->first) {
		struct node *n = g->first;

		g->first = n->next;
		free(n);
	}
	free(g);
	return 0;
}

int model_graph_add(void *graph, const struct model_copy *c, void **node)
{
	struct graph *g = graph;
	struct node *n = g ? calloc(1, sizeof(*n)) : NULL;

	if (!n)
		return g ? E_MEMORY : E_VALUE;
	n->copy = *c;
	pthread_mutex_lock(&lock);
	*g->end = n;
	g->end = &n->next;
	pthread_mutex_unlock(&lock);
	if (node)
		*node = n;
	return 0;
}

int model_node_set(void *node, const struct model_copy *c)
{
	if (!node)
		return E_VALUE;
	((struct node *)node)->copy = *c;
	return 0;
}

int model_graph_instantiate(void **exec, void *graph)
{
	struct graph *g = graph;

	if (!g || !exec)
		return E_VALUE;
	pthread_mutex_lock(&lock);
	g->refs++;
	pthread_mutex_unlock(&lock);
	*exec = g;
	return 0;
}

int model_graph_launch(void *exec)
{
	struct graph *g = exec;
	int err = g ? 0 : E_VALUE;

	for (struct node *n = g ? g->first : NULL; n && !err; n = n->next)
		err = model_copy_now(&n->copy);
	return err;
}

int model_capture_begin(void *stream, void *graph)
{
	struct stream *s = real_stream(stream);
	struct capture *c;
	void *g = graph;
	int err = 0;

	if (!s || capturing(s))
		return E_STATE;
	if (!g)
		err = model_graph_new(&g);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return E_MEMORY;
	*c = (struct capture){ g, s, true };
	s->capture = c;
	return 0;
}

int model_capture_end(void *stream, void **graph)
{
	struct stream *s = real_stream(stream);

	if (!capturing(s) || s->capture->origin != s)
		return E_STATE;
	if (graph)
		*graph = s->capture->graph;
	s->capture->active = false;
	s->capture = NULL;
	return 0;
}

int model_copy_stream(const struct model_copy *c, void *stream)
{
	struct stream *s = real_stream(stream);

	if (capturing(s))
		return model_graph_add(s->capture->graph, c, NULL);
	return hold_copy(c) ? 0 : model_copy_now(c);
}
