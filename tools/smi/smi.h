/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smi.h: the parts of `ttmon smi`.
 *
 * read.c reads sysfs, procfs and the files in /dev/shm, and calls match.c (pure), which matches files
 * to chips and names the chips. figures.c computes sums, busy.c queries the service. text.c, details.c
 * and json.c print the result, with tools/term/table.c for columns and clean text; watch.c repeats it
 * on a terminal.
 *
 * A figure that is not known is TTMON_TTSHM_UNKNOWN throughout, and is shown as n/a, never as 0.
 */
#ifndef TTMON_SMI_H
#define TTMON_SMI_H

#include "daemon/core/tt/tt.h"
#include "daemon/io/tt/sys.h"
#include "lib/read/ttshm.h"
#include "tools/term/table.h"

#define TTMON_SMI_UNKNOWN  TTMON_TTSHM_UNKNOWN
#define TTMON_SMI_NONE	   UINT32_MAX
#define TTMON_SMI_ID_LEN   32
#define TTMON_SMI_PIDS_MAX 4096 /* the most pids kept of a chip or a file */

struct ttmon_smi_roots {
	const char *sysfs, *proc, *shm; /* NULL: /sys, /proc, /dev/shm */
};

/* How a file was matched to its chip. */
#define TTMON_SMI_MATCH_TABLE(X)                                                                             \
	X(0, NONE, "none")                                                                                   \
	X(1, KEY_V1, "key_v1")	     /* (board id << 8) | location */                                        \
	X(2, UNIQUE_ID, "unique_id") /* UMD's id, computed from sysfs */                                     \
	X(3, ASIC_ID, "asic_id")     /* tt_asic_id */                                                        \
	X(4, SERIAL, "serial")	     /* board id, alone or (Blackhole) with its location */                  \
	X(5, BOARD, "board")	     /* the id's low word is the board's; an N300's chip by the high word */ \
	X(6, PROCESS, "process")     /* its living processes have only this chip open */
enum ttmon_smi_match {
#define X(id, NAME, name) TTMON_SMI_MATCH_##NAME = id,
	TTMON_SMI_MATCH_TABLE(X)
#undef X
		TTMON_SMI_MATCH_MAX
};

/* Source of the ID that is shown. */
#define TTMON_SMI_SOURCE_TABLE(X)                                                     \
	X(0, NONE, NULL) /* nothing identifies it: its bus address is shown */        \
	X(1, UNIQUE_ID, "unique_id")                                                  \
	X(2, ASIC_ID, "asic_id")                                                      \
	X(3, SERIAL, "serial") /* board id and location; on a Galaxy tray and chip */ \
	X(4, FILE, "file")     /* no chip of sysfs: the key of the file */
enum ttmon_smi_source {
#define X(id, NAME, name) TTMON_SMI_SOURCE_##NAME = id,
	TTMON_SMI_SOURCE_TABLE(X)
#undef X
		TTMON_SMI_SOURCE_MAX
};

#define TTMON_SMI_STATUS_TABLE(X)                                                 \
	X(0, NO_TRACKING, "no tracking") /* no file has its figures */            \
	X(1, IN_USE, "in use")		 /* a living process, or memory in use */ \
	X(2, IDLE, "idle")                                                        \
	X(3, STALE, "stale")	   /* only entries of dead processes */           \
	X(4, BAD_FILE, "bad file") /* there is a file, but it cannot be used */   \
	X(5, RESETTING, "resetting")
enum ttmon_smi_status {
#define X(id, NAME, name) TTMON_SMI_##NAME = id,
	TTMON_SMI_STATUS_TABLE(X)
#undef X
		TTMON_SMI_STATUS_MAX
};

/* Why a chip has no figures. */
enum ttmon_smi_why {
	TTMON_SMI_WHY_NONE,
	TTMON_SMI_WHY_NOBODY,	 /* no file, and no process has the chip open */
	TTMON_SMI_WHY_SILENT,	 /* no file, although a process has the chip open */
	TTMON_SMI_WHY_NO_FILE,	 /* no file; it is not known which processes have the chip open */
	TTMON_SMI_WHY_UNMATCHED, /* some files could not be matched to any chip */
	TTMON_SMI_WHY_FILE,	 /* its file is bad: see the file's status */
	TTMON_SMI_WHY_NO_DIR,	 /* the folder of the files could not be read */
	TTMON_SMI_WHY_UNLISTED,	 /* a process that is in no file has the chip open */
	TTMON_SMI_WHY_UNSEEN,	 /* its file is marked as incomplete, and shows no memory */
	TTMON_SMI_WHY_MAX
};
const char *ttmon_smi_why_text(enum ttmon_smi_why why);

struct ttmon_smi_pids {
	uint32_t *pids; /* owned */
	size_t n;
	bool known;
};

struct ttmon_smi_file {
	const struct ttmon_ttshm *shm;
	uint32_t chip; /* index in the view's chips */
	enum ttmon_smi_match match;
	bool counted; /* its figures are part of the chip's figures */
	size_t live, dead;
	uint64_t dead_bytes;
	struct ttmon_smi_pids mapped; /* filled with details only */
	int removed, clean_err;	      /* cleanup: number of entries removed; error */
};

struct ttmon_smi_chip {
	const struct ttmon_ttsys_chip *sys; /* NULL: known from its file only */
	char id[TTMON_SMI_ID_LEN];
	enum ttmon_smi_source source;
	enum ttmon_smi_status status;
	enum ttmon_smi_why why;
	uint64_t board_id, unique_id, key_v1; /* 0: not known; unique_id as far as it could be found */
	uint32_t location;		      /* or TTMON_SMI_NONE */
	unsigned int arch;		      /* enum ttmon_tt_arch */
	const char *card;		      /* such as "n300"; or NULL */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t dram_used, dram_total, l1_used, l1_total;
	size_t live, dead, files;
	bool told;		    /* it has a file of version 2 or later */
	bool unattributed;	    /* memory is in use, but no process is listed for it */
	bool unlisted;		    /* a process that is in no file has it open */
	uint32_t flags;		    /* TTMON_TT_F_*, from its files */
	struct ttmon_smi_pids open; /* from tt-kmd; a remote chip has no node */
	/* --busy: the sum over its processes, and how much it may be wrong; or UNKNOWN. */
	uint64_t busy_ns, busy_error_ns;
	bool busy_least; /* the busy time of some process is not known: busy_ns is a lower bound */
};

/* One process on one chip. */
struct ttmon_smi_process {
	uint32_t chip, file; /* file TTMON_SMI_NONE: the process has the chip open but is in no file */
	uint32_t pid;
	bool alive, open;
	char name[TTMON_TT_SHM_NAME]; /* as the program set it: clean it before it is shown */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t last_update_ns;
};

/* A process that has a chip open or mapped. */
struct ttmon_smi_opening {
	uint32_t pid, ordinal;
};

/*
 * How long a process had a chip run programs, out of busy_window_ns, and how much that may be wrong;
 * or UNKNOWN.
 */
struct ttmon_smi_busy {
	char id[TTMON_SMI_ID_LEN];
	uint32_t pid;
	char name[TTMON_TT_SHM_NAME];
	uint64_t busy_ns, error_ns;
};

struct ttmon_smi_problem {
	char what[96]; /* name of a file or folder */
	char text[128];
};

struct ttmon_smi {
	struct ttmon_ttsys_chip *sys;
	size_t nr_sys;
	struct ttmon_ttshm *shm;
	size_t nr_shm;
	struct ttmon_smi_file *files; /* files of the folder shm */
	struct ttmon_smi_chip *chips; /* in the order of the output; never TTMON_SMI_NONE */
	size_t nr_chips;
	struct ttmon_smi_process *procs; /* sorted by chip, then by size, the largest first */
	size_t nr_procs, cap_procs;
	struct ttmon_smi_opening *openings;
	size_t nr_openings, cap_openings;
	uint32_t *listed; /* living processes of all files, sorted */
	size_t nr_listed;
	struct ttmon_smi_problem *problems;
	size_t nr_problems;
	uint64_t real_ns, mono_ns;
	const char *shm_dir;
	int shm_err;	/* error of reading the folder of the files */
	bool no_driver; /* there are neither chips nor a driver */
	bool details, cleanup;
	bool failed; /* a file or tree could not be read: sets the exit status */
	bool wants_busy;
	struct ttmon_smi_busy *busy; /* sorted by chip */
	size_t nr_busy;
	uint64_t busy_window_ns; /* 0: there was no earlier reading to compare with */
};

/* ---- read.c ---- */
/* Chips of earlier readings: a chip in reset does not report its type. */
struct ttmon_smi_memory {
	struct ttmon_ttsys_chip *chips;
	size_t n;
};

struct ttmon_smi_ask {
	struct ttmon_smi_roots roots;
	struct ttmon_smi_memory *memory; /* NULL: none; the caller frees chips at the end */
	bool details, cleanup;
	bool busy; /* query the service at this socket */
	const char *socket;
	struct ttmon_smi_reading **reading; /* the service's sums of the last picture; NULL: for a single picture */
};
/* Reads the current state. Returns 0 or -ENOMEM; what could not be read is listed in problems. */
int ttmon_smi_read(const struct ttmon_smi_ask *ask, struct ttmon_smi *ret) _must_check;
void ttmon_smi_fini(struct ttmon_smi *v);
/*
 * Appends to ret->problems; a problem is dropped if memory runs out. fatal: it also sets the exit
 * status.
 */
void ttmon_smi_add_problem(struct ttmon_smi *v, bool fatal, const char *what, const char *text);
/* Adds an opening unless it is there already. Returns 0 or -ENOMEM. */
int ttmon_smi_add_opening(struct ttmon_smi *v, uint32_t pid, uint32_t ordinal) _must_check;

/* ---- busy.c ---- */
/*
 * Reads the busy times from the service, if requested; on failure the reason is added to problems.
 * Returns 0 or -ENOMEM.
 */
int ttmon_smi_read_busy(const struct ttmon_smi_ask *ask, struct ttmon_smi *v) _must_check;
void ttmon_smi_reading_free(struct ttmon_smi_reading *r);

/* ---- match.c: pure ---- */
/* Makes chips[] from sys[] (without their pids), and files[] from shm[]. Returns 0 or -ENOMEM. */
int ttmon_smi_begin(struct ttmon_smi *v) _must_check;
/* Matches files by the keys in their names. */
void ttmon_smi_match_keys(struct ttmon_smi *v);
/* Returns whether the file is unmatched and its processes could help to match it. */
bool ttmon_smi_wants_openings(const struct ttmon_smi *v, const struct ttmon_smi_file *f);
/* Matches files by the chips that their processes have open (openings[]). */
void ttmon_smi_match_openings(struct ttmon_smi *v);
/*
 * Makes rows for the files that are left over, names, figures and processes, and sorts. Returns 0 or
 * -ENOMEM.
 */
int ttmon_smi_finish(struct ttmon_smi *v) _must_check;
/* Adds two figures: one unknown counts as 0, two unknown give unknown. */
uint64_t ttmon_smi_add(uint64_t a, uint64_t b);
const char *ttmon_smi_match_name(enum ttmon_smi_match match);
const char *ttmon_smi_source_name(enum ttmon_smi_source source);
const char *ttmon_smi_status_name(enum ttmon_smi_status status);
const char *ttmon_smi_arch_name(unsigned int arch); /* NULL: unknown */

/* ---- figures.c: pure ---- */
/* Fills v->listed. Returns 0 or -ENOMEM. */
int ttmon_smi_list(struct ttmon_smi *v) _must_check;
bool ttmon_smi_is_listed(const struct ttmon_smi *v, uint32_t pid);
/* Computes figures, processes and status of one chip. Returns 0 or -ENOMEM. */
int ttmon_smi_fill(struct ttmon_smi *v, size_t chip) _must_check;

/* ---- text.c, details.c, json.c ---- */
/* Formats "2.8 GiB", or "2.8G" if dense; "n/a" if unknown. */
const char *ttmon_smi_bytes(char *buf, size_t n, uint64_t bytes, bool dense);
/* Prints the block of one chip. */
void ttmon_smi_details(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out, size_t chip);
void ttmon_smi_text(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out);
/*
 * Writes one JSON document. lines: with a line break after each row. Returns 0 or -errno of the write.
 */
int ttmon_smi_json(const struct ttmon_smi *v, bool lines, int fd) _must_check;

/* ---- watch.c ---- */
/*
 * Shows the picture every refresh_ms until q or a signal; in place on a terminal. Returns the exit
 * status.
 */
int ttmon_smi_watch(const struct ttmon_smi_ask *asked, struct ttmon_term_style *style, unsigned int refresh_ms,
		    bool json);

#endif
