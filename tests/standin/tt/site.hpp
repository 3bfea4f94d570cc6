// SPDX-License-Identifier: GPL-2.0-only
/*
 * site.hpp: every function that ttmond may probe begins with PROBED(): it counts that it was called, and throws when it was told to. So
 * a test can say which functions a program reached, and send an exception through each of them. A destructor has PROBED_NOTHROW().
 */
#ifndef STANDIN_TT_SITE_HPP
#define STANDIN_TT_SITE_HPP

#include <atomic>
#include <cstdint>

namespace standin
{

struct Site {
	std::atomic<uint64_t> hits;
	std::atomic<const void *> at; // an address inside the function
	bool throws;
	Site *next;
};

extern std::atomic<const void *> armed; // entry of the function that is to throw
extern thread_local int in_destructor;	// nothing may throw
struct Quiet {
	Quiet()
	{
		in_destructor++;
	}
	~Quiet()
	{
		in_destructor--;
	}
};
void site_first(Site *site);
void site_armed(Site *site);

} // namespace standin

#define PROBED_SITE(can)                                                                  \
	static standin::Site probed_site_ = { { 0 }, { nullptr }, can, nullptr };         \
	if (!probed_site_.hits.fetch_add(1, std::memory_order_relaxed))                   \
		standin::site_first(&probed_site_);                                       \
	if (can && __builtin_expect(!!standin::armed.load(std::memory_order_relaxed), 0)) \
	standin::site_armed(&probed_site_)
#define PROBED() PROBED_SITE(true)
#define PROBED_NOTHROW()    \
	PROBED_SITE(false); \
	standin::Quiet probed_quiet_

#endif
