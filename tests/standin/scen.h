/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scen.h: the scenarios of scen.c, and their shared parts: simple accounts of the calls, printed as
 * one line of JSON.
 */
#ifndef SCEN_H
#define SCEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_api.h"
#include "standin.h"

enum dir { H2H, H2D, D2H, D2D, DIRS };
enum mem { PINNED, PAGEABLE, MANAGED, NONE, MEMS };

struct book {
	uint64_t copies[DIRS][MEMS], bytes[DIRS][MEMS];
	uint64_t allocs, frees, pins, kernels, graphs, graph_copies, captured, failed;
};
extern struct book book;

/* The call must succeed: a scenario that does not happen proves nothing. */
#define MUST(call)                                                                                  \
	do {                                                                                        \
		int must_ = (call);                                                                 \
		if (must_) {                                                                        \
			fprintf(stderr, "scen: %s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_); \
			exit(4);                                                                    \
		}                                                                                   \
	} while (0)
/* The call must fail, and is counted as failed. */
#define MUST_FAIL(call)                                                                            \
	do {                                                                                       \
		if (!(call)) {                                                                     \
			fprintf(stderr, "scen: %s:%d: %s succeeded\n", __FILE__, __LINE__, #call); \
			exit(4);                                                                   \
		}                                                                                  \
		book.failed++;                                                                     \
	} while (0)

void *pin(size_t size);	   /* cudaHostAlloc */
void *on_dev(size_t size); /* cudaMalloc */
void *paged(size_t size);  /* a private anonymous mapping, touched */
void unpin(void *p);
void dev_free(void *p);
void copied(enum dir dir, enum mem mem, uint64_t bytes);
/*
 * Prints {"pid":...,<extra>,<accounts>} and flushes. extra: printf text such as "\"addr\":%lu", or
 * NULL.
 */
void report(const char *extra, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line and waits for one on stdin. */
void meet(const char *line);

int scen_fork(int n);
int scen_exec(int n);
int scen_kill(int n);
int scen_threadexit(int n);
int scen_longjmp(int n);
int scen_execs(int n);
int scen_child(int n);
int scen_live(int n);
int scen_reset(int n);
int scen_exit(int n);

int scen_copies(int n);
int scen_defaults(int n);
int scen_batch(int n);
int scen_capture(int n);
int scen_join(int n);
int scen_graph(int n);
int scen_errors(int n);
int scen_launches(int n);
int scen_order(int n);
int scen_hot(int n);

int scen_unmap(int n);
int scen_batches(int n);
int scen_maps(int n);
int scen_overlap(int n);
int scen_old(int n);
int scen_heap(int n);
int scen_cow(int n);

#endif
