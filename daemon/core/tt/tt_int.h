/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_int.h: shared by the files of core/tt; not included elsewhere.
 *
 *   tt.c      life, processes, chips, time       bufs.c      live buffers, sums and peaks
 *   ops.c     applies a Buffer's events          fallback.c  layouts, degraded mode, held events
 *   devs.c    devices, logical ids, meshes       `wants.c`   requests to the cold thread, spare probes
 *   views.c   the read side                      layout.c    fields of a Buffer
 *   cbs.c     circular buffers, by program       cores.c     what they cover, core by core
 */
#ifndef TTMON_TT_INT_H
#define TTMON_TT_INT_H

#include "lib/base/fifo.h"
#include "lib/base/hmap.h"
#include "daemon/core/tt/tt.h"
#include "daemon/core/tt/cores.h"
#include "daemon/core/tt/layout.h"

#define TTMON_TT_NIL	  UINT32_MAX
#define TTMON_TT_PROCS	  65536
#define TTMON_TT_ENDED	  256
#define TTMON_TT_BUFFERS  4000000
#define TTMON_TT_DEVS	  4096	/* devices and meshes of a process; also its allocators */
#define TTMON_TT_LINKS	  16384 /* (device, mesh) pairs of a process */
#define TTMON_TT_LOGICALS 1024
#define TTMON_TT_CHIPS	  4096
#define TTMON_TT_CALS	  8  /* libraries with tt-metal in one process */
#define TTMON_TT_HELD	  64 /* events of a process held until its layout or mode is settled */
#define TTMON_TT_HELD_ALL 65536
#define TTMON_TT_THREADS  65536
#define TTMON_TT_SWEPT	  1000000 /* per process */
#define TTMON_TT_WANTS	  4096
/* most bytes of a process's buffers, each counted once: 65,536 such processes do not overflow */
#define TTMON_TT_TOTAL (1ULL << 47)

#define TTMON_TT_SETTLE_NS 50000000ULL /* the longest wait of undecided events and entered allocations */
/* after so long without another shadow, a mesh's shadows are shown as far as they came */
#define TTMON_TT_GROUP_NS 20000000ULL
#define TTMON_TT_MESH_NS \
	400000000ULL /* then all devices are assumed to be in the mesh, if the cold thread searched in vain */
#define TTMON_TT_LOOK_NS 5000000000ULL /* or if it has not searched: the machine may be busy */
#define TTMON_TT_KEEP_NS 50000000ULL   /* a mesh not seen for so long needs the spare probes back */
#define TTMON_TT_SILENT	 4	       /* after so many buffers of a mesh without shadows, it has none */
#define TTMON_TT_ASK_NS	 100000000ULL
#define TTMON_TT_ASKS	 10
#define TTMON_TT_FACT_NS 100000000ULL /* facts about an ended process may come so late */
#define TTMON_TT_LOSS_NS 200000000ULL /* losses are reported so late */

/* Flags of a buffer. */
#define TTMON_TT_B_TENTATIVE (1 << 0) /* entered, may still throw: in the table, in no sum */
#define TTMON_TT_B_ENTERED   (1 << 1) /* counted when its allocation was entered, not when it succeeded */
#define TTMON_TT_B_INNER     (1 << 2) /* entered through the allocator's function, after the hooks */
#define TTMON_TT_B_TOLD	     (1 << 3)
/* set in the key of a device's unnamed program; no address of user memory has it */
#define TTMON_TT_CB_KEY (1ULL << 63)

struct ttmon_tt_list {
	uint32_t head, tail;
};

struct ttmon_tt_buf {
	uint64_t key; /* Buffer* */
	uint64_t size, addr, ts_ns;
	uint64_t seq; /* as ops.alloc returned, once reported */
	uint32_t proc, dev;
	uint32_t alc;	     /* index in the process's allocators, or NIL */
	uint32_t prev, next; /* list of its device, or of the tentative buffers */
	uint32_t aprev, anext;
	uint16_t fn;
	uint8_t type, bits;
};

/* How the members of a mesh were found, worst first. */
enum ttmon_tt_known { TTMON_TT_MESH_UNKNOWN, TTMON_TT_MESH_ASSUMED_ALL, TTMON_TT_MESH_TOLD, TTMON_TT_MESH_SEEN };
/* How a logical id was found, worst first. */
enum ttmon_tt_id { TTMON_TT_ID_NONE, TTMON_TT_ID_WORD, TTMON_TT_ID_FACT, TTMON_TT_ID_CALL };

/*
 * A Device or MeshDevice. The sums are of its own buffers; those of a mesh count on each of its
 * members.
 */
struct ttmon_tt_device {
	uint64_t addr;
	uint64_t bytes[TTMON_TT_TYPES], peak[TTMON_TT_TYPES];
	uint64_t live, allocs, frees;
	uint64_t since_ns; /* mesh: not seen since */
	uint64_t event_ns; /* device: when it was closed; mesh: its last allocation */
	uint64_t ident;	   /* mesh: a word that differs between two meshes at the same address */
	uint32_t *links;   /* members of a mesh, or meshes of a device; indexes in devs */
	uint32_t nr_links, cap_links;
	uint32_t use;	    /* device: index in uses */
	uint32_t gen;	    /* mesh with assumed members: value of proc->gen_devs then */
	uint8_t kind;	    /* enum ttmon_tt_dev: DEVICE or MESH */
	uint8_t known;	    /* mesh: enum ttmon_tt_known */
	uint8_t id;	    /* device: enum ttmon_tt_id */
	uint8_t silent;	    /* mesh: buffers without shadows although shadows are probed */
	bool closed, waits; /* waits: it is in t->unknown */
	/* mesh: used: something was allocated or run on it; looked: its memory was searched since */
	bool used, looked;
	bool cbs_lost; /* closed with circular buffers on it whose program is unknown */
	uint16_t slot;
	struct ttmon_tt_list bufs;
	struct ttmon_tt_cbset *cbs; /* NULL: none */
};

struct ttmon_tt_usage {
	struct ttmon_tt_use pub;
	uint32_t chip; /* index in t->chips, or NIL */
	bool dead;     /* free to be reused */
};

struct ttmon_tt_alc {
	uint64_t addr;
	struct ttmon_tt_list bufs;
};

/* Indexes in the process's devs. */
struct ttmon_tt_set {
	uint32_t *v;
	uint32_t n, cap;
};

/* A program of tt-metal with circular buffers. They are the same on all of its devices. */
struct ttmon_tt_prog {
	uint64_t key;	   /* ProgramImpl*, or TTMON_TT_CB_KEY | device */
	uint64_t since_ns; /* time of its layout */
	struct ttmon_tt_cbuf **cbs;
	uint32_t nr_cbs, cap_cbs;
	struct ttmon_tt_set devs; /* devices that have its circular buffers */
	/*
	 * Devices that had them until they were closed. A run there brings them back, and no other event shows
	 * that.
	 */
	struct ttmon_tt_set shut;
	struct ttmon_tt_set meshes; /* meshes that it ran on since, whose devices may include shut ones */
	bool doubt;		    /* such a mesh ended before its devices were known */
};

struct ttmon_tt_place {
	uint32_t logical, chip, how;
	uint64_t ts_ns; /* when it was reported */
};

enum ttmon_tt_mode { TTMON_TT_MODE_UNDECIDED, TTMON_TT_MODE_PRIMARY, TTMON_TT_MODE_DEGRADED };

/* Calibration of a library in a process. */
struct ttmon_tt_cal {
	uint16_t slot;
	uint8_t layout; /* enum ttmon_tt_layout; NONE: undecided */
	uint8_t mode;	/* enum ttmon_tt_mode */
	uint8_t numbering;
	/* the allocators' own functions are probed and called: they count instead of allocate_impl */
	bool inner;
	bool no_hook;		 /* the byte at the hook flag's place is no flag */
	uint32_t votes[2];	 /* for E0, E1 */
	uint32_t hooks;		 /* values of the hook flag seen that were 0 or 1 */
	uint32_t passed;	 /* entered allocations that succeeded without a call of the primary */
	uint32_t held, entering; /* its events among the held ones; those of them that enter an allocation */
	uint32_t open;		 /* threads inside an allocation, as far as is known */
	bool unclear;		 /* an allocation ended, and it is unknown whether it succeeded */
	uint64_t good, bad, match, mismatch;
};

/* The last actions of a thread. */
struct ttmon_tt_thread {
	uint64_t serial; /* of its process */
	uint32_t tid, proc;
	struct {
		uint64_t device, size;
		uint32_t type;
		bool valid;
	} create; /* last Buffer::create whose buffer was not seen yet */
		  /* Buffer reported as allocated last, and by which function: another function may report it again */
	uint64_t made;
	uint16_t made_by;
	uint64_t ended;	    /* Buffer freed last, whose free may be reported again */
	uint64_t entered;   /* Buffer whose allocation was entered last, and may still throw */
	uint64_t undecided; /* the same for a held event */
	uint16_t undecided_slot;
	struct ttmon_tt_group *group;
	bool group_open;
};

/* The shadows that follow a mesh's buffer. */
struct ttmon_tt_group {
	uint64_t key, size, addr, from_ns, last_ns;
	uint32_t mesh, type, n;
	/* value of the process's `ends` when it began: a device that ended since may be another one now */
	uint32_t ends;
	bool cut; /* its buffer ended before any other event: an exception may have prevented the other shadows */
	bool due; /* in t->groups: its time is not over */
	uint32_t devs[TTMON_TT_MESH_MAX];
};

union ttmon_tt_rec {
	struct ttmon_event h;
	struct ttmon_ev_tt_buffer buffer;
	struct ttmon_ev_tt_call call;
	struct ttmon_ev_tt_cb cb;
};

struct ttmon_tt_proc {
	struct ttmon_tt_process pub;
	uint32_t idx;
	uint64_t born;	 /* number in order of creation */
	uint64_t serial; /* of this program: changes at an exec */
	bool seen;	 /* it used tt-metal */
	bool announced, own_call, own_fact, bad_ids;
	uint32_t nr_cals, gen_devs, ends; /* ends: devices and meshes that have ended so far */
	struct ttmon_tt_cal *cals;	  /* [TTMON_TT_CALS] */
	struct ttmon_hmap bufs, by_dev, by_alc, by_prog;
	struct ttmon_tt_device *devs;
	uint32_t nr_devs, cap_devs, nr_links;
	struct ttmon_tt_usage *uses;
	uint32_t nr_uses, cap_uses;
	struct ttmon_tt_alc *alcs;
	uint32_t nr_alcs, cap_alcs;
	struct ttmon_tt_prog *progs;
	uint32_t nr_progs, cap_progs, nr_cbs, nr_runs, nr_doubts; /* nr_runs: entries in the meshes of all programs */
	struct ttmon_tt_place *places;
	uint32_t nr_places, cap_places;
	struct ttmon_fifo held; /* of union ttmon_tt_rec */
	uint64_t held_ns;	/* time of the first one */
	uint64_t total;
	uint64_t vt_device, vt_mesh;
	uint64_t blind_ns; /* when the probes of a library that was mapped earlier became active, 0: none */
	uint64_t own_ns;   /* time of own_fact */
	struct ttmon_hmap
		swept; /* Buffers that ended with a whole device or allocator: their own frees may still come */
};

struct ttmon_tt_asked {
	uint64_t serial, next_ns;
	uint32_t proc, asks;
	uint32_t dev;	  /* mesh, or NIL */
	uint32_t logical; /* used when dev is NIL */
};

struct ttmon_tt_waiting {
	uint64_t serial;
	uint32_t proc, dev;
};

struct ttmon_tt_slotinfo {
	uint32_t object, has;
	uint32_t degraded; /* number of processes that needed the fallback; never falls */
	bool told, drop;
	uint64_t good, freed;	/* allocations and frees reported by the primary */
	uint64_t on_ns, off_ns; /* on_ns: all spare probes are active since; off_ns: until then, 0: still */
};

struct ttmon_tt {
	struct ttmon_tt_cfg cfg;
	struct ttmon_tt_ops ops;
	void *ctx;
	uint64_t now_ns, clock_ns, generation, serial;
	bool off;	 /* the family is off */
	uint64_t off_ns; /* until when the family was off last; 0: never */
	struct ttmon_tt_proc **procs;
	uint32_t nr_procs, cap_procs;
	uint32_t nr_running;
	struct ttmon_fifo free_procs; /* of uint32_t */
	struct ttmon_fifo ended;      /* of uint32_t, processes with something to show */
	struct ttmon_hmap by_tgid;
	struct ttmon_tt_buf *bufs;
	uint32_t nr_bufs, cap_bufs, free_bufs, live_bufs;
	struct ttmon_tt_list tentative;
	struct ttmon_tt_chip *chips;
	uint32_t nr_chips, cap_chips;
	struct ttmon_hmap by_chip; /* chip index to place in chips */
	struct ttmon_tt_slotinfo slots[TTMON_TT_SLOTS];
	struct ttmon_tt_thread *threads;
	uint32_t nr_threads, cap_threads, next_thread;
	struct ttmon_hmap by_tid;
	uint32_t *groups; /* threads whose open group still waits */
	uint32_t nr_groups, cap_groups;
	struct ttmon_tt_waiting *unknown; /* meshes in use whose members no buffer has shown yet */
	uint32_t nr_unknown, cap_unknown, next_unknown;
	struct ttmon_tt_waiting *holding; /* processes that hold events; dev is unused */
	uint32_t nr_holding, cap_holding;
	size_t nr_held;
	struct ttmon_tt_asked wants[TTMON_TT_WANTS];
	uint32_t nr_wants;
};

/* tt.c */
struct ttmon_tt_proc *ttmon_tt_find(const struct ttmon_tt *t, uint32_t tgid);
/* The process if it is still the same. NULL: it is not. */
struct ttmon_tt_proc *ttmon_tt_proc_at(const struct ttmon_tt *t, uint32_t proc, uint64_t serial);
/* NULL: out of memory, or too many threads. */
struct ttmon_tt_thread *ttmon_tt_get_thread(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t tid);
void ttmon_tt_call(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev, size_t size);

/* bufs.c */
uint32_t ttmon_tt_buf_find(const struct ttmon_tt_proc *p, uint64_t key);
/* Puts the buffer into the table, but in no sum. NIL: refused. */
uint32_t ttmon_tt_buf_new(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_tt_buf *b,
			  uint64_t allocator);
/* Counts the buffer in the sums from now on. */
void ttmon_tt_buf_count(struct ttmon_tt *t, uint32_t idx);
/* How a buffer ends: freed, or it never existed. */
enum ttmon_tt_end { TTMON_TT_END_FREE, TTMON_TT_END_UNDO };
void ttmon_tt_buf_end(struct ttmon_tt *t, uint32_t idx, uint64_t ts_ns, uint16_t fn, enum ttmon_tt_end how);
void ttmon_tt_buf_end_list(struct ttmon_tt *t, const struct ttmon_tt_list *l, uint64_t ts_ns, uint16_t fn,
			   enum ttmon_tt_end how);
/* Ends all buffers of a device or mesh. */
void ttmon_tt_buf_end_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn,
			  enum ttmon_tt_end how);
/* The same where the Buffer objects live on: later events of them are ignored. */
void ttmon_tt_buf_sweep_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn);
/* Adds or subtracts one buffer of size bytes of a device or mesh. */
void ttmon_tt_dev_alloc(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, unsigned int type, uint64_t size);
void ttmon_tt_dev_free(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, unsigned int type, uint64_t size,
		       enum ttmon_tt_end how);
void ttmon_tt_buf_end_all(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t ts_ns, enum ttmon_tt_end how);
/* Drops the tentative buffers of that device: they never existed. */
void ttmon_tt_buf_end_tentative(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev);
void ttmon_tt_buf_bulk(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t allocator, uint64_t ts_ns, uint16_t fn);
/* Reports the buffers of a mesh that could not be reported before its members were known. */
void ttmon_tt_buf_tell(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev);
/*
 * Adds to or subtracts from a use everything that counts for d (a device, or one mesh of it). raise:
 * may set a new peak.
 */
void ttmon_tt_use_add(struct ttmon_tt *t, struct ttmon_tt_usage *u, const struct ttmon_tt_device *d, bool raise);
void ttmon_tt_use_sub(struct ttmon_tt *t, struct ttmon_tt_usage *u, const struct ttmon_tt_device *d, bool freed);
void ttmon_tt_use_chip(struct ttmon_tt *t, struct ttmon_tt_usage *u, uint32_t index, uint32_t how);
uint32_t ttmon_tt_chip_get(struct ttmon_tt *t, uint32_t index);

/* devs.c */
/* The entry of that address, created if there is none. NIL: too many. */
uint32_t ttmon_tt_dev_get(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint64_t addr, uint8_t kind, uint16_t slot);
uint32_t ttmon_tt_dev_find(const struct ttmon_tt_proc *p, uint64_t addr);
/* Makes a row for a logical id if there is none: 0, or -1 (out of memory, or an impossible id). */
int ttmon_tt_use_get(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t logical);
void ttmon_tt_dev_id(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint32_t logical, enum ttmon_tt_id how);
/* Takes the id or identity from the first words of a device. */
void ttmon_tt_dev_words(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, const __u64 *w);
void ttmon_tt_dev_new(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev);
void ttmon_tt_dev_end(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev);
/* The ids that were read from memory turned out to be wrong. */
void ttmon_tt_dev_distrust(struct ttmon_tt *t, struct ttmon_tt_proc *p);
void ttmon_tt_devs_fini(struct ttmon_tt_proc *p);

/* devs.c: meshes */
void ttmon_tt_mesh_unlink(struct ttmon_tt_proc *p, uint32_t mesh, uint32_t dev);
/* A mesh that holds nothing: drops what was known of it. */
void ttmon_tt_mesh_forget(struct ttmon_tt_proc *p, uint32_t mesh);
/* A mesh begins or ends at that address. */
void ttmon_tt_mesh_anew(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev);
void ttmon_tt_mesh_fact(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_mesh *ev, size_t size);
/* True if its next buffer may show its members. */
bool ttmon_tt_mesh_is_open(const struct ttmon_tt *t, const struct ttmon_tt_device *m);
/* Something was allocated on the mesh. */
void ttmon_tt_mesh_used(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh, uint64_t ts_ns);
/* The process ends: what is unknown by now stays unknown. */
void ttmon_tt_mesh_finish(struct ttmon_tt *t, struct ttmon_tt_proc *p);
/* This thread made a buffer of a mesh: shadows may follow. */
void ttmon_tt_group_open(struct ttmon_tt *t, const struct ttmon_tt_proc *p, struct ttmon_tt_thread *th,
			 const struct ttmon_tt_buf *b);
bool ttmon_tt_group_add(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th,
			const struct ttmon_ev_tt_call *ev);
void ttmon_tt_group_close(struct ttmon_tt *t, struct ttmon_tt_thread *th);
/*
 * Shows the groups to which no shadow came for a while. over: all groups, since nothing more will
 * come.
 */
void ttmon_tt_groups_pause(struct ttmon_tt *t, bool over);
void ttmon_tt_mesh_tick(struct ttmon_tt *t);

/* ops.c */
/* Applies an event whose meaning is settled. */
void ttmon_tt_do_op(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
		    const struct ttmon_ev_tt_buffer *ev);
void ttmon_tt_count(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint32_t idx);
/* A tentative buffer did not throw: it counts, unless a hook captured it. */
void ttmon_tt_entered_over(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint32_t idx);
/*
 * First call of an allocator's own function: allocations entered before that never got there were
 * captured.
 */
void ttmon_tt_inner_fires(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal,
			  const struct ttmon_ev_tt_buffer *ev);
/*
 * True for the allocator's own function, which allocate_impl calls unless a hook captured the
 * allocation.
 */
bool ttmon_tt_is_inner(uint16_t fn);
/* Address of a Buffer's device; 0: none. */
uint64_t ttmon_tt_op_device(const struct ttmon_tt_proc *p, const struct ttmon_tt_cal *cal,
			    const struct ttmon_ev_tt_buffer *ev);

/* fallback.c */
/* The entry of this library in the process; NULL: too many libraries. */
struct ttmon_tt_cal *ttmon_tt_get_cal(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint16_t slot);
void ttmon_tt_buffer(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_buffer *ev);
/* True if the call has to wait for events before it. */
bool ttmon_tt_hold_call(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev, size_t size);
/* The thread did something else: the allocation that it had entered succeeded. */
void ttmon_tt_confirm(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_thread *th, uint64_t buffer);
/* Decides what is undecided by the evidence so far. */
void ttmon_tt_settle(struct ttmon_tt *t, struct ttmon_tt_proc *p);
/* Counts the entered allocations that are still open. */
void ttmon_tt_confirm_all(struct ttmon_tt *t, struct ttmon_tt_proc *p);
void ttmon_tt_fallback_tick(struct ttmon_tt *t);
/* Nothing of the process is published from now on. why: static text. */
void ttmon_tt_uncalibrate(struct ttmon_tt *t, struct ttmon_tt_proc *p, const char *why);
void ttmon_tt_refuse(struct ttmon_tt *t, struct ttmon_tt_proc *p, struct ttmon_tt_cal *cal, const char *why);

/* views.c */
const char *ttmon_tt_layout_text(const struct ttmon_tt_proc *p);

/* cbs.c */
/* size: of the record in bytes; a record without cores is refused. */
void ttmon_tt_cb(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_cb *ev, size_t size);
void ttmon_tt_cb_free(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev);
/* A program runs on a device or mesh of a process that closed one. */
void ttmon_tt_cb_run(struct ttmon_tt *t, struct ttmon_tt_proc *p, const struct ttmon_ev_tt_call *ev);
/* Removes all circular buffers of a device or mesh. */
void ttmon_tt_cbs_end_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn);
/* The same for a device that is closed: its programs live on, and may run on it again. */
void ttmon_tt_cbs_shut_dev(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, uint64_t ts_ns, uint16_t fn);
/* The mesh's members have become known, or have changed. */
void ttmon_tt_cbs_mesh_set(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t mesh);
/* The mesh no longer exists. */
void ttmon_tt_cbs_mesh_gone(struct ttmon_tt_proc *p, uint32_t mesh);
/*
 * True if a program ran on a mesh with unknown members, so that it may have circular buffers missing
 * from the figures.
 */
bool ttmon_tt_cbs_pending(const struct ttmon_tt_proc *p);
/* Reports the circular buffers of a mesh that could not be reported before its members were known. */
void ttmon_tt_cbs_tell(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev);
void ttmon_tt_cbs_fini(struct ttmon_tt_proc *p);

/* `wants.c` */
/* `anew`: another mesh than the one requested before. */
void ttmon_tt_want_mesh(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t dev, bool anew);
void ttmon_tt_want_chip(struct ttmon_tt *t, struct ttmon_tt_proc *p, uint32_t logical);
void ttmon_tt_spare_tick(struct ttmon_tt *t);

#endif
