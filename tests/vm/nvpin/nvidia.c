// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvidia.c: a stand-in for NVIDIA's kernel module under its name, with the functions that
 * --nvidia-pins probes. Their arguments lie as NVIDIA's do, and they call one another as NVIDIA's do;
 * nothing is pinned, allocated or mapped. A line written to /proc/nvidia-standin, "FUNCTION TIMES
 * AMOUNT STATUS [IRQ]", calls one so many times for so many pages or bytes, and has it return that
 * status; with a last word 1 in an interrupt. With LESS the last of the functions is not there.
 */
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>

/* Called as they are written: no copies for some arguments, nothing inlined. */
#define OWN __attribute__((noipa))

u32 os_alloc_mem(void **address, u64 size);
u32 os_lock_user_pages(void *address, u64 page_count, void **page_array, u32 flags);
u32 os_unlock_user_pages(u64 page_count, void *page_array);
u32 nv_dma_map_alloc(void *dev, u64 page_count, u64 *va_array, u8 contig, void **priv);
u32 RmP2PDmaMapPagesCoherent(void *peer, u64 page_size, u32 page_count, u64 *addresses, void **priv);

/* Where a pointer leads to, the stand-in's functions find what they are to return. */
OWN u32 os_alloc_mem(void **address, u64 size)
{
	barrier();
	return *(u32 *)address;
}

OWN u32 os_lock_user_pages(void *address, u64 page_count, void **page_array, u32 flags)
{
	u32 ok = 0;

	/* As NVIDIA's does: room for the pages' addresses. */
	if (os_alloc_mem((void **)&ok, page_count * sizeof(void *)))
		return 0x51;
	barrier();
	return *(u32 *)page_array;
}

OWN u32 os_unlock_user_pages(u64 page_count, void *page_array)
{
	barrier();
	return *(u32 *)page_array;
}

OWN u32 nv_dma_map_alloc(void *dev, u64 page_count, u64 *va_array, u8 contig, void **priv)
{
	barrier();
	return *(u32 *)priv;
}

#ifndef LESS
/*
 * By a jump, where the compiler makes one: both functions then return to the same place with the same
 * stack pointer.
 */
OWN u32 RmP2PDmaMapPagesCoherent(void *peer, u64 page_size, u32 page_count, u64 *addresses, void **priv)
{
	return nv_dma_map_alloc(peer, page_count, addresses, 0, priv);
}
#endif

struct job {
	struct irq_work work;
	char function[32];
	u64 amount;
	unsigned int times;
	u32 status, irq;
};

static int call(const struct job *j)
{
	u32 status = j->status, ret = ~j->status;

	if (!strcmp(j->function, "os_lock_user_pages"))
		ret = os_lock_user_pages(NULL, j->amount, (void **)&status, 0);
	else if (!strcmp(j->function, "os_unlock_user_pages"))
		ret = os_unlock_user_pages(j->amount, &status);
	else if (!strcmp(j->function, "os_alloc_mem"))
		ret = os_alloc_mem((void **)&status, j->amount);
	else if (!strcmp(j->function, "nv_dma_map_alloc"))
		ret = nv_dma_map_alloc(NULL, j->amount, NULL, 0, (void **)&status);
#ifndef LESS
	else if (!strcmp(j->function, "RmP2PDmaMapPagesCoherent"))
		ret = RmP2PDmaMapPagesCoherent(NULL, PAGE_SIZE, j->amount, NULL, (void **)&status);
#endif
	return ret == j->status ? 0 : -EINVAL;
}

static void interrupted(struct irq_work *work)
{
	const struct job *j = container_of(work, struct job, work);

	for (unsigned int i = 0; i < j->times; i++)
		call(j);
}

static ssize_t standin_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct job j = { .irq = 0 };
	char line[128] = "";
	int err = 0;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	if (sscanf(line, "%31s %u %llu %u %u", j.function, &j.times, &j.amount, &j.status, &j.irq) < 4)
		return -EINVAL;
	if (j.irq) {
		init_irq_work(&j.work, interrupted);
		irq_work_queue(&j.work);
		irq_work_sync(&j.work);
		return len;
	}
	for (unsigned int i = 0; i < j.times && !err; i++)
		err = call(&j);
	return err ? err : len;
}

static const struct proc_ops ops = { .proc_write = standin_write };

static int __init standin_init(void)
{
	return proc_create("nvidia-standin", 0600, NULL, &ops) ? 0 : -ENOMEM;
}

static void __exit standin_exit(void)
{
	remove_proc_entry("nvidia-standin", NULL);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in for NVIDIA's kernel module, for tests");
