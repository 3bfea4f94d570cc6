# SPDX-License-Identifier: GPL-2.0-only
# memtrace.mk: what the pattern rules do not know.

# The recorder's text is put into the object as it is.
$(foreach b,$(O) $(O)/asan $(O)/tsan $(O)/fuzz,$(b)/obj/memtrace/ptx/rec.o): memtrace/ptx/recorder.ptx

# libttmon-memtrace.so: for LD_PRELOAD. Bound to itself: loaded late, by the driver, its names stand
# behind the driver's own (-Bsymbolic would also make dlsym(RTLD_DEFAULT) look into it first). It is
# never unloaded: programs hold pointers to it.

INJECT_SRC := $(call below,memtrace/inject memtrace/ptx) memtrace/model/opcode.c
INJECT_OBJ := $(INJECT_SRC:%.c=$(O)/inject/%.o)
INJECT_LIB := $(O)/libttmon/libttmon-memtrace.so
INJECT_CFLAGS = $(CPPFLAGS_ALL) $(filter-out -fPIE,$(CFLAGS_ALL)) $(CFLAGS_plain) -fPIC -fvisibility=hidden \
	-ffunction-sections -fdata-sections \
		 -fno-omit-frame-pointer -fno-optimize-sibling-calls

$(O)/inject/flags: FORCE
	$(call filechk,$(CC) $(INJECT_CFLAGS) $(INJECT_SRC))

$(O)/inject/%.o: %.c $(O)/inject/flags
	$(call msg,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(INJECT_CFLAGS) -MMD -MP -c $< -o $@ $(note_warnings)

$(O)/inject/memtrace/ptx/rec.o: memtrace/ptx/recorder.ptx

$(INJECT_LIB): $(INJECT_OBJ) memtrace/inject/inj.map
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(filter-out -pie,$(LDFLAGS_ALL)) -Wl,-z,defs -Wl,-Bsymbolic-functions -Wl,-z,nodelete \
		-Wl,--gc-sections -Wl,--build-id -Wl,-soname,libttmon-memtrace.so \
		-Wl,--version-script,memtrace/inject/inj.map -o $@ $(filter %.o,$^) -lzstd -llz4 -lpthread -ldl

all: $(INJECT_LIB)
STANDIN += $(INJECT_LIB)

LIBTTMON_INSTALLED += $(libdir)/libttmon-memtrace.so
install: install-memtrace
.PHONY: install-memtrace
install-memtrace: $(INJECT_LIB)
	$(Q)$(INSTALL) -d $(DESTDIR)$(libdir)
	$(Q)$(INSTALL) -m 0644 $(INJECT_LIB) $(DESTDIR)$(libdir)/libttmon-memtrace.so


# Rewrites a PTX text, for the tests.
$(O)/tests/memtrace/ptxrw: $(O)/obj/tests/memtrace/ptxrw.o $(patsubst %.c,$(O)/obj/%.o,$(call below,memtrace/ptx)) \
	$(O)/ldflags
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -lzstd -llz4

STANDIN += $(O)/tests/memtrace/ptxrw
