// SPDX-License-Identifier: GPL-2.0-only
/*
 * fakeqm: for guests whose kernel only believes to have RDT (../inject.py): what resctrl reads of its
 * counters are the values written to this module's parameters, by RMID. Tests only.
 *
 *	/sys/module/fakeqm/parameters/occ, mbm_total, mbm_local	bytes, "0,4096,..." from RMID 0
 *	.../unavailable						RMIDs whose reading fails as the register's Unavailable bit makes it fail
 *
 * A kretprobe on resctrl_arch_rmid_read(), which adds nothing to what comes back: the differences that
 * the kernel forms of real registers, their width and scale are not in what this tests.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/version.h>

#define RMIDS 256

/* enum resctrl_event_id */
#define OCCUPANCY 1
#define MBM_TOTAL 2
#define MBM_LOCAL 3

static ulong occ[RMIDS], mbm_total[RMIDS], mbm_local[RMIDS];
static bool unavailable[RMIDS];
module_param_array(occ, ulong, NULL, 0644);
module_param_array(mbm_total, ulong, NULL, 0644);
module_param_array(mbm_local, ulong, NULL, 0644);
module_param_array(unavailable, bool, NULL, 0644);

struct call {
	u32 rmid, event;
	u64 *val;
};

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (void *)ri->data;

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	/* (resource, domain, rmid, event, val) */
	call->rmid = regs->dx;
	call->event = regs->cx;
	call->val = (u64 *)regs->r8;
#else
	/* (resource, domain, closid, rmid, event, val, context) */
	call->rmid = regs->cx;
	call->event = regs->r8;
	call->val = (u64 *)regs->r9;
#endif
	return 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (void *)ri->data;

	if (regs_return_value(regs) || call->rmid >= RMIDS)
		return 0;
	if (unavailable[call->rmid]) {
		regs_set_return_value(regs, -EINVAL);
		return 0;
	}
	switch (call->event) {
	case OCCUPANCY:
		*call->val = occ[call->rmid];
		break;
	case MBM_TOTAL:
		*call->val = mbm_total[call->rmid];
		break;
	case MBM_LOCAL:
		*call->val = mbm_local[call->rmid];
		break;
	}
	return 0;
}

static struct kretprobe probe = {
	.kp.symbol_name = "resctrl_arch_rmid_read",
	.entry_handler = on_entry,
	.handler = on_return,
	.data_size = sizeof(struct call),
	.maxactive = 64,
};

static int __init fakeqm_init(void)
{
	return register_kretprobe(&probe);
}

static void __exit fakeqm_exit(void)
{
	unregister_kretprobe(&probe);
}

module_init(fakeqm_init);
module_exit(fakeqm_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("chosen values for resctrl's counters (tests)");
