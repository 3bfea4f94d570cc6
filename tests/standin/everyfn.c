// SPDX-License-Identifier: GPL-2.0-only
/*
 * everyfn.c: calls every function that ttmon probes once, under every name it is exported with. Prints
 * the accounts of the calls as one line of JSON. The runtime does not call the driver here: each
 * library has its own memory. everyfn12 is the same for the runtime 12, without the driver.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "cuda_api.h"
#include "every.h"

size_t n = 100;
struct every_book every;
static char *text;
static size_t text_len;
static FILE *book;

void did(const char *fn, const char *event, size_t bytes)
{
	fprintf(book, "%s[\"%s\",\"%s\",%zu]", ftell(book) ? "," : "", fn, event, bytes);
}

void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "everyfn: %s: %d\n", what, err);
		exit(4);
	}
}

int main(void)
{
	book = open_memstream(&text, &text_len);
	if (!book)
		return 4;
	every_runtime();
#if STANDIN_CUDART >= 13
	every_driver();
#endif
	fclose(book);
	printf("{\"pid\":%d,\"calls\":[%s],\"d2d\":[%lu,%lu],\"kernels\":%lu,\"graphs\":%lu,\"graph_copies\":%lu,"
	       "\"captured\":%lu}\n",
	       getpid(), text, every.d2d, every.d2d_bytes, every.kernels, every.graphs, every.graph_copies,
	       every.captured);
	free(text);
	return 0;
}
