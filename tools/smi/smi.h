/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * smi.h: `ttmon smi` inside: what is read, what is made of it, how it is shown.
 *
 * read.c reads (sysfs, procfs, the files in /dev/shm) and calls match.c, which is pure: it leads files
 * to chips and names the chips; figures.c sums up; busy.c asks the service. text.c, details.c and
 * json.c show the result; tools/term/table.c is columns and clean text; watch.c the terminal.
 *
 * A figure that is not known is TTMON_TTSHM_UNKNOWN all the way, and is shown as n/a, never as 0.
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
#define TTMON_SMI_PIDS_MAX 4096 /* of a chip or a file */

struct ttmon_smi_roots {
	const char *sysfs, *proc, *shm; /* NULL: /sys, /proc, /dev/shm */
};

/* How a file was led to its chip. */
#define TTMON_SMI_MATCH_TABLE(X)                                                                                       \
	X(0, NONE, "none")                                                                                             \
	X(1, KEY_V1, "key_v1")	     /* (board id << 8) | location */                                                  \
	X(2, UNIQUE_ID, "unique_id") /* sysfs told enough to know UMD's id */                                          \
	X(3, ASIC_ID, "asic_id")     /* tt_asic_id */                                                                  \
	X(4, SERIAL, "serial")	     /* board id, alone or (Blackhole) with its location */                            \
	X(5, BOARD, "board") /* the id's low word is the board's; which half of an N300 is taken from its high word */ \
	X(6, PROCESS, "process") /* its living processes have only this chip open */
enum ttmon_smi_match {
#define X(id, NAME, name) TTMON_SMI_MATCH_##NAME = id,
	TTMON_SMI_MATCH_TABLE(X)
#undef X
		TTMON_SMI_MATCH_MAX
};

/* Where the ID that is shown comes from. */
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

#define TTMON_SMI_STATUS_TABLE(X)                                                            \
	X(0, NO_TRACKING, "no tracking") /* no file has its figures */                       \
	X(1, IN_USE, "in use")		 /* a living process, or memory in use */            \
	X(2, IDLE, "idle")                                                                   \
	X(3, STALE, "stale")	   /* nothing but entries of dead processes */               \
	X(4, BAD_FILE, "bad file") /* there is a file, and nothing can be learned from it */ \
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
	TTMON_SMI_WHY_NOBODY,	 /* no file, and nobody has the chip open */
	TTMON_SMI_WHY_SILENT,	 /* no file, although somebody has it open */
	TTMON_SMI_WHY_NO_FILE,	 /* no file; who has it open is not known */
	TTMON_SMI_WHY_UNMATCHED, /* there are files of chips that nobody could lead to a chip */
	TTMON_SMI_WHY_FILE,	 /* its file is bad: see there */
	TTMON_SMI_WHY_NO_DIR,	 /* the folder of the files could not be read */
	TTMON_SMI_WHY_UNLISTED,	 /* there is a file, and somebody has the chip open who is in none */
	TTMON_SMI_WHY_UNSEEN,	 /* its file says that it does not hold everything, and holds nothing */
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
	bool counted; /* its figures are those of the chip, alone or with those of another file */
	size_t live, dead;
	uint64_t dead_bytes;
	struct ttmon_smi_pids mapped; /* known with details */
	int removed, clean_err;	      /* cleanup: entries taken out, or why not */
};

struct ttmon_smi_chip {
	const struct ttmon_ttsys_chip *sys; /* NULL: known by its file alone */
	char id[TTMON_SMI_ID_LEN];
	enum ttmon_smi_source source;
	enum ttmon_smi_status status;
	enum ttmon_smi_why why;
	uint64_t board_id, unique_id, key_v1; /* 0: not known; unique_id as learned */
	uint32_t location;		      /* TTMON_SMI_NONE */
	unsigned int arch;		      /* enum ttmon_tt_arch */
	const char *card;		      /* "n300"; NULL */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t dram_used, dram_total, l1_used, l1_total;
	size_t live, dead, files;
	bool told;		    /* a file of version 2 or up is its own */
	bool unattributed;	    /* memory in use, and no process is named for it */
	bool unlisted;		    /* a process has it open that is in no file */
	uint32_t flags;		    /* TTMON_TT_F_*, by its files */
	struct ttmon_smi_pids open; /* by tt-kmd; a remote half has no node */
	/* --busy: the sum over its processes, and by how much that may be wrong; UNKNOWN. */
	uint64_t busy_ns, busy_error_ns;
	bool busy_least; /* of a process on it nothing is known */
};

/* One process on one chip. */
struct ttmon_smi_process {
	uint32_t chip, file; /* file TTMON_SMI_NONE: has it open, publishes nothing */
	uint32_t pid;
	bool alive, open;
	char name[TTMON_TT_SHM_NAME]; /* as the program says: clean it before it is shown */
	uint64_t bytes[TTMON_TTSHM_TYPES];
	uint64_t last_update_ns;
};

/* That a process has a chip open or mapped. */
struct ttmon_smi_opening {
	uint32_t pid, ordinal;
};

/*
 * For how long a process had a chip run programs, of busy_window_ns, and by how much that may be
 * wrong; UNKNOWN.
 */
struct ttmon_smi_busy {
	char id[TTMON_SMI_ID_LEN];
	uint32_t pid;
	char name[TTMON_TT_SHM_NAME];
	uint64_t busy_ns, error_ns;
};

struct ttmon_smi_problem {
	char what[96]; /* a file or folder */
	char text[128];
};

struct ttmon_smi {
	struct ttmon_ttsys_chip *sys;
	size_t nr_sys;
	struct ttmon_ttshm *shm;
	size_t nr_shm;
	struct ttmon_smi_file *files; /* beside shm */
	struct ttmon_smi_chip *chips; /* in the order in which they are shown; TTMON_SMI_NONE-free */
	size_t nr_chips;
	struct ttmon_smi_process *procs; /* by chip, largest first */
	size_t nr_procs, cap_procs;
	struct ttmon_smi_opening *openings;
	size_t nr_openings, cap_openings;
	uint32_t *listed; /* living processes of all files, sorted */
	size_t nr_listed;
	struct ttmon_smi_problem *problems;
	size_t nr_problems;
	uint64_t real_ns, mono_ns;
	const char *shm_dir;
	int shm_err;	/* the folder of the files */
	bool no_driver; /* neither chips nor a driver */
	bool details, cleanup;
	bool failed; /* a file or a tree could not be read: the exit status */
	bool wants_busy;
	struct ttmon_smi_busy *busy; /* by chip */
	size_t nr_busy;
	uint64_t busy_window_ns; /* 0: there was nothing to compare with */
};

/* ---- read.c ---- */
/* Chips as they were before: in reset a chip does not say which one it is. */
struct ttmon_smi_memory {
	struct ttmon_ttsys_chip *chips;
	size_t n;
};

struct ttmon_smi_ask {
	struct ttmon_smi_roots roots;
	struct ttmon_smi_memory *memory; /* NULL: none; free(chips) at the end */
	bool details, cleanup;
	bool busy; /* ask the service at this socket */
	const char *socket;
	struct ttmon_smi_reading **reading; /* its sums as they were for the last picture; NULL: of one picture alone */
};
/* Everything as it is now. 0 or -ENOMEM; what could not be read is among the problems. */
int ttmon_smi_read(const struct ttmon_smi_ask *ask, struct ttmon_smi *ret) _must_check;
void ttmon_smi_fini(struct ttmon_smi *v);
/* ret->problems; a problem that finds no memory is lost. fatal: the exit status tells it too. */
void ttmon_smi_add_problem(struct ttmon_smi *v, bool fatal, const char *what, const char *text);
/* Add what is not there yet; -ENOMEM. */
int ttmon_smi_add_opening(struct ttmon_smi *v, uint32_t pid, uint32_t ordinal) _must_check;

/* ---- busy.c ---- */
/*
 * What the service says of busy chips, if it is asked to; why not is among the problems. -ENOMEM.
 */
int ttmon_smi_read_busy(const struct ttmon_smi_ask *ask, struct ttmon_smi *v) _must_check;
void ttmon_smi_reading_free(struct ttmon_smi_reading *r);

/* ---- match.c: pure ---- */
/* chips[] out of sys[] (each with its pids still unknown), files[] out of shm[]. -ENOMEM. */
int ttmon_smi_begin(struct ttmon_smi *v) _must_check;
/* By what is in the files' names. */
void ttmon_smi_match_keys(struct ttmon_smi *v);
/* Files that are still nobody's, and whose processes could tell whose. */
bool ttmon_smi_wants_openings(const struct ttmon_smi *v, const struct ttmon_smi_file *f);
/* By who has what open (openings[]). */
void ttmon_smi_match_openings(struct ttmon_smi *v);
/* Rows for the files that are left over, names, figures, processes, order. -ENOMEM. */
int ttmon_smi_finish(struct ttmon_smi *v) _must_check;
uint64_t ttmon_smi_add(uint64_t a, uint64_t b); /* an unknown one counts for nothing, two unknown ones are unknown */
const char *ttmon_smi_match_name(enum ttmon_smi_match match);
const char *ttmon_smi_source_name(enum ttmon_smi_source source);
const char *ttmon_smi_status_name(enum ttmon_smi_status status);
const char *ttmon_smi_arch_name(unsigned int arch); /* NULL: unknown */

/* ---- figures.c: pure ---- */
/* v->listed. -ENOMEM. */
int ttmon_smi_list(struct ttmon_smi *v) _must_check;
bool ttmon_smi_is_listed(const struct ttmon_smi *v, uint32_t pid);
/* Figures, processes and status of one chip. -ENOMEM. */
int ttmon_smi_fill(struct ttmon_smi *v, size_t chip) _must_check;

/* ---- text.c, details.c, json.c ---- */
/* "2.8 GiB", or dense "2.8G"; "n/a". */
const char *ttmon_smi_bytes(char *buf, size_t n, uint64_t bytes, bool dense);
/* The block of one chip. */
void ttmon_smi_details(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out, size_t chip);
void ttmon_smi_text(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out);
/* One document; lines: with a line break per row. 0 or -errno of the writing. */
int ttmon_smi_json(const struct ttmon_smi *v, bool lines, int fd) _must_check;

/* ---- watch.c ---- */
/*
 * Show it again every refresh_ms until q, or a signal; on a terminal in place. Exit status of the
 * command.
 */
int ttmon_smi_watch(const struct ttmon_smi_ask *asked, struct ttmon_term_style *style, unsigned int refresh_ms,
		    bool json);

#endif
