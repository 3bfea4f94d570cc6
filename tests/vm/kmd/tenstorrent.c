// SPDX-License-Identifier: GPL-2.0-only
/*
 * tenstorrent.c: a stand-in for tt-kmd as a kernel module of that name: /dev/tenstorrent/0 and 1, the
 * ioctls ALLOCATE_DMA_BUF, PIN_PAGES and UNPIN_PAGES with tt-kmd's numbers, argument layouts and
 * refusals (its ioctl.h, 4af71921), and /proc/driver/tenstorrent/N/pids. Nothing is pinned: it only
 * keeps the book. Names of functions are tt-kmd's where the daemon probes them.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#define DEVICES	    2
#define MAX_BUFFERS 8
#define MAX_BUFFER  (1u << 28)

struct pinned {
	struct list_head list;
	u64 addr, size;
};

struct opened {
	struct list_head list;
	struct list_head ranges;
	struct mutex lock;
	struct pid *pid;
	u32 buffers; /* taken, as bits */
};

static struct chip {
	struct cdev cdev;
	struct proc_dir_entry *dir;
	struct list_head opened;
	struct mutex lock;
} chips[DEVICES];

static dev_t first;
static struct class *class;
static struct proc_dir_entry *root;

static long pin(struct opened *o, void __user *arg)
{
	struct {
		u32 out_size, flags;
		u64 addr, size;
	} in;
	u64 phys = 0x1000;
	struct pinned *r;

	if (copy_from_user(&in, arg, sizeof(in)))
		return -EFAULT;
	if (!PAGE_ALIGNED(in.addr) || !PAGE_ALIGNED(in.size) || !in.size)
		return -EINVAL;
	list_for_each_entry(r, &o->ranges, list) if (r->addr == in.addr && r->size == in.size) return -EEXIST;
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	if (in.out_size >= sizeof(phys) && copy_to_user(arg + sizeof(in), &phys, sizeof(phys))) {
		kfree(r);
		return -EFAULT;
	}
	r->addr = in.addr;
	r->size = in.size;
	list_add(&r->list, &o->ranges);
	return 0;
}

static long unpin(struct opened *o, void __user *arg)
{
	struct {
		u64 addr, size, reserved;
	} in;
	struct pinned *r;

	if (copy_from_user(&in, arg, sizeof(in)))
		return -EFAULT;
	list_for_each_entry(r, &o->ranges, list)
	{
		if (r->addr != in.addr || r->size != in.size)
			continue;
		list_del(&r->list);
		kfree(r);
		return 0;
	}
	return -EINVAL;
}

static long allocate(struct opened *o, void __user *arg)
{
	struct {
		u32 size;
		u8 index, flags, reserved[18];
		u64 phys, offset;
		u32 made, pad;
		u64 noc, more;
	} io;

	BUILD_BUG_ON(offsetof(typeof(io), made) != 40);
	if (copy_from_user(&io, arg, sizeof(io)))
		return -EFAULT;
	if (io.index >= MAX_BUFFERS || !io.size || io.size > MAX_BUFFER || o->buffers & 1u << io.index)
		return -EINVAL;
	io.made = PAGE_ALIGN(io.size);
	if (copy_to_user(arg, &io, sizeof(io)))
		return -EFAULT;
	o->buffers |= 1u << io.index;
	return 0;
}

static long tt_cdev_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct opened *o = file->private_data;
	long ret = -EINVAL;

	mutex_lock(&o->lock);
	if (cmd == 0xfa03)
		ret = allocate(o, (void __user *)arg);
	else if (cmd == 0xfa07)
		ret = pin(o, (void __user *)arg);
	else if (cmd == 0xfa0a)
		ret = unpin(o, (void __user *)arg);
	mutex_unlock(&o->lock);
	return ret;
}

static int tt_cdev_open(struct inode *inode, struct file *file)
{
	struct chip *c = container_of(inode->i_cdev, struct chip, cdev);
	struct opened *o = kzalloc(sizeof(*o), GFP_KERNEL);

	if (!o)
		return -ENOMEM;
	INIT_LIST_HEAD(&o->ranges);
	mutex_init(&o->lock);
	o->pid = get_pid(task_tgid(current));
	file->private_data = o;
	mutex_lock(&c->lock);
	list_add_tail(&o->list, &c->opened);
	mutex_unlock(&c->lock);
	return 0;
}

static int tt_cdev_release(struct inode *inode, struct file *file)
{
	struct chip *c = container_of(inode->i_cdev, struct chip, cdev);
	struct opened *o = file->private_data;
	struct pinned *r, *next;

	mutex_lock(&c->lock);
	list_del(&o->list);
	mutex_unlock(&c->lock);
	list_for_each_entry_safe(r, next, &o->ranges, list) kfree(r);
	put_pid(o->pid);
	kfree(o);
	return 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = tt_cdev_ioctl,
	.open = tt_cdev_open,
	.release = tt_cdev_release,
};

static int pids_show(struct seq_file *m, void *v)
{
	struct chip *c = m->private;
	struct opened *o;

	mutex_lock(&c->lock);
	list_for_each_entry(o, &c->opened, list) seq_printf(m, "%d\n", pid_vnr(o->pid));
	mutex_unlock(&c->lock);
	return 0;
}

static void remove_chip(int i)
{
	proc_remove(chips[i].dir);
	device_destroy(class, first + i);
	cdev_del(&chips[i].cdev);
}

static int add_chip(int i)
{
	struct device *dev;
	char name[4];
	int err;

	INIT_LIST_HEAD(&chips[i].opened);
	mutex_init(&chips[i].lock);
	cdev_init(&chips[i].cdev, &fops);
	err = cdev_add(&chips[i].cdev, first + i, 1);
	if (err)
		return err;
	dev = device_create(class, NULL, first + i, NULL, "tenstorrent!%d", i);
	if (IS_ERR(dev)) {
		cdev_del(&chips[i].cdev);
		return PTR_ERR(dev);
	}
	snprintf(name, sizeof(name), "%d", i);
	chips[i].dir = proc_mkdir(name, root);
	if (chips[i].dir)
		proc_create_single_data("pids", 0444, chips[i].dir, pids_show, &chips[i]);
	return 0;
}

static int __init tt_init(void)
{
	int err = alloc_chrdev_region(&first, 0, DEVICES, "tenstorrent"), i = 0;

	if (err)
		return err;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	class = class_create("tenstorrent");
#else
	class = class_create(THIS_MODULE, "tenstorrent");
#endif
	if (IS_ERR(class)) {
		err = PTR_ERR(class);
		goto no_class;
	}
	root = proc_mkdir("driver/tenstorrent", NULL);
	for (i = 0; i < DEVICES; i++) {
		err = add_chip(i);
		if (err)
			goto no_chip;
	}
	return 0;

no_chip:
	while (i-- > 0)
		remove_chip(i);
	proc_remove(root);
	class_destroy(class);
no_class:
	unregister_chrdev_region(first, DEVICES);
	return err;
}

static void __exit tt_exit(void)
{
	for (int i = 0; i < DEVICES; i++)
		remove_chip(i);
	proc_remove(root);
	class_destroy(class);
	unregister_chrdev_region(first, DEVICES);
}

module_init(tt_init);
module_exit(tt_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in for tt-kmd, for tests");
