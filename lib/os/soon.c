// SPDX-License-Identifier: GPL-2.0-only
#include "lib/os/soon.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/os/log.h"

bool ttmon_thread_soon(void)
{
	struct sched_param param = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param))
		return true;
	if (setpriority(PRIO_PROCESS, (id_t)gettid(), -20))
		log_debug("a thread that is to run soon has ordinary priority: %s", strerror(errno));
	return false;
}
