// SPDX-License-Identifier: GPL-2.0-only
// libttmon_cxx.cpp: <ttmon/client.h> as C++11 has it: every call of it, from a program that links the library.
#include <ttmon/client.h>

#include <cstdio>

static void moved(void *, const struct ttmon_live_advice *)
{
}

int main()
{
	ttmon_advisor_opts opts = ttmon_advisor_opts();
	ttmon_advisor_stats stats;
	ttmon_live_advice line;
	ttmon_advisor *adv = nullptr;
	ttmon_answer answer;
	char why[128];
	const void *frames[] = { reinterpret_cast<const void *>(&moved) };

	opts.size = sizeof(opts);
	if (ttmon_advisor_open(nullptr, 0, &opts, &adv, why, sizeof(why)))
		return 1;
	ttmon_advise_here(adv, 4096, &answer);
	ttmon_advise_stack(adv, frames, 1, 4096, &answer);
	ttmon_advise_name(adv, "x", 4096, &answer);
	ttmon_advisor_on_checkpoint(adv, moved, nullptr);
	if (ttmon_advisor_refresh(adv) || ttmon_advisor_subscribe(adv) || ttmon_advisor_poll(adv, &line))
		return 2;
	ttmon_checkpoint(adv, "step");
	ttmon_advisor_get_stats(adv, &stats);
	std::printf("{\"lookups\":%llu,\"trace_self\":%d}\n", static_cast<unsigned long long>(stats.lookups),
		    ttmon_trace_self("/nonexistent/ttmond.sock"));
	ttmon_advisor_close(adv);
	return answer.verdict != TTMON_VERDICT_UNKNOWN;
}
