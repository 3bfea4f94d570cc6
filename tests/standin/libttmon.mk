# SPDX-License-Identifier: GPL-2.0-only
#
# libttmon.mk: programs that use libttmon; included after standin.mk, which gives S, SD, Q, msg, the
# flags and the libraries, and lib/advisor/libttmon.mk.
#
#   libttmon_sites           asks before each of its allocations; _nofp without frame pointers, _static
#                            with the archive, _nofp_static both, _rebuilt another build of it
#   libttmon_live            follows live advice and moves buffers at checkpoints
#   libttmon_programs        hears runs of programs
#   libttmon_cxx             the header as C++11 has it

LIBTTMON_RUNPATH := -Wl,-rpath,'$$ORIGIN/lib' -Wl,-rpath,'$$ORIGIN/../../libttmon'
libttmon_program = $(CC) $(filter-out -MMD -MP,$(STANDIN_CFLAGS)) $(STANDIN_REAL) $(1) -MMD -MP -MF $@.d -pthread \
	-Wl,--build-id \
		   -Wl,--enable-new-dtags $(LIBTTMON_RUNPATH) -o $@ $(filter %.c,$^) $(filter %.so %.so.13 %.a,$^) $(2)

$(S)/libttmon_live: $(SD)/libttmon_live.c $(S)/flags $(RT13) $(LIBTTMON_DIR)/libttmon.so
$(S)/libttmon_programs: $(SD)/libttmon_programs.c $(S)/flags $(LIBTTMON_DIR)/libttmon.so
$(S)/libttmon_sites $(S)/libttmon_sites_nofp $(S)/libttmon_sites_rebuilt: $(SD)/libttmon_sites.c $(S)/flags $(RT13) \
	$(LIBTTMON_DIR)/libttmon.so
$(S)/libttmon_sites_static $(S)/libttmon_sites_nofp_static: $(SD)/libttmon_sites.c $(S)/flags $(RT13) \
	$(LIBTTMON_DIR)/libttmon.a
$(S)/libttmon_sites_nofp $(S)/libttmon_sites_nofp_static: LIBTTMON_MORE := -fomit-frame-pointer -foptimize-sibling-calls
$(S)/libttmon_sites_rebuilt: LIBTTMON_MORE := -DREBUILT -fstack-protector-all
$(S)/libttmon_sites_static $(S)/libttmon_sites_nofp_static: LIBTTMON_LINK := $(LIBTTMON_LIBS)

LIBTTMON_PROGRAMS := \
	$(addprefix $(S)/,libttmon_sites libttmon_sites_nofp libttmon_sites_rebuilt libttmon_sites_static \
	libttmon_sites_nofp_static libttmon_live libttmon_programs)

$(LIBTTMON_PROGRAMS):
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(call libttmon_program,$(LIBTTMON_MORE),$(LIBTTMON_LINK)) $(note_warnings)

CXX ?= g++
$(S)/libttmon_cxx: $(SD)/libttmon_cxx.cpp include/ttmon/client.h include/ttmon/usdt.h $(LIBTTMON_DIR)/libttmon.so
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++11 -O2 -Wall -Wextra -pedantic $(FATAL) -I include $(LIBTTMON_RUNPATH) -o $@ \
		$(filter %.cpp %.so,$^) $(note_warnings)

STANDIN += $(LIBTTMON_PROGRAMS) $(S)/libttmon_cxx
