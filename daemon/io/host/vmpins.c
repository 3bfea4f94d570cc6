// SPDX-License-Identifier: GPL-2.0-only
/* vmpins.c: see vmpins.h. Cold thread. */
#include "daemon/io/host/vmpins.h"

#include "lib/os/proc.h"

#define TEXT_MAX 32768 /* /proc/vmstat has 5 KiB on Linux 6.18, a status 1.5 */

int ttmon_vmpins_read_host(const char *root, struct ttmon_vmpins_host *ret)
{
	struct ttmon_vmpins_host h = { 0 };
	char path[4096], text[TEXT_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/vmstat", root);
	n = ttmon_proc_read_file(path, text, sizeof(text));
	if (n < 0 || n == TEXT_MAX - 1)
		return n < 0 ? (int)n : -EFBIG;
	if (!ttmon_proc_number(text, "nr_foll_pin_acquired", 10, &h.acquired) ||
	    !ttmon_proc_number(text, "nr_foll_pin_released", 10, &h.released))
		return -ENODATA;
	*ret = h;
	return 0;
}

int ttmon_vmpins_read_proc(const char *root, uint32_t pid, struct ttmon_vmpins_proc *ret)
{
	struct ttmon_vmpins_proc p = { 0 };
	char text[TEXT_MAX];
	ssize_t n = ttmon_proc_read(root, pid, "status", text, sizeof(text));

	if (n < 0 || n == TEXT_MAX - 1)
		return n < 0 ? (int)n : -EFBIG;
	if (!ttmon_proc_number(text, "VmPin:", 10, &p.vm_pin) ||
	    !ttmon_proc_number(text, "RssShmem:", 10, &p.rss_shmem) || p.vm_pin > UINT64_MAX / 1024 ||
	    p.rss_shmem > UINT64_MAX / 1024)
		return -ESRCH;
	p.vm_pin *= 1024;
	p.rss_shmem *= 1024;
	*ret = p;
	return 0;
}

enum ttmon_vmpins_verdict ttmon_vmpins_judge(const struct ttmon_vmpins_told *told, const struct ttmon_vmpins_host *host,
					     const struct ttmon_vmpins_proc *procs, uint64_t page_size)
{
	uint64_t held = host && host->acquired > host->released ? host->acquired - host->released : 0;
	bool shmem = told->allocated <= procs->rss_shmem;
	bool foll_pin = told->registered / page_size <= held + TTMON_VMPINS_SLACK_PAGES;

	if (!told->allocated && !told->registered)
		return TTMON_VMPINS_NOTHING;
	if (!host && told->registered)
		return shmem ? TTMON_VMPINS_UNKNOWN : TTMON_VMPINS_NO_SHMEM;
	if (shmem && foll_pin)
		return TTMON_VMPINS_AGREES;
	return shmem ? TTMON_VMPINS_NO_FOLL_PIN : foll_pin ? TTMON_VMPINS_NO_SHMEM : TTMON_VMPINS_NEITHER;
}

static const struct {
	const char *name, *text;
} verdicts[TTMON_VMPINS_VERDICTS] = {
	[TTMON_VMPINS_NOTHING] = { "nothing", "nothing is pinned" },
	[TTMON_VMPINS_AGREES] = { "agrees", "the kernel contradicts nothing" },
	[TTMON_VMPINS_NO_SHMEM] = { "no_shmem",
				    "allocated pinned memory is not in RssShmem: this driver keeps it elsewhere, or "
				    "is a stand-in" },
	[TTMON_VMPINS_NO_FOLL_PIN] = { "no_foll_pin",
				       "registered memory is not in nr_foll_pin: this driver pins in another way, or "
				       "is a stand-in" },
	[TTMON_VMPINS_NEITHER] = { "neither",
				   "the kernel knows nothing of it: this driver pins in another way, or is a "
				   "stand-in" },
	[TTMON_VMPINS_UNKNOWN] = { "unknown", "this kernel does not count pinned pages" },
};

const char *ttmon_vmpins_verdict_name(unsigned int verdict)
{
	return verdict < TTMON_VMPINS_VERDICTS ? verdicts[verdict].name : NULL;
}

const char *ttmon_vmpins_verdict_text(unsigned int verdict)
{
	return verdict < TTMON_VMPINS_VERDICTS ? verdicts[verdict].text : NULL;
}
