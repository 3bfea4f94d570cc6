// SPDX-License-Identifier: GPL-2.0-only
/* world.hpp: what a stand-in library has open. */
#ifndef STANDIN_TT_WORLD_HPP
#define STANDIN_TT_WORLD_HPP

#include "metal.hpp"
#include "tt_ops.h"

namespace standin
{

struct World {
	std::vector<std::unique_ptr<tt::tt_metal::Device>> devices;
#if TT_MESH_DEVICE
	std::shared_ptr<tt::tt_metal::distributed::MeshDevice> mesh;
	std::vector<std::shared_ptr<tt::tt_metal::distributed::MeshDevice>> submeshes; // by STANDIN_SUBMESH - device
#endif
};
World &world();

size_t dispatch_table(const struct standin_tt_dispatch **ret);
// profiler.cpp
extern const unsigned int profiler_has;
void programs(const struct standin_tt_record *recs, size_t n, uint64_t dropped);
void callback(void (*fn)(void));
void pair(uint32_t chip, int64_t host, uint64_t cycles, double ghz);

} // namespace standin

#endif
