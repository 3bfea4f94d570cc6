// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <stdexcept>

#include "site.hpp"
#include "tt_ops.h"

namespace standin
{

std::atomic<const void *> armed;
thread_local int in_destructor;
static std::atomic<Site *> sites;

[[gnu::noinline]] void site_first(Site *site)
{
	site->at.store(__builtin_return_address(0));
	site->next = sites.load();
	while (!sites.compare_exchange_weak(site->next, site))
		;
}

static const void *entry_of(const Site *site, const char **name)
{
	Dl_info info;

	if (!site->at.load() || !dladdr(site->at.load(), &info) || !info.dli_sname)
		return nullptr;
	if (name)
		*name = info.dli_sname;
	return info.dli_saddr;
}

[[gnu::noinline]] void site_armed(Site *site)
{
	if (in_destructor || entry_of(site, nullptr) != armed.load())
		return;
	armed.store(nullptr);
	throw std::runtime_error("injected");
}

} // namespace standin

size_t standin_tt_sites(struct standin_tt_site *ret, size_t max)
{
	size_t n = 0;

	for (standin::Site *s = standin::sites.load(); s && n < max; s = s->next) {
		const char *name = nullptr;
		const void *entry = standin::entry_of(s, &name);

		if (entry)
			ret[n++] = { name, entry, s->hits.load(), s->throws };
	}
	return n;
}

void standin_tt_arm(const void *entry)
{
	standin::armed.store(entry);
}

bool standin_tt_armed(void)
{
	return standin::armed.load();
}
