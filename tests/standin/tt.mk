# SPDX-License-Identifier: GPL-2.0-only
#
# tt.mk: the stand-in libtt_metal.so, one a generation, and the programs that run on all of them;
# included by standin.mk.
#
#   tt/GEN/libtt_metal.so   GEN: e0 e1 e2a e2b e2i e4, and with other profilers e2b48 e2b64 e2b72
#                           (see tt/metal.hpp, tt/profiler.cpp)
#   tt/stripped/            e2b without .symtab
#   ttledger ttscen ttrun ttrandom ttflood   linked with e2b; LD_LIBRARY_PATH=tt/GEN picks another,
#                           --lib PATH one that is loaded late
#   ttledger_static         e2b inside the program

CXX ?= g++
TT := $(S)/tt
TTD := $(SD)/tt
TT_CXXFLAGS := -std=c++17 -O2 -g -Wall -Wextra $(FATAL) -MMD -MP -I $(TTD) -pthread
TT_UNITS := site buffer graph device program shm dispatch profiler ops

$(TT)/flags: FORCE
	$(call filechk,$(CXX) $(TT_CXXFLAGS))

# $(call tt_generation,name,TT_GEN,TT_INLINED,TT_PROF,flags)
define tt_generation
$(TT)/obj/$(1)/%.o: $(TTD)/%.cpp $(TT)/flags
	$$(call msg,CXX,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CXX) $(TT_CXXFLAGS) $(5) -DTT_NAME='"$(1)"' -DTT_GEN=$(2) -DTT_INLINED=$(3) -DTT_PROF=$(4) -c $$< -o \
		$$@ $$(note_warnings)
$(TT)/$(1)/libtt_metal.so: $(TT_UNITS:%=$(TT)/obj/$(1)/%.o)
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CXX) -shared -pthread -Wl,--build-id -Wl,-soname,libtt_metal.so -o $$@ $$^ -ldl
endef
$(eval $(call tt_generation,e0,0,0,0,-fPIC))
$(eval $(call tt_generation,e1,10,0,1,-fPIC))
$(eval $(call tt_generation,e2a,20,0,2,-fPIC))
$(eval $(call tt_generation,e2b,25,0,4,-fPIC))
$(eval $(call tt_generation,e2i,25,1,3,-fPIC))
$(eval $(call tt_generation,e4,40,0,7,-fPIC))
$(eval $(call tt_generation,static,25,0,4,-fPIE))

# Profilers of 2026 on the e2b library.
define tt_profiler
$(TT)/obj/$(1)/%.o: $(TTD)/%.cpp $(TT)/flags
	$$(call msg,CXX,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CXX) $(TT_CXXFLAGS) -fPIC -DTT_NAME='"$(1)"' -DTT_GEN=25 -DTT_INLINED=0 -DTT_PROF=$(2) -c $$< -o $$@ \
		$$(note_warnings)
$(TT)/$(1)/libtt_metal.so: $(TT)/obj/$(1)/profiler.o $(TT)/obj/$(1)/ops.o \
			   $(patsubst %,$(TT)/obj/e2b/%.o,$(filter-out profiler ops,$(TT_UNITS)))
	$$(call msg,LINK,$$@)
	@mkdir -p $$(@D)
	$$(Q)$(CXX) -shared -pthread -Wl,--build-id -Wl,-soname,libtt_metal.so -o $$@ $$^ -ldl
endef
$(eval $(call tt_profiler,e2b48,5))
$(eval $(call tt_profiler,e2b64,6))
$(eval $(call tt_profiler,e2b72,8))

$(TT)/stripped/libtt_metal.so: $(TT)/e2b/libtt_metal.so
	$(call msg,STRIP,$@)
	@mkdir -p $(@D)
	$(Q)strip -o $@ $<

$(TT)/obj/prog/%.o: $(TTD)/%.cpp $(TT)/flags
	$(call msg,CXX,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(TT_CXXFLAGS) -fPIE -c $< -o $@ $(note_warnings)

# The weak reference to the library does not keep it.
tt_program = $(CXX) -pie -pthread -Wl,--no-as-needed -Wl,--build-id -Wl,--enable-new-dtags \
	-Wl,-rpath,'$$ORIGIN/tt/e2b' -o $@ $(filter %.o,$^) \
	     $(filter %.so,$^) -ldl

TT_PROGRAMS := $(addprefix $(S)/,ttledger ttscen ttrun ttrandom ttflood)
$(TT_PROGRAMS): $(S)/%: $(TT)/obj/prog/%.o $(TT)/obj/prog/book.o $(TT)/e2b/libtt_metal.so
	$(call msg,LINK,$@)
	$(Q)$(tt_program)

# Without a library: --lib says which.
$(S)/ttledger_late: $(TT)/obj/prog/ttledger.o $(TT)/obj/prog/book.o
	$(call msg,LINK,$@)
	$(Q)$(CXX) -pie -pthread -rdynamic -o $@ $^ -ldl

$(S)/ttledger_static: $(TT)/obj/prog/ttledger.o $(TT)/obj/prog/book.o $(TT_UNITS:%=$(TT)/obj/static/%.o)
	$(call msg,LINK,$@)
	$(Q)$(CXX) -pie -pthread -o $@ $^ -ldl

STANDIN_TT := $(foreach g,e0 e1 e2a e2b e2i e4 e2b48 e2b64 e2b72 stripped,$(TT)/$(g)/libtt_metal.so) $(TT_PROGRAMS) \
	$(S)/ttledger_late \
	      $(S)/ttledger_static
