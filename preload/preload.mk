# SPDX-License-Identifier: GPL-2.0-only
#
# preload.mk: libttmon-pin.so, for LD_PRELOAD; included by the top Makefile after
# lib/advisor/libttmon.mk and tests/standin/standin.mk.
#
# Frame pointers and no sibling calls: its frames must be seen, and left out of call sites as its own.
# libttmon's objects are linked into it, hidden, and under another name the one function of it that
# programs call and this library answers.

PRELOAD_SRC := $(call below,preload) lib/base/ranges.c lib/pin/arena.c
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(O)/preload/%.o)
PRELOAD_LIB := $(O)/libttmon/libttmon-pin.so
PRELOAD_CFLAGS = $(CPPFLAGS_ALL) $(filter-out -fPIE,$(CFLAGS_ALL)) $(CFLAGS_plain) -fPIC -fvisibility=hidden \
	-ffunction-sections -fdata-sections -ftls-model=initial-exec \
		 -fno-omit-frame-pointer -fno-optimize-sibling-calls

$(O)/preload/flags: FORCE
	$(call filechk,$(CC) $(PRELOAD_CFLAGS) $(PRELOAD_SRC))

$(O)/preload/%.o: %.c $(O)/preload/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_CFLAGS) -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/preload/libttmon.o: $(LIBTTMON_SRC:%.c=$(LIBTTMON_DIR)/obj/%.o)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LD) -r -o $@.all $^
	$(Q)$(OBJCOPY) --redefine-sym ttmon_checkpoint=ttmon_pin_tell $@.all $@ && rm $@.all

$(PRELOAD_LIB): $(PRELOAD_OBJ) $(O)/preload/libttmon.o preload/pin.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(filter-out -pie,$(LDFLAGS_ALL)) -Wl,-z,defs -Wl,--gc-sections -Wl,--build-id \
		-Wl,-soname,libttmon-pin.so \
		-Wl,--version-script,preload/pin.map -o $@ $(filter %.o,$^) $(LIBTTMON_LIBS) -ldl

$(O)/asan/tests/test_pinpool: $(O)/asan/obj/preload/pool.o $(O)/asan/obj/lib/base/ranges.o
$(O)/tsan/tests/test_pinpool: $(O)/tsan/obj/preload/pool.o $(O)/tsan/obj/lib/base/ranges.o

# The programs of the tests.
$(S)/pin: $(S)/obj/prog/pin.o $(RT13)
$(S)/pindrv: $(S)/obj/prog/pindrv.o $(DRV)
$(S)/pin $(S)/pindrv:
	$(call msg,LINK,$@)
	$(Q)$(standin_program)

# As most programs are built: what allocates is known by unwind tables.
$(S)/pin_nofp: $(SD)/pin.c $(S)/flags $(RT13)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(STANDIN_CFLAGS) -fomit-frame-pointer -MF $@.d -Wl,--build-id -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN/lib' -o $@ $(filter %.c,$^) $(RT13) $(note_warnings)

$(S)/lib/libpinplug.so: $(SD)/pinplug.c $(RT13)
	$(call msg,LINK,$@)
	$(Q)$(CC) $(STANDIN_LIB_CFLAGS) -MF $(S)/libpinplug.d -shared -Wl,-rpath,'$$ORIGIN' -o $@ \
		$(filter %.c %.so.13,$^) $(note_warnings)

STANDIN += $(S)/pin $(S)/pin_nofp $(S)/pindrv $(S)/lib/libpinplug.so $(PRELOAD_LIB)
all: $(PRELOAD_LIB)

LIBTTMON_INSTALLED += $(libdir)/libttmon-pin.so
install: install-preload
.PHONY: install-preload
install-preload: $(PRELOAD_LIB)
	$(Q)$(INSTALL) -d $(DESTDIR)$(libdir)
	$(Q)$(INSTALL) -m 0644 $(PRELOAD_LIB) $(DESTDIR)$(libdir)/libttmon-pin.so
