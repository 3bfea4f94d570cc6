// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c: a kernel module that gives each process a resource monitoring ID (RMID) of Intel RDT, or a
 * number if there is no RDT, and reports by tracepoints which process has which RMID, when, and what
 * the hardware counts for it. PROTOCOL.md specifies what consumers see.
 *
 * Order of load: the scheduler's tracepoints and the existing processes (table.c), then the CPUs
 * (tick.c), then the file. Unload is the reverse, except that the tracepoints go first: no RMID is
 * assigned and no timer armed while the CPUs release theirs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#define CREATE_TRACE_POINTS
#include "ttmon_rmid_trace.h"

#include "kernels.h"
#include "ttmon_rmid.h"

#define PROC_NAME     "ttmon_rmid"
#define WRITE_MAX     256
#define EMULATED_MAX  511
#define FAKE_SCALE    64
#define FAKE_WIDTH    24
#define CPUID_RDT_MON 0xf
#define CTR_BITS      62 /* of IA32_QM_CTR */

static uint max_rmid;
module_param(max_rmid, uint, 0444);
MODULE_PARM_DESC(max_rmid, "largest RMID to use, 0: all there are");
static bool force_emulated;
module_param(force_emulated, bool, 0444);
MODULE_PARM_DESC(force_emulated, "leave the machine's RDT alone");
static uint tick_us = 1000;
module_param(tick_us, uint, 0444);
MODULE_PARM_DESC(tick_us, "period of the tick in us, 100..1000000, 0: none");
static bool idle_tick;
module_param(idle_tick, bool, 0444);
MODULE_PARM_DESC(idle_tick, "tick on idle CPUs too");
static uint rdt_batch = 64;
module_param(rdt_batch, uint, 0444);
MODULE_PARM_DESC(rdt_batch, "RMIDs to read a tick and L3 domain, 1..1024");
static uint fake_rdt;
module_param(fake_rdt, uint, 0444);
MODULE_PARM_DESC(fake_rdt, "emulated mode: 1: made-up readings, 2: with errors");
static bool selftest;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "test the allocator at load");

struct ttmon_rmid_hw ttmon_rmid_hw;
static u32 selftest_steps;
static bool released;

/*
 * What resctrl would use, as the kernel found it at boot: it knows the machine's errata and what its
 * command line turned off.
 */
static bool detect_kernel(struct ttmon_rmid_hw *hw)
{
	const struct cpuinfo_x86 *c = &boot_cpu_data;

	if (!boot_cpu_has(X86_FEATURE_CQM_LLC) || c->x86_cache_max_rmid <= 0 || c->x86_cache_occ_scale <= 0)
		return false;
	hw->max_rmid = c->x86_cache_max_rmid;
	hw->scale = c->x86_cache_occ_scale;
	hw->width = min(24 + (c->x86_cache_mbm_width_offset & 0xff), CTR_BITS);
	hw->events = (boot_cpu_has(X86_FEATURE_CQM_OCCUP_LLC) ? TTMON_RMID_OCCUPANCY : 0) |
		     (boot_cpu_has(X86_FEATURE_CQM_MBM_TOTAL) ? TTMON_RMID_TOTAL : 0) |
		     (boot_cpu_has(X86_FEATURE_CQM_MBM_LOCAL) ? TTMON_RMID_LOCAL : 0);
	return true;
}

/* A kernel without resctrl does not look for more than the flags. */
static bool detect_cpuid(struct ttmon_rmid_hw *hw)
{
	u32 a, b, c, d;

	if (!boot_cpu_has(X86_FEATURE_CQM_LLC) || boot_cpu_data.cpuid_level < CPUID_RDT_MON)
		return false;
	cpuid_count(CPUID_RDT_MON, 1, &a, &b, &c, &d);
	if (!b || !c)
		return false;
	hw->max_rmid = c;
	hw->scale = b;
	hw->width = min_t(u32, 24 + (a & 0xff), CTR_BITS);
	hw->events = d & (TTMON_RMID_OCCUPANCY | TTMON_RMID_TOTAL | TTMON_RMID_LOCAL);
	return true;
}

static int configure(struct ttmon_rmid_hw *hw)
{
	if ((tick_us && (tick_us < 100 || tick_us > 1000000)) || !rdt_batch || rdt_batch > TTMON_RMID_POOL ||
	    fake_rdt > 2) {
		pr_err("tick_us is 0 or 100..1000000, rdt_batch 1..%u, fake_rdt 0..2\n", TTMON_RMID_POOL);
		return -EINVAL;
	}
	if (!force_emulated)
		hw->hardware = IS_ENABLED(CONFIG_X86_CPU_RESCTRL) ? detect_kernel(hw) : detect_cpuid(hw);
	if (!hw->hardware) {
		*hw = (struct ttmon_rmid_hw){ .max_rmid = EMULATED_MAX, .scale = 1, .width = 64 };
		if (fake_rdt) {
			hw->fake = fake_rdt;
			hw->scale = FAKE_SCALE;
			hw->width = FAKE_WIDTH;
			hw->events = TTMON_RMID_OCCUPANCY | TTMON_RMID_TOTAL | TTMON_RMID_LOCAL;
		}
	}
	/* The table holds so many: of a machine that has more the others are not used. */
	hw->max_rmid = min_t(u32, hw->max_rmid, TTMON_RMID_POOL - 1);
	if (max_rmid > hw->max_rmid) {
		pr_err("max_rmid is %u at most here\n", hw->max_rmid);
		return -EINVAL;
	}
	if (max_rmid)
		hw->max_rmid = max_rmid;
	hw->tick_ns = tick_us * 1000ULL;
	hw->idle_tick = idle_tick;
	hw->batch = rdt_batch;
	return 0;
}

/* A mounted resctrl programs the same registers at each switch. */
static bool resctrl_mounted(void)
{
	struct file_system_type *fs = get_fs_type("resctrl");
	bool mounted;

	if (!fs)
		return false;
	mounted = !hlist_empty(&fs->fs_supers);
	module_put(fs->owner);
	return mounted;
}

static int test(void)
{
	u32 failed_at = 0;
	int ret = ttmon_rmid_selftest(&selftest_steps, &failed_at);

	if (ret)
		return ret;
	if (failed_at) {
		pr_err("selftest failed at %u\n", failed_at);
		return -EINVAL;
	}
	pr_info("selftest %u ok\n", selftest_steps);
	return 0;
}

static int proc_show(struct seq_file *m, void *unused)
{
	const struct ttmon_rmid_hw *hw = &ttmon_rmid_hw;
	struct ttmon_rmid_counts n;

	ttmon_rmid_table_counts(&n);
	seq_printf(m, "version %s\nmode %s\nmax_rmid %u\nin_use %u\n", TTMON_RMID_VERSION,
		   hw->hardware ? "hardware" : "emulated", hw->max_rmid, n.in_use);
	seq_printf(m, "scale %u\nwidth %u\nevents %u\ndomains %u\ntick_us %llu\n", hw->scale, hw->width, hw->events,
		   ttmon_rmid_domains(), hw->tick_ns / 1000);
	seq_printf(m, "failed %llu\nretried %llu\ndouble_frees %llu\nreleased %d\n", n.failed, n.retried,
		   n.double_frees, READ_ONCE(released));
	if (selftest_steps)
		seq_printf(m, "selftest %u ok\n", selftest_steps);
	else
		seq_puts(m, "selftest not run\n");
	return 0;
}

static int proc_open(struct inode *inode, struct file *file)
{
	return single_open(file, proc_show, NULL);
}

static int command(const char *word)
{
	if (!strcmp(word, "dump"))
		ttmon_rmid_table_dump();
	else if (!strcmp(word, "release"))
		WRITE_ONCE(released, true);
	else if (!strcmp(word, "keep"))
		WRITE_ONCE(released, false);
	else if (*word)
		return -EINVAL;
	return 0;
}

static ssize_t proc_write(struct file *file, const char __user *from, size_t n, loff_t *pos)
{
	char buf[WRITE_MAX + 1], *rest = buf, *line;
	int ret;

	if (n > WRITE_MAX)
		return -E2BIG;
	if (copy_from_user(buf, from, n))
		return -EFAULT;
	buf[n] = '\0';
	if (strlen(buf) != n)
		return -EINVAL;
	while ((line = strsep(&rest, "\n"))) {
		ret = command(strim(line));
		if (ret)
			return ret;
	}
	return n;
}

static const struct proc_ops proc_ops = {
	.proc_open = proc_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = proc_write,
};

static int __init load(void)
{
	struct ttmon_rmid_hw *hw = &ttmon_rmid_hw;
	int ret = configure(hw);

	if (ret)
		return ret;
	if (resctrl_mounted()) {
		pr_err("resctrl is mounted, and it programs the same registers: umount it first\n");
		return -EBUSY;
	}
	if (selftest) {
		ret = test();
		if (ret)
			return ret;
	}
	ret = ttmon_rmid_table_start();
	if (ret)
		return ret;
	ret = ttmon_rmid_cpus_start();
	if (ret)
		goto no_cpus;
	if (!proc_create(PROC_NAME, 0600, NULL, &proc_ops)) {
		ret = -ENOMEM;
		goto no_file;
	}
	pr_info("%s: RMIDs 1..%u, scale %u, width %u, events %u\n", hw->hardware ? "hardware" : "emulated",
		hw->max_rmid, hw->scale, hw->width, hw->events);
	return 0;

no_file:
	ttmon_rmid_table_stop();
	ttmon_rmid_cpus_stop();
	ttmon_rmid_table_clear();
	return ret;
no_cpus:
	ttmon_rmid_table_stop();
	ttmon_rmid_table_clear();
	return ret;
}

static void __exit unload(void)
{
	remove_proc_entry(PROC_NAME, NULL);
	ttmon_rmid_table_stop();
	ttmon_rmid_cpus_stop();
	ttmon_rmid_table_clear();
	tracepoint_synchronize_unregister();
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("GPL v2");
MODULE_VERSION(TTMON_RMID_VERSION);
MODULE_DESCRIPTION("An RMID for each process, told by tracepoints");
