/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_tree.h: small trees of tt-kmd's files for unit tests; tests/standin/tt_tree.py makes whole hosts.
 */
#ifndef TTMON_TEST_TT_TREE_H
#define TTMON_TEST_TT_TREE_H

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree[64]; /* root of the tree of the test that runs */

static void tree_die(const char *what)
{
	perror(what);
	abort();
}

static void tree_parents(const char *path)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *s = dir + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		if (mkdir(dir, 0777) && errno != EEXIST)
			tree_die(dir);
	}
}

__attribute__((format(printf, 1, 2))) static const char *tree_path(const char *fmt, ...)
{
	static char path[4][PATH_MAX];
	static unsigned int turn;
	char *p = path[turn++ % 4];
	size_t n = (size_t)snprintf(p, PATH_MAX, "%s/", tree);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p + n, PATH_MAX - n, fmt, ap);
	va_end(ap);
	return p;
}

static void tree_bytes(const char *path, const void *bytes, size_t n)
{
	FILE *f;

	tree_parents(path);
	f = fopen(path, "w");
	if (!f || (n && fwrite(bytes, n, 1, f) != 1) || fclose(f))
		tree_die(path);
}

/* Text NULL: no such file. */
static void tree_text(const char *path, const char *text)
{
	if (text)
		tree_bytes(path, text, strlen(text));
	else if (unlink(path) && errno != ENOENT)
		tree_die(path);
}

static void tree_link(const char *to, const char *path)
{
	tree_parents(path);
	if (symlink(to, path))
		tree_die(path);
}

static void tree_attr(unsigned int n, const char *name, const char *text)
{
	tree_text(tree_path("sys/class/tenstorrent/tenstorrent!%u/%s", n, name), text);
}

/* A chip as the kernel shows it; NULL texts are left out. */
static void tree_chip(unsigned int n, const char *bdf, const char *card, const char *serial, const char *asic)
{
	char dir[128], node[192], link[256];

	snprintf(dir, sizeof(dir), "sys/devices/pci0000:00/%s", bdf);
	snprintf(node, sizeof(node), "%s/tenstorrent/tenstorrent!%u", dir, n);
	tree_text(tree_path("%s/device", dir),
		  card && (*card == 'p' || strstr(card, "blackhole")) ? "0xb140\n" : "0x401e\n");
	tree_text(tree_path("%s/numa_node", dir), "1\n");
	snprintf(link, sizeof(link), "../../../%s", bdf);
	tree_link(link, tree_path("%s/device", node));
	snprintf(link, sizeof(link), "../../%s", node + 4);
	tree_link(link, tree_path("sys/class/tenstorrent/tenstorrent!%u", n));
	tree_attr(n, "tt_card_type", card);
	tree_attr(n, "tt_serial", serial);
	tree_attr(n, "tt_asic_id", asic);
}

static inline void tree_drop(unsigned int n)
{
	if (unlink(tree_path("sys/class/tenstorrent/tenstorrent!%u", n)))
		tree_die("unlink");
}

static int tree_remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(path);
}

static int tree_setup(void **state)
{
	(void)state;
	snprintf(tree, sizeof(tree), "/tmp/ttmon-tt-XXXXXX");
	if (!mkdtemp(tree) || mkdir(tree_path("sys"), 0777) || mkdir(tree_path("proc"), 0777))
		tree_die(tree);
	return 0;
}

static int tree_teardown(void **state)
{
	(void)state;
	return nftw(tree, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
