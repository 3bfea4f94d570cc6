// SPDX-License-Identifier: GPL-2.0-only
/* scen_copy.c: scenarios of copies, capture, graphs, launches and errors. See scen.c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "scen.h"

#define SIZE 65536

/*
 * The bytes that came back are those that were sent: the copies of this scenario were really made.
 */
static void check(const char *a, const char *b, size_t n)
{
	MUST(memcmp(a, b, n));
}

/* One of each kind: linear, 2D, 3D, symbol and peer, blocking and asynchronous. */
int scen_copies(int n)
{
	char *host = pin(SIZE), *back = pin(SIZE), *page = paged(SIZE), *dev = on_dev(SIZE), *dev2 = on_dev(SIZE);
	struct cudaMemcpy3DParms p;

	(void)n;
	memset(host, 0x5a, SIZE);
	memset(&p, 0, sizeof(p));
	MUST(cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice));
	copied(H2D, PINNED, SIZE);
	MUST(cudaMemcpyAsync(dev + 100, page, 1000, cudaMemcpyHostToDevice, NULL));
	copied(H2D, PAGEABLE, 1000);
	MUST(cudaMemcpy2D(dev2, 1024, dev, 512, 500, 32, cudaMemcpyDeviceToDevice));
	copied(D2D, NONE, 500 * 32);
	MUST(cudaMemcpy2DAsync(back, 512, dev2, 1024, 500, 32, cudaMemcpyDeviceToHost, NULL));
	copied(D2H, PINNED, 500 * 32);
	check(back + 3 * 512, host, 500);
	p.srcPtr = (struct cudaPitchedPtr){ page, 256, 256, 16 };
	p.dstPtr = (struct cudaPitchedPtr){ dev, 512, 512, 16 };
	p.extent = (struct cudaExtent){ 200, 8, 4 };
	p.srcPos.y = 2;
	p.kind = cudaMemcpyHostToDevice;
	MUST(cudaMemcpy3D(&p));
	copied(H2D, PAGEABLE, 200 * 8 * 4);
	MUST(cudaMemcpyPeer(dev2, 1, dev, 0, 3000));
	copied(D2D, NONE, 3000);
	MUST(cudaMemcpyToSymbol(&book, host, 48, 8, cudaMemcpyHostToDevice));
	copied(H2D, PINNED, 48);
	MUST(cudaMemcpyFromSymbolAsync(back, &book, 48, 8, cudaMemcpyDeviceToHost, NULL));
	copied(D2H, PINNED, 48);
	check(back, host, 48);
	MUST(cudaMemcpy(host, page, 5000, cudaMemcpyHostToHost));
	copied(H2H, PINNED, 5000);
	unpin(host);
	unpin(back);
	dev_free(dev);
	dev_free(dev2);
	report("\"done\":1");
	return 0;
}

/* Copies whose direction the call does not give. */
int scen_defaults(int n)
{
	char *host = pin(SIZE), *page = paged(SIZE), *dev = on_dev(SIZE), *dev2 = on_dev(SIZE);

	(void)n;
	MUST(cudaMemcpy(dev, host, 1, cudaMemcpyDefault));
	copied(H2D, PINNED, 1);
	MUST(cudaMemcpy(dev, page, 10, cudaMemcpyDefault));
	copied(H2D, PAGEABLE, 10);
	MUST(cudaMemcpy(page, dev, 100, cudaMemcpyDefault));
	copied(D2H, PAGEABLE, 100);
	MUST(cudaMemcpyAsync(host + 7, dev + 9, 1000, cudaMemcpyDefault, NULL));
	copied(D2H, PINNED, 1000);
	MUST(cudaMemcpy(dev2, dev, 10000, cudaMemcpyDefault));
	copied(D2D, NONE, 10000);
	MUST(cudaMemcpy(host, page, 20000, cudaMemcpyDefault));
	copied(H2H, PINNED, 20000);
	report("\"done\":1");
	return 0;
}

/* One batch of n elements. */
int scen_batch(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	void **dst = calloc((size_t)n, sizeof(*dst));
	const void **src = calloc((size_t)n, sizeof(*src));
	size_t *sizes = calloc((size_t)n, sizeof(*sizes)), idx = 0;
	struct cudaMemcpyAttributes attrs = { .srcAccessOrder = cudaMemcpySrcAccessOrderStream };

	MUST(!dst || !src || !sizes);
	for (int i = 0; i < n; i++) {
		dst[i] = dev + i * 16;
		src[i] = host + i * 16;
		sizes[i] = 16;
		copied(H2D, PINNED, 16);
	}
	MUST(cudaMemcpyBatchAsync(dst, src, sizes, (size_t)n, &attrs, &idx, 1, NULL));
	report("\"elements\":%d", n);
	free(dst);
	free(src);
	free(sizes);
	return 0;
}

/* n copies into a capturing stream, one outside at the same time, then three launches of the graph. */
int scen_capture(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE), *back = paged(SIZE);
	cudaStream_t stream, other;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamCreate(&other));
	memset(host, 0x33, SIZE);
	/* A capture that does not begin captures nothing. */
	standin_fail("cudaStreamBeginCapture", 900, 1);
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != 900);
	MUST(cudaMemcpyAsync(dev, host, 200, cudaMemcpyHostToDevice, stream));
	copied(H2D, PINNED, 200);
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < n; i++) {
		MUST(cudaMemcpyAsync(dev, host, 4096, cudaMemcpyHostToDevice, stream));
		book.captured++;
	}
	MUST(cudaMemcpyAsync(dev + 8192, host, 100, cudaMemcpyHostToDevice, other));
	copied(H2D, PINNED, 100);
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		MUST(cudaGraphLaunch(exec, stream));
		book.graphs++;
	}
	MUST(cudaMemcpyAsync(back, dev, 4096, cudaMemcpyDeviceToHost, stream));
	copied(D2H, PAGEABLE, 4096);
	check(back, host, 4096);
	MUST(cudaGraphExecDestroy(exec));
	MUST(cudaGraphDestroy(graph));
	MUST(cudaStreamDestroy(stream));
	MUST(cudaStreamDestroy(other));
	report("\"done\":1");
	return 0;
}

/*
 * A second stream joins the capture by an event, and copies n times; after the end it copies normally.
 */
int scen_join(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	cudaStream_t first, second;
	cudaEvent_t fork_event, join_event;
	cudaGraph_t graph;

	MUST(cudaStreamCreate(&first));
	MUST(cudaStreamCreate(&second));
	MUST(cudaEventCreate(&fork_event));
	MUST(cudaEventCreate(&join_event));
	MUST(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
	MUST(cudaEventRecord(fork_event, first));
	MUST(cudaStreamWaitEvent(second, fork_event, 0));
	for (int i = 0; i < n; i++) {
		MUST(cudaMemcpyAsync(dev, host, 64, cudaMemcpyHostToDevice, second));
		book.captured++;
	}
	MUST(cudaEventRecord(join_event, second));
	MUST(cudaStreamWaitEvent(first, join_event, 0));
	MUST(cudaStreamEndCapture(first, &graph));
	MUST(cudaMemcpyAsync(dev, host, 128, cudaMemcpyHostToDevice, second));
	copied(H2D, PINNED, 128);
	MUST(cudaMemcpyAsync(dev, host, 256, cudaMemcpyHostToDevice, first));
	copied(H2D, PINNED, 256);
	MUST(cudaGraphDestroy(graph));
	report("\"done\":1");
	return 0;
}

/* A graph made by hand with two copy nodes, launched n times. */
int scen_graph(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;

	MUST(cudaGraphCreate(&graph, 0));
	MUST(cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, dev, host, 4096, cudaMemcpyHostToDevice));
	book.graph_copies++;
	MUST(cudaGraphAddMemcpyNodeToSymbol(&node, graph, &node, 1, &book, host, 64, 0, cudaMemcpyHostToDevice));
	book.graph_copies++;
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < n; i++) {
		MUST(cudaGraphLaunch(exec, NULL));
		book.graphs++;
	}
	MUST(cudaGraphExecMemcpyNodeSetParams1D(exec, node, dev, host, 128, cudaMemcpyHostToDevice));
	book.graph_copies++;
	report("\"done\":1");
	return 0;
}

/* Calls that fail: they show only as a count by error code. */
int scen_errors(int n)
{
	char *dev = on_dev(SIZE), *host = pin(SIZE);
	void *p = NULL;

	(void)n;
	standin_fail("cudaHostAlloc", 2, 3);
	standin_fail("cudaMemcpy", 700, 2);
	for (int i = 0; i < 3; i++)
		MUST_FAIL(cudaHostAlloc(&p, 1 << 20, 0));
	for (int i = 0; i < 2; i++)
		MUST_FAIL(cudaMemcpy(dev, host, 100, cudaMemcpyHostToDevice));
	MUST_FAIL(cudaHostUnregister(host));
	standin_fail("cudaFreeHost", 4, 1);
	MUST_FAIL(cudaFreeHost(host));
	MUST(cudaMemcpy(dev, host, 100, cudaMemcpyHostToDevice));
	copied(H2D, PINNED, 100);
	MUST(cudaFreeHost(NULL));
	MUST(cudaFree(NULL));
	unpin(host);
	report("\"errors\":{\"cudaHostAlloc\":{\"2\":3},\"cudaMemcpy\":{\"700\":2},\"cudaHostUnregister\":{\"713\":1},"
	       "\"cudaFreeHost\":{\"4\":1}}");
	return 0;
}

int scen_launches(int n)
{
	dim3 one = { 1, 1, 1 };

	for (int i = 0; i < n; i++) {
		MUST(cudaLaunchKernel(&book, one, one, NULL, 0, NULL));
		book.kernels++;
	}
	report("\"done\":1");
	return 0;
}

static void *launch_one(void *arg)
{
	dim3 one = { 1, 1, 1 };

	(void)arg;
	MUST(cudaLaunchKernel(&book, one, one, NULL, 0, NULL));
	book.kernels++;
	return NULL;
}

/* Five launches into a captured stream, which do not run, and one launch of their graph. */
static void launch_graph(void)
{
	dim3 one = { 1, 1, 1 };
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < 5; i++)
		MUST(cudaLaunchKernel(&book, one, one, NULL, 0, stream));
	MUST(cudaStreamEndCapture(stream, &graph));
	book.kernels += 5;
	MUST(cudaGraphInstantiate(&exec, graph, 0));
	MUST(cudaGraphLaunch(exec, stream));
	book.graphs++;
}

/*
 * n buffers, most of them at addresses of earlier ones, with launches of two threads between them; at
 * the end captured ones.
 */
int scen_order(int n)
{
	char text[4096] = "";
	size_t len = 0;
	uint64_t numbered;
	void *p;

	for (int i = 0; i < n; i++) {
		uint64_t made = book.kernels;
		size_t size = 4096 * (size_t)(i + 1);
		pthread_t other;

		p = i % 3 == 2 ? pin(size) : on_dev(size);
		for (int k = 0; k < i % 4; k++)
			launch_one(NULL);
		if (i % 2) {
			if (pthread_create(&other, NULL, launch_one, NULL) || pthread_join(other, NULL))
				return 4;
		}
		if (i % 3 == 2)
			unpin(p);
		else if (i != 7)
			dev_free(p);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s[%zu,%llu,%llu]", i ? "," : "", size,
					(unsigned long long)made, (unsigned long long)book.kernels);
	}
	numbered = book.kernels;
	launch_graph();
	launch_one(NULL);
	p = on_dev(1 << 20);
	report("\"kept\":7,\"numbered\":%llu,\"buffers\":[%s]", (unsigned long long)numbered, text);
	return 0;
}

/* n copies at full speed. */
int scen_hot(int n)
{
	char *host = pin(SIZE), *dev = on_dev(SIZE);
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < n; i++)
		MUST(cudaMemcpyAsync(dev, host, 64, cudaMemcpyHostToDevice, NULL));
	clock_gettime(CLOCK_MONOTONIC, &b);
	book.copies[H2D][PINNED] = (uint64_t)n;
	book.bytes[H2D][PINNED] = (uint64_t)n * 64;
	report("\"ns\":%ld", (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec);
	return 0;
}
