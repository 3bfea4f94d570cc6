/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * model.h: the simulated machine of the stand-in libraries: host memory, a device with memory of its
 * own, streams, graphs.
 *
 * Device addresses are in a reservation without access (PROT_NONE), like those of CUDA: nothing can be
 * read there, and the bytes are in a shadow mapping elsewhere. Host blocks up to 1 MiB come from
 * arenas by page count, and the block that was freed last is reused first, so that addresses are
 * reused at once. Larger blocks are mappings of their own. Every library has its own model.
 */
#ifndef STANDIN_MODEL_H
#define STANDIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Errors, numbered alike in both interfaces. */
#define E_VALUE		 1
#define E_MEMORY	 2
#define E_DIRECTION	 21
#define E_DEVICE	 101
#define E_STATE		 401
#define E_NOT_READY	 600
#define E_REGISTERED	 712
#define E_NOT_REGISTERED 713
#define E_NOT_SUPPORTED	 801

#define STANDIN_DEVICES	     2
#define STANDIN_DEVICE_BYTES ((size_t)16 << 30) /* of each device, as cudaMemGetInfo reports */

int model_host_alloc(void **p, size_t size);
int model_host_free(void *p); /* NULL is fine */
int model_register(void *p, size_t size);
int model_unregister(void *p);
int model_managed_alloc(void **p, size_t size);
int model_dev_alloc(void **p, size_t size);
int model_dev_free(void *p);		  /* device, managed and pool memory; NULL is allowed */
int model_reserve(void **p, size_t size); /* device addresses without memory; freed by model_dev_free() */
/* Frees and unregisters everything, as a device reset does. */
void model_reset(void);

bool model_is_device(const void *p);
/* Page-locked by an allocation or a registration that begins there. */
bool model_is_host(const void *p);

/*
 * A strided copy between any two places; arrays and symbols have been translated to device addresses
 * before.
 */
struct model_copy {
	void *dst;
	const void *src;
	size_t width, rows, slices;
	size_t dpitch, spitch, dslice, sslice;
};
int model_copy_now(const struct model_copy *c);
int model_set(void *p, int value, size_t n);
/* In the stream: at once, or as a node of the graph that is being captured. */
int model_copy_stream(const struct model_copy *c, void *stream);
static inline struct model_copy model_linear(void *dst, const void *src, size_t n)
{
	return (struct model_copy){ .dst = dst, .src = src, .width = n, .rows = 1, .slices = 1 };
}
static inline struct model_copy model_rect(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
					   size_t rows)
{
	return (struct model_copy){ dst, src, width, rows, 1, dpitch, spitch, 0, 0 };
}

/*
 * The device address of a symbol (any host address is accepted as one) and of a CUDA array (a handle
 * of model_array_new()).
 */
void *model_symbol(const void *symbol, size_t offset);
int model_array_new(void **handle, size_t width, size_t height);
int model_array_free(void *handle);
void *model_array(const void *handle, size_t w, size_t h, size_t *pitch);

int model_stream_new(void **stream);
int model_stream_free(void *stream);
int model_event_new(void **event);
int model_event_record(void *event, void *stream);
bool model_event_done(const void *event);
bool model_is_capturing(void *stream);
/* on: copies in streams wait from now on; off: they are made, and later ones are made at once. */
void model_hold(bool on);
/* Waits for the device: the held copies are made now. */
void model_wait(void);
int model_stream_wait(void *stream, void *event);
int model_capture_begin(void *stream, void *graph); /* graph: NULL, a new one */
int model_capture_end(void *stream, void **graph);
int model_graph_new(void **graph);
int model_graph_free(void *graph);
int model_graph_add(void *graph, const struct model_copy *c, void **node);
int model_node_set(void *node, const struct model_copy *c);
int model_graph_instantiate(void **exec, void *graph);
int model_graph_launch(void *exec);

/* ---- control.c: configured results ---- */

/*
 * Called first in every call: waits, runs hooks, and returns the error with which the call has to fail
 * (0: continue).
 */
int model_enter(const char *fn);
/*
 * The last error of this thread, set by model_enter() or by this function: the value of the runtime's
 * cudaGetLastError().
 */
void model_set_last_error(int err);
int model_last_error(void);

#endif
