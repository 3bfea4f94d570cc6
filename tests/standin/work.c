// SPDX-License-Identifier: GPL-2.0-only
/*
 * work.c: programs' ways with pinned memory, for the comparison of pinning policies
 * (tests/bench/pinning.py, policies.py, e2e/pinning).
 *
 *	work train|serve|offload|kvcache|churn|blocks|grow [--seed N] [--times N] [--shift K] [--step-us N]
 *
 * Each follows a pattern of PyTorch, vLLM or DeepSpeed that is documented in public; all figures are
 * from there and were fixed before anything was measured. --seed: another course of the same pattern
 * (sizes, order of requests). Sizes of 64 KiB and more are divided by 2^K (default 6), in offload and
 * kvcache by 2^(K + 4): what a power-of-two allocator makes of them stays in proportion. Every pinned
 * allocation the real program makes is one cudaHostAlloc() here, of the size of the tensor: what a
 * caching allocator makes of that is what is to be compared.
 *
 * train    PyTorch's DataLoader with pin_memory: batch_size 8, num_workers 16, prefetch_factor 8
 *          (pytorch#97432), so that up to 128 pinned batches wait. A batch is 8 images of 3 x 224 x
 *          224 float32, as in PyTorch's ImageNet example, and 8 labels of 8 bytes.
 * serve    vLLM's model runner (0.x): in each step, tensors whose size follows the batch are pinned
 *          and sent: tokens, positions and slots (8 bytes for each token), lengths (4 bytes for each
 *          sequence), block tables (4 bytes for each block of 16 tokens of the longest, for each
 *          sequence). Up to 128 sequences, 2048 tokens a step (max_num_seqs,
 *          max_num_batched_tokens), at most 4096 tokens a sequence; two steps run at a time.
 * offload  DeepSpeed ZeRO-Offload with offload_optimizer.pin_memory, the tutorial's GPT-2 of 10
 *          billion parameters (hidden size 4096, 50 layers, 12 h^2 parameters each). In each step
 *          2 bytes of gradient for each parameter come from the device, and 2 bytes of fp16
 *          parameter go back. 4 + 4 + 4 bytes of fp32 parameter, momentum and variance are used by
 *          the CPU alone and are pinned as well: the large cold cache.
 * kvcache  vLLM's KV offloading (vllm#53042): 24 tensors, one for each layer, of 2053 blocks of
 *          1,089,536 bytes each; a request that hits loads one block of each tensor.
 * churn    torchvision's detection reference, evaluating with pin_memory: batch_size 2, 4 workers,
 *          prefetch_factor 2: 8 batches wait. An image is 3 x 800 x W float32, W from 800 to 1333;
 *          its target has N masks of 800 x W bytes, boxes and labels. N is geometric with a mean of
 *          7.7 (COCO). All are pinned, images alone go to the device.
 *
 * blocks   a caching allocator seen from outside (PyTorch's): 64 blocks of powers of two, 64 KiB to
 *          32 MiB, all from one call site. Half of them are sent in each step, the others never; the
 *          order differs in each course.
 * grow     a warm-up of the sequence length: each step pins tokens, masks and targets of a batch for
 *          one step. The batch grows to sixteen times its first size over the first half of the run,
 *          by another path in each course, and stays there. The masks are never sent.
 *
 * --times N: sizes of 64 KiB and more are N times as large.
 *
 * One thread pins, as in the DataLoader, another one copies and frees; they take turns, so that a run
 * with the same seed does the same.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ttmon/usdt.h>

#include "cuda_api.h"

/* Not inlined, and not as the last call: these functions must be visible in the call stacks. */
#define NAMED	    static __attribute__((noinline))
#define MAX_TENSORS 16

static uint64_t rng = 1;
static unsigned int shift = 6, step_us = 500, times = 1;
static void *device;
static cudaStream_t stream;

static void check(cudaError_t err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "work: %s: error %d\n", what, (int)err);
	exit(1);
}

static uint64_t below(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static size_t scaled(size_t size)
{
	return size >= 65536 ? size * times >> shift : size;
}

static void pause_us(unsigned int us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

struct tensor {
	void *p;
	size_t size;
};

struct batch {
	struct tensor t[MAX_TENSORS];
	unsigned int n;
};

NAMED void pin_tensor(struct tensor *t, size_t size)
{
	t->size = size;
	check(cudaHostAlloc(&t->p, size, cudaHostAllocDefault), "cudaHostAlloc");
	memset(t->p, 1, size);
}

NAMED void send(const struct tensor *t)
{
	check(cudaMemcpyAsync(device, t->p, t->size, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
}

NAMED void receive(const struct tensor *t)
{
	check(cudaMemcpyAsync(t->p, device, t->size, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
}

NAMED void drop(struct tensor *t)
{
	check(cudaFreeHost(t->p), "cudaFreeHost");
	t->p = NULL;
}

static void drop_batch(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		drop(&b->t[i]);
	b->n = 0;
}

static void step_ends(void)
{
	check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	TTMON_CHECKPOINT("step");
	pause_us(step_us);
}

/* ---- a loader: one thread pins batches ahead, the other one uses them ---- */

struct loader {
	unsigned int depth, batches; /* that wait; in all */
	void (*pin)(struct batch *b);
	void (*use)(struct batch *b);
	struct batch *queue;
	sem_t room, ready;
};

NAMED void *pin_memory_loop(void *arg)
{
	struct loader *l = arg;

	for (unsigned int i = 0; i < l->batches; i++) {
		sem_wait(&l->room);
		l->pin(&l->queue[i % l->depth]);
		sem_post(&l->ready);
	}
	return NULL;
}

static void run_loader(struct loader *l)
{
	pthread_t thread;

	l->queue = calloc(l->depth, sizeof(*l->queue));
	if (!l->queue || sem_init(&l->room, 0, l->depth) || sem_init(&l->ready, 0, 0) ||
	    pthread_create(&thread, NULL, pin_memory_loop, l))
		exit(1);
	/*
	 * The queue is full before a batch is taken, as long as there are batches: no race determines how much
	 * is pinned.
	 */
	for (unsigned int i = 0; i < l->depth && i < l->batches; i++)
		sem_wait(&l->ready);
	for (unsigned int i = 0; i < l->batches; i++) {
		struct batch *b = &l->queue[i % l->depth];

		l->use(b);
		step_ends();
		drop_batch(b);
		sem_post(&l->room);
		if (i + l->depth < l->batches)
			sem_wait(&l->ready);
	}
	pthread_join(thread, NULL);
	free(l->queue);
}

/* ---- train ---- */

NAMED void pin_images(struct batch *b)
{
	pin_tensor(&b->t[b->n++], scaled(8ul * 3 * 224 * 224 * 4));
}

NAMED void pin_labels(struct batch *b)
{
	pin_tensor(&b->t[b->n++], 8 * 8);
}

static void train_pin(struct batch *b)
{
	pin_images(b);
	pin_labels(b);
}

static void train_use(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i++)
		send(&b->t[i]);
}

NAMED void train(void)
{
	run_loader(&(struct loader){ .depth = 16 * 8, .batches = 1000, .pin = train_pin, .use = train_use });
}

/* ---- churn ---- */

NAMED void pin_image(struct batch *b, size_t width)
{
	pin_tensor(&b->t[b->n++], scaled(3ul * 800 * width * 4));
}

NAMED void pin_masks(struct batch *b, size_t width, size_t n)
{
	pin_tensor(&b->t[b->n++], scaled(n * 800 * width));
}

NAMED void pin_boxes(struct batch *b, size_t n)
{
	pin_tensor(&b->t[b->n++], n * 4 * 4);
}

NAMED void pin_classes(struct batch *b, size_t n)
{
	pin_tensor(&b->t[b->n++], n * 8);
}

static void churn_pin(struct batch *b)
{
	for (int image = 0; image < 2; image++) {
		size_t width = 800 + below(534), n = 1;

		while (n < 100 && below(77) >= 10)
			n++;
		pin_image(b, width);
		pin_masks(b, width, n);
		pin_boxes(b, n);
		pin_classes(b, n);
	}
}

static void churn_use(struct batch *b)
{
	for (unsigned int i = 0; i < b->n; i += 4)
		send(&b->t[i]);
}

NAMED void churn(void)
{
	run_loader(&(struct loader){ .depth = 4 * 2, .batches = 1000, .pin = churn_pin, .use = churn_use });
}

/* ---- serve ---- */

#define SEQS	    128
#define STEP_TOKENS 2048
#define SEQ_TOKENS  4096

static struct sequence {
	unsigned int have, want; /* tokens */
} seqs[SEQS];
static unsigned int nr_seqs;

/*
 * Requests come in bursts; each is admitted as long as its prompt fits into the step. Returns the
 * tokens of the step.
 */
static unsigned int schedule(unsigned int *longest)
{
	unsigned int tokens = nr_seqs, arrivals = below(8) ? (unsigned int)below(3) : (unsigned int)below(24);

	for (unsigned int i = 0; i < nr_seqs; i++)
		seqs[i].have++;
	while (arrivals-- && nr_seqs < SEQS) {
		unsigned int prompt = 16 + (unsigned int)below(1024);

		if (tokens + prompt > STEP_TOKENS)
			break;
		seqs[nr_seqs++] = (struct sequence){ prompt, prompt + 16 + (unsigned int)below(512) };
		tokens += prompt;
	}
	*longest = 1;
	for (unsigned int i = 0; i < nr_seqs; i++)
		if (seqs[i].have > *longest)
			*longest = seqs[i].have;
	return tokens;
}

static void retire(void)
{
	for (unsigned int i = 0; i < nr_seqs;)
		if (seqs[i].have >= seqs[i].want || seqs[i].have >= SEQ_TOKENS)
			seqs[i] = seqs[--nr_seqs];
		else
			i++;
}

NAMED void pin_tokens(struct batch *b, unsigned int tokens)
{
	pin_tensor(&b->t[b->n++], 8ul * tokens);
}

NAMED void pin_positions(struct batch *b, unsigned int tokens)
{
	pin_tensor(&b->t[b->n++], 8ul * tokens);
}

NAMED void pin_slots(struct batch *b, unsigned int tokens)
{
	pin_tensor(&b->t[b->n++], 8ul * tokens);
}

NAMED void pin_lengths(struct batch *b, unsigned int n)
{
	pin_tensor(&b->t[b->n++], 4ul * n);
}

NAMED void pin_block_tables(struct batch *b, unsigned int n, unsigned int longest)
{
	pin_tensor(&b->t[b->n++], 4ul * n * ((longest + 15) / 16));
}

NAMED void serve(void)
{
	struct batch under_way[2] = { 0 };

	for (unsigned int step = 0; step < 2000; step++) {
		struct batch *b = &under_way[step % 2];
		unsigned int longest, tokens = schedule(&longest);

		drop_batch(b);
		if (tokens) {
			pin_tokens(b, tokens);
			pin_positions(b, tokens);
			pin_slots(b, tokens);
			pin_lengths(b, nr_seqs);
			pin_block_tables(b, nr_seqs, longest);
		}
		for (unsigned int i = 0; i < b->n; i++)
			send(&b->t[i]);
		retire();
		step_ends();
	}
	drop_batch(&under_way[0]);
	drop_batch(&under_way[1]);
}

/* ---- offload ---- */

#define LAYERS	     50
#define LAYER_PARAMS (12ul * 4096 * 4096)

struct layer {
	struct tensor fp16, gradient, fp32, momentum, variance;
};

NAMED void pin_fp16(struct layer *l)
{
	pin_tensor(&l->fp16, scaled(2 * LAYER_PARAMS) >> 4);
}

NAMED void pin_gradient(struct layer *l)
{
	pin_tensor(&l->gradient, scaled(2 * LAYER_PARAMS) >> 4);
}

NAMED void pin_optimizer(struct layer *l)
{
	pin_tensor(&l->fp32, scaled(4 * LAYER_PARAMS) >> 4);
	pin_tensor(&l->momentum, scaled(4 * LAYER_PARAMS) >> 4);
	pin_tensor(&l->variance, scaled(4 * LAYER_PARAMS) >> 4);
}

NAMED void offload(void)
{
	static struct layer layers[LAYERS];

	for (unsigned int i = 0; i < LAYERS; i++) {
		pin_fp16(&layers[i]);
		pin_gradient(&layers[i]);
		pin_optimizer(&layers[i]);
	}
	for (unsigned int step = 0; step < 20; step++) {
		for (unsigned int i = LAYERS; i-- > 0;)
			receive(&layers[i].gradient);
		for (unsigned int i = 0; i < LAYERS; i++)
			send(&layers[i].fp16);
		step_ends();
	}
	for (unsigned int i = 0; i < LAYERS; i++) {
		drop(&layers[i].fp16);
		drop(&layers[i].gradient);
		drop(&layers[i].fp32);
		drop(&layers[i].momentum);
		drop(&layers[i].variance);
	}
}

/* ---- kvcache ---- */

#define KV_LAYERS 24
#define KV_BLOCKS 2053
#define KV_BLOCK  1089536ul

NAMED void pin_kv(struct tensor *t)
{
	pin_tensor(t, scaled(KV_BLOCKS * KV_BLOCK) >> 4);
}

NAMED void kvcache(void)
{
	static struct tensor layers[KV_LAYERS];
	size_t block = scaled(KV_BLOCK) >> 4;

	for (unsigned int i = 0; i < KV_LAYERS; i++)
		pin_kv(&layers[i]);
	for (unsigned int request = 0; request < 200; request++) {
		size_t hit = below(KV_BLOCKS);

		for (unsigned int i = 0; i < KV_LAYERS; i++)
			send(&(struct tensor){ (char *)layers[i].p + hit * block, block });
		step_ends();
	}
	for (unsigned int i = 0; i < KV_LAYERS; i++)
		drop(&layers[i]);
}

/* ---- blocks ---- */

#define BLOCKS 64

NAMED void pin_block(struct tensor *t, size_t size)
{
	pin_tensor(t, size);
}

NAMED void blocks(void)
{
	static struct tensor blocks[BLOCKS];
	unsigned int order[BLOCKS];

	for (unsigned int i = 0; i < BLOCKS; i++)
		order[i] = i;
	for (unsigned int i = BLOCKS; i-- > 1;) {
		unsigned int k = (unsigned int)below(i + 1), was = order[i];

		order[i] = order[k];
		order[k] = was;
	}
	/* Each size occurs as often hot as cold. */
	for (unsigned int i = 0; i < BLOCKS; i++)
		pin_block(&blocks[order[i]], scaled(65536ul << order[i] / 2 % 10));
	for (unsigned int step = 0; step < 300; step++) {
		for (unsigned int i = 0; i < BLOCKS; i += 2)
			send(&blocks[i]);
		step_ends();
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		drop(&blocks[i]);
}

/* ---- grow ---- */

NAMED void pin_inputs(struct batch *b, size_t size)
{
	pin_tensor(&b->t[b->n++], scaled(size));
}

NAMED void pin_targets(struct batch *b, size_t size)
{
	pin_tensor(&b->t[b->n++], scaled(size));
}

NAMED void pin_attention_masks(struct batch *b, size_t size)
{
	pin_tensor(&b->t[b->n++], scaled(size));
}

NAMED void grow(void)
{
	struct batch under_way[4] = { 0 };
	size_t size = 1 << 20;

	for (unsigned int step = 0; step < 800; step++) {
		struct batch *b = &under_way[step % 4];

		drop_batch(b);
		pin_inputs(b, size + below(size / 64));
		pin_targets(b, size / 2);
		pin_attention_masks(b, size * 2);
		send(&b->t[0]);
		send(&b->t[1]);
		step_ends();
		if (size < 16 << 20)
			size += below(size / 60);
	}
	for (unsigned int i = 0; i < 4; i++)
		drop_batch(&under_way[i]);
}

static const struct {
	const char *name;
	void (*run)(void);
} works[] = { { "train", train }, { "serve", serve },	{ "offload", offload }, { "kvcache", kvcache },
	      { "churn", churn }, { "blocks", blocks }, { "grow", grow } };

static unsigned long number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*end || end == text) {
		fprintf(stderr, "work: not a number: %s\n", text);
		exit(2);
	}
	return n;
}

int main(int argc, char **argv)
{
	void (*run)(void) = NULL;

	for (size_t i = 0; argc > 1 && i < sizeof(works) / sizeof(*works); i++)
		if (!strcmp(argv[1], works[i].name))
			run = works[i].run;
	for (int i = 2; run && i < argc; i += 2) {
		if (i + 1 == argc)
			run = NULL;
		else if (!strcmp(argv[i], "--seed"))
			rng = number(argv[i + 1]) * 0x9e3779b97f4a7c15ULL | 1;
		else if (!strcmp(argv[i], "--shift"))
			shift = (unsigned int)number(argv[i + 1]) % 32;
		else if (!strcmp(argv[i], "--times"))
			times = (unsigned int)number(argv[i + 1]) % 1024;
		else if (!strcmp(argv[i], "--step-us"))
			step_us = (unsigned int)number(argv[i + 1]);
		else
			run = NULL;
	}
	if (!run) {
		fprintf(stderr,
			"usage: work train|serve|offload|kvcache|churn|blocks|grow [--seed N] [--times N] [--shift K] "
			"[--step-us N]\n");
		return 2;
	}
	check(cudaStreamCreate(&stream), "cudaStreamCreate");
	check(cudaMalloc(&device, 256ul << 20), "cudaMalloc");
	run();
	check(cudaFree(device), "cudaFree");
	check(cudaStreamDestroy(stream), "cudaStreamDestroy");
	return 0;
}
