// SPDX-License-Identifier: GPL-2.0-only
/*
 * sys.c: reads the chips from sysfs and procfs of tt-kmd (tt-kmd 4af71921, tt-umd 3ed9cb6d). Cold
 * thread and `ttmon smi`.
 *
 *   SYSFS/class/tenstorrent/tenstorrent!N/         tt_serial tt_asic_id tt_card_type tt_aiclk
 *                                                  tt_fw_bundle_ver
 *   SYSFS/class/tenstorrent/tenstorrent!N/device/  a link to the PCI function: device numa_node
 *                                                  hwmon/hwmonM/
 *   PROC/driver/tenstorrent/N/pids                 one line for every open file
 *
 * An attribute is a regular file, read with one read; a link in its place is not followed, so that
 * nothing here ever opens a device node. ENODATA, ENODEV and an empty attribute mean that the chip is
 * in reset: its values are then unknown, not 0.
 *
 * The location byte of key_v1: 0 for a card of one chip and the near half of an N300, 1 for its far
 * half, tray << 4 | chip on a Galaxy. The chips of a P300 share a board id and have no location in
 * sysfs: they are numbered by bus address. A key that two chips would share is given to neither.
 * unique_id is set only where it can be known from outside: see lone_unique().
 */
#include "daemon/io/tt/sys.h"
#include "lib/base/grow.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define NO_BDF	      0xffffffffu
#define MAX_ENTRIES   65536 /* entries of a directory */
#define MAX_ORDINAL   0xfffffeu
#define PCI_WORMHOLE  0x401e
#define PCI_BLACKHOLE 0xb140

struct reader {
	bool resetting;
};

/*
 * An attribute's text without the newline: its length, or -errno. A text longer than the buffer is
 * invalid.
 */
static int read_attr(struct reader *r, int dir, const char *name, char *buf, size_t size)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		r->resetting |= errno == ENODEV || errno == ENODATA;
		return -errno;
	}
	n = read(fd, buf, size);
	if (n < 0) {
		r->resetting |= errno == ENODEV || errno == ENODATA;
		return -errno;
	}
	if (n && buf[n - 1] == '\n')
		n--;
	if (!n) {
		/* A pipe without a writer is also empty, but that is no reset. */
		r->resetting |= !fstat(fd, &st) && S_ISREG(st.st_mode);
		return -ENODATA;
	}
	if ((size_t)n == size || memchr(buf, '\0', (size_t)n))
		return -EINVAL;
	buf[n] = '\0';
	return (int)n;
}

/* Parses decimal digits only, with a minus if that is allowed. */
static bool parse_dec(const char *s, bool negative, int64_t max, int64_t *ret)
{
	bool minus = negative && *s == '-';
	int64_t v = 0;

	s += minus;
	if (!*s || strlen(s) > 18)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		v = v * 10 + (*s - '0');
	}
	if (v > max)
		return false;
	*ret = minus ? -v : v;
	return true;
}

static bool parse_hex(const char *s, size_t min, size_t max, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; *s; s++, n++) {
		if (*s >= '0' && *s <= '9')
			v = v << 4 | (uint64_t)(*s - '0');
		else if ((*s | 32) >= 'a' && (*s | 32) <= 'f')
			v = v << 4 | (uint64_t)((*s | 32) - 'a' + 10);
		else
			return false;
		if (n == max)
			return false;
	}
	if (n < min)
		return false;
	*ret = v;
	return true;
}

static int64_t read_dec(struct reader *r, int dir, const char *name, bool negative, int64_t max, int64_t unknown)
{
	char buf[64];
	int64_t v;

	return read_attr(r, dir, name, buf, sizeof(buf)) > 0 && parse_dec(buf, negative, max, &v) ? v : unknown;
}

/* 16 hex digits, as tt_serial and tt_asic_id; 0: unknown. */
static uint64_t read_id(struct reader *r, int dir, const char *name)
{
	char buf[64];
	uint64_t v;

	return read_attr(r, dir, name, buf, sizeof(buf)) > 0 && parse_hex(buf, 16, 16, &v) ? v : 0;
}

/* A short text of letters, digits and . - _ + */
static void read_word(struct reader *r, int dir, const char *name, char *ret, size_t size)
{
	char buf[64];
	int n = read_attr(r, dir, name, buf, sizeof(buf));

	ret[0] = '\0';
	if (n <= 0 || (size_t)n >= size)
		return;
	for (int i = 0; i < n; i++) {
		char c = buf[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(".-_+", c)))
			return;
	}
	memcpy(ret, buf, (size_t)n + 1);
}

/* "0000:81:00.0", all of it. */
static bool parse_bdf(const char *s, uint32_t *ret)
{
	char text[16];
	unsigned int domain, bus, dev, fn;

	if (strlen(s) != 12 || sscanf(s, "%4x:%2x:%2x.%1x", &domain, &bus, &dev, &fn) != 4)
		return false;
	snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", domain & 0xffff, bus & 0xff, dev & 0x1f, fn & 7);
	if (strcmp(s, text))
		return false;
	*ret = domain << 16 | bus << 8 | dev << 3 | fn;
	return true;
}

/*
 * The PCI function: the target of "device", else the innermost folder on the way to the node with a
 * name of that form.
 */
static uint32_t read_bdf(int class_dir, const char *node)
{
	char path[64 + 8], link[PATH_MAX], *s;
	uint32_t bdf = NO_BDF;
	ssize_t n;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), i ? "%s" : "%s/device", node);
		n = readlinkat(class_dir, path, link, sizeof(link) - 1);
		if (n <= 0)
			continue;
		link[n] = '\0';
		while ((s = strrchr(link, '/'))) {
			if (parse_bdf(s + 1, &bdf))
				return bdf;
			*s = '\0';
		}
		if (parse_bdf(link, &bdf))
			return bdf;
	}
	return NO_BDF;
}

/* Sensors of the PCI function: the first hwmon with the name of a chip's sensor, or the first one. */
static void read_hwmon(struct reader *r, int dev, struct ttmon_ttsys_chip *c, char name[static 24])
{
	int fd = openat(dev, "hwmon", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	_cleanup_close_ int chosen = -1;
	struct dirent *e;

	name[0] = '\0';
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (int i = 0; i < 64 && (e = readdir(d)); i++) {
		_cleanup_close_ int mon = -1;
		char is[24];

		if (strncmp(e->d_name, "hwmon", 5))
			continue;
		mon = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
		if (mon < 0)
			continue;
		read_word(r, mon, "name", is, sizeof(is));
		if (chosen >= 0 && strcmp(is, "wormhole") && strcmp(is, "blackhole"))
			continue;
		if (chosen >= 0)
			close(chosen);
		chosen = TAKE_FD(mon);
		memcpy(name, is, sizeof(is));
		if (!strcmp(is, "wormhole") || !strcmp(is, "blackhole"))
			break;
	}
	closedir(d);
	if (chosen < 0)
		return;
	c->temperature_mc = (int32_t)read_dec(r, chosen, "temp1_input", true, 1000000, INT32_MIN);
	if (c->temperature_mc < -273150)
		c->temperature_mc = INT32_MIN;
	c->power_uw = read_dec(r, chosen, "power1_input", false, 10000000000LL, -1);
}

static unsigned int arch_of(struct reader *r, int dev, const char *hwmon, const char *board)
{
	char buf[64];
	uint64_t id = 0;

	if (dev >= 0 && read_attr(r, dev, "device", buf, sizeof(buf)) > 2 && !strncmp(buf, "0x", 2))
		(void)parse_hex(buf + 2, 1, 4, &id);
	if (id == PCI_WORMHOLE || !strcmp(hwmon, "wormhole"))
		return TTMON_TT_WORMHOLE;
	if (id == PCI_BLACKHOLE || !strcmp(hwmon, "blackhole"))
		return TTMON_TT_BLACKHOLE;
	return ttmon_ttsys_board_arch(board);
}

/*
 * Tray and chip of a Galaxy by bus number (kmd enumerate.c); the trays' order differs by architecture.
 */
static void galaxy(struct ttmon_ev_tt_chip *f)
{
	static const uint8_t wormhole[4] = { 0xc, 0x8, 0x0, 0x4 }, blackhole[4] = { 0x0, 0x4, 0xc, 0x8 };
	const uint8_t *nibbles = f->arch == TTMON_TT_WORMHOLE ? wormhole : blackhole;
	uint32_t bus = f->bdf >> 8 & 0xff;

	if (f->bdf == NO_BDF)
		return;
	for (uint8_t i = 0; i < 4; i++) {
		if (nibbles[i] != bus >> 4)
			continue;
		f->flags |= TTMON_TT_CHIP_GALAXY;
		f->tray = (uint8_t)(i + 1);
		f->chip = bus & 0xf;
		f->location = (uint8_t)(f->tray << 4 | f->chip);
	}
}

static bool board_is(const struct ttmon_ev_tt_chip *f, const char *name)
{
	const char *board = ttmon_ttsys_card_board(f->board_id, f->card);

	return board && !strcmp(board, name);
}

static bool is_galaxy(const struct ttmon_ev_tt_chip *f)
{
	return board_is(f, "galaxy-wormhole") || board_is(f, "galaxy-blackhole");
}

static void read_chip(int class_dir, uint32_t ordinal, struct ttmon_ttsys_chip *c)
{
	char node[64], hwmon[24] = "";
	_cleanup_close_ int dir = -1, dev = -1;
	struct ttmon_ev_tt_chip *f = &c->fact;
	struct reader r = { 0 };
	uint64_t dram, l1;

	*c = (struct ttmon_ttsys_chip){
		.fact = { .h = { .kind = TTMON_EV_TT_CHIP, .cpu = TTMON_CPU_DAEMON },
			  .ordinal = ordinal,
			  .bdf = NO_BDF },
		.temperature_mc = INT32_MIN,
		.power_uw = -1,
		.aiclk_mhz = -1,
		.numa_node = UINT32_MAX,
	};
	snprintf(node, sizeof(node), "tenstorrent!%u", ordinal);
	f->bdf = read_bdf(class_dir, node);
	dir = openat(class_dir, node, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (dir < 0) {
		c->resetting = errno == ENODEV || errno == ENODATA;
		return;
	}
	f->board_id = read_id(&r, dir, "tt_serial");
	f->asic_id = read_id(&r, dir, "tt_asic_id");
	read_word(&r, dir, "tt_card_type", f->card, sizeof(f->card));
	read_word(&r, dir, "tt_fw_bundle_ver", c->fw_bundle, sizeof(c->fw_bundle));
	c->aiclk_mhz = read_dec(&r, dir, "tt_aiclk", false, 20000, -1);
	dev = openat(dir, "device", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (dev >= 0) {
		c->numa_node = (uint32_t)read_dec(&r, dev, "numa_node", false, 4095, UINT32_MAX);
		read_hwmon(&r, dev, c, hwmon);
	}
	c->resetting = r.resetting;
	f->arch = (uint8_t)arch_of(&r, dev, hwmon, ttmon_ttsys_card_board(f->board_id, f->card));
	ttmon_ttsys_memory(f->board_id, f->arch, f->card, &dram, &l1);
	f->dram_bytes = dram;
	f->l1_bytes = l1;
	if (is_galaxy(f))
		galaxy(f);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int by_bus(const void *a, const void *b)
{
	const struct ttmon_ev_tt_chip *x = &((const struct ttmon_ttsys_chip *)a)->fact;
	const struct ttmon_ev_tt_chip *y = &((const struct ttmon_ttsys_chip *)b)->fact;

	if (x->bdf != y->bdf)
		return x->bdf < y->bdf ? -1 : 1;
	return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static bool parse_ordinal(const char *s, uint32_t *ret)
{
	int64_t v;

	if ((s[0] == '0' && s[1]) || !parse_dec(s, false, MAX_ORDINAL, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* The numbers of all nodes, ascending, the first TTMON_TTSYS_MAX of them. */
static int list_nodes(DIR *d, uint32_t **ret, size_t *n)
{
	static const char prefix[] = "tenstorrent!";
	_cleanup_free_ uint32_t *v = NULL;
	size_t have = 0, cap = 0;
	struct dirent *e;

	for (int i = 0; i < MAX_ENTRIES && (e = readdir(d)); i++) {
		uint32_t ordinal;

		if (strncmp(e->d_name, prefix, sizeof(prefix) - 1) ||
		    !parse_ordinal(e->d_name + sizeof(prefix) - 1, &ordinal))
			continue;
		if (TTMON_GROW(v, cap, have + 1, 64))
			return -ENOMEM;
		v[have++] = ordinal;
	}
	if (have)
		qsort(v, have, sizeof(*v), by_number);
	*n = MIN(have, (size_t)TTMON_TTSYS_MAX);
	*ret = TAKE_PTR(v);
	return 0;
}

/* The far half of each N300: its values come from the near one. */
static size_t add_remotes(struct ttmon_ttsys_chip *chips, size_t n)
{
	size_t locals = n;

	for (size_t i = 0; i < locals && n < TTMON_TTSYS_MAX; i++) {
		struct ttmon_ttsys_chip *far = &chips[n];

		if (!board_is(&chips[i].fact, "n300"))
			continue;
		*far = chips[i];
		far->fact.flags |= TTMON_TT_CHIP_REMOTE;
		far->fact.bdf = NO_BDF;
		far->fact.asic_id = 0;
		far->fact.location = 1;
		far->temperature_mc = INT32_MIN;
		far->power_uw = far->aiclk_mhz = -1;
		n++;
	}
	return n;
}

static void set_keys(struct ttmon_ttsys_chip *chips, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ttmon_ev_tt_chip *f = &chips[i].fact;

		if (board_is(f, "p300") && f->board_id)
			for (size_t j = 0; j < i; j++)
				f->location = (uint8_t)(f->location + (chips[j].fact.board_id == f->board_id));
		if (!f->board_id || (is_galaxy(f) && !(f->flags & TTMON_TT_CHIP_GALAXY)))
			continue;
		f->key_v1 = f->board_id << 8 | f->location;
		for (size_t j = 0; j < i; j++)
			if (chips[j].fact.key_v1 == f->key_v1)
				f->key_v1 = 0;
	}
}

/*
 * UMD's unique id of a chip without trained Ethernet links is its board id (Wormhole) or its ASIC id
 * (Blackhole); with links it is another number (tt-umd's topology_discovery_wormhole.cpp, 3ed9cb6d).
 * Links cannot be seen from outside; the only card of a host has no link to another card of it, and a
 * link to another host is rare. So the id is set for a single card only, and a different report by a
 * process is believed.
 */
static void lone_unique(struct ttmon_ev_tt_chip *f)
{
	if (board_is(f, "n150"))
		f->unique_id = f->board_id;
	else if (board_is(f, "p100") || board_is(f, "p150"))
		f->unique_id = f->asic_id;
}

int ttmon_ttsys_read(const struct ttmon_ttsys_roots *roots, struct ttmon_ttsys_chip **ret, size_t *n)
{
	const char *sysfs = roots && roots->sysfs ? roots->sysfs : "/sys";
	_cleanup_free_ struct ttmon_ttsys_chip *chips = NULL;
	_cleanup_free_ uint32_t *nodes = NULL;
	_cleanup_close_ int root = -1;
	size_t nr = 0;
	int fd, err = 0;
	DIR *d;

	root = open(sysfs, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (root < 0)
		return -errno;
	fd = openat(root, "class/tenstorrent", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		d = fdopendir(fd);
		if (!d) {
			err = -errno;
			close(fd);
			return err;
		}
		err = list_nodes(d, &nodes, &nr);
		if (!err) {
			chips = calloc(TTMON_TTSYS_MAX, sizeof(*chips));
			err = chips ? 0 : -ENOMEM;
		}
		for (size_t i = 0; !err && i < nr; i++)
			read_chip(fd, nodes[i], &chips[i]);
		closedir(d);
		if (err)
			return err;
		if (nr)
			qsort(chips, nr, sizeof(*chips), by_bus);
		if (nr == 1)
			lone_unique(&chips[0].fact);
		nr = add_remotes(chips, nr);
		set_keys(chips, nr);
	}
	*ret = TAKE_PTR(chips);
	*n = nr;
	return 0;
}

int ttmon_ttsys_pids(const struct ttmon_ttsys_roots *roots, uint32_t ordinal, uint32_t *pids, size_t max, size_t *n)
{
	const char *proc = roots && roots->proc ? roots->proc : "/proc";
	_cleanup_fclose_ FILE *f = NULL;
	char path[PATH_MAX], line[64];
	struct stat st;
	size_t have = 0;
	int fd;

	if (snprintf(path, sizeof(path), "%s/driver/tenstorrent/%u/pids", proc, ordinal) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		if (errno == ENOENT)
			*n = 0;
		return -errno;
	}
	f = fdopen(fd, "r");
	if (!f || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (!f)
			close(fd);
		return -EINVAL;
	}
	for (int i = 0; i < MAX_ENTRIES && have < max && fgets(line, sizeof(line), f); i++) {
		bool known = false;
		int64_t pid;

		line[strcspn(line, "\n")] = '\0';
		/* 0: a process of another pid namespace. */
		if (!parse_dec(line, false, INT32_MAX, &pid) || !pid)
			continue;
		for (size_t j = 0; j < have && !known; j++)
			known = pids[j] == (uint32_t)pid;
		if (!known)
			pids[have++] = (uint32_t)pid;
	}
	*n = have;
	return 0;
}
