# SPDX-License-Identifier: MIT
# knee. Targets: all (default), web, test, lint, asan, msan, tsan, musl, coverage, fuzz, bench, docs, install,
# uninstall, deb, static, wheel, dist, clean.
# YAML, ISAL, ZLIB, SQLITE, MPI, CUDA, BLAS = auto|0|1: with the library if it is there, never, or stop when it
# is missing;
# WASM likewise for the page (clang for wasm32-wasi, node, uPlot from npm).

CC      ?= cc
CLANG   ?= clang
MUSL    ?= musl-gcc
B       ?= build
YAML    ?= auto
ISAL    ?= auto
ZLIB    ?= auto
SQLITE  ?= auto
WASM    ?= auto
MPI     ?= auto
BLAS    ?= auto
MPICC   ?= mpicc
CUDA    ?= auto
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda) $(lastword $(sort $(wildcard /usr/local/cuda-*))) /usr)
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# No contraction to fused multiply-add: native and WebAssembly must agree to the last digits.
# Hidden: libknee.so shows what include/*.h declares (tools/exports), nothing else.
STD      = -std=c17 -D_DEFAULT_SOURCE -ffp-contract=off -fvisibility=hidden $(harden_c)
# override: what is given on the command line stands beside these, not in their place.
override CPPFLAGS += -Iinclude -Isrc
# make V=1 shows the commands.
Q = $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@printf '  %-5s %s\n' $(1) $(2))

# use NAME: is the header of a library there, and is it wanted? NAME=auto|0|1
hash := \#
comma := ,
has = $(shell printf '$(hash)include <%s>\n' $(1) | $(CC) -E - >/dev/null 2>&1 && echo 1 || echo 0)
use = $(if $(filter 1,$($(1))),$(if $(filter 1,$(call has,$(2))),1,$(error $(1)=1 but $(2) is missing: apt-get install $(3))),$(if $(filter 0,$($(1))),0,$(call has,$(2))))
use_yaml   := $(call use,YAML,yaml.h,libyaml-dev)
use_isal   := $(call use,ISAL,isa-l/igzip_lib.h,libisal-dev)
use_zlib   := $(call use,ZLIB,zlib.h,zlib1g-dev)
use_sqlite := $(call use,SQLITE,sqlite3.h,libsqlite3-dev)
use_blas   := $(call use,BLAS,cblas.h,libopenblas-dev)
override CPPFLAGS += -DKNEE_HAVE_YAML=$(use_yaml) -DKNEE_HAVE_ISAL=$(use_isal) -DKNEE_HAVE_ZLIB=$(use_zlib) \
            -DKNEE_HAVE_SQLITE=$(use_sqlite) -DKNEE_HAVE_BLAS=$(use_blas)
override LDLIBS += $(if $(filter 1,$(use_yaml)),-lyaml) \
            $(if $(filter 1,$(use_isal)),-lisal,$(if $(filter 1,$(use_zlib)),-lz)) \
            $(if $(filter 1,$(use_sqlite)),-lsqlite3) -lm -lpthread -ldl

# ---- Hardening and the version ----
# HARDEN=0 leaves it away. Each flag only where compiler and linker know it; checks of the C library's calls only
# where there is optimisation, which they need, and no sanitizer, which they disturb.
HARDEN ?= auto
takes = $(shell echo 'int main(void) { return 0; }' | $(CC) -Werror $(1) -x c - -o /dev/null 2>/dev/null && echo '$(1)')
ifneq ($(HARDEN),0)
harden_c := $(call takes,-fstack-protector-strong)
harden_l := $(call takes,-Wl$(comma)-z$(comma)relro) $(call takes,-Wl$(comma)-z$(comma)now)
harden_exe := $(call takes,-pie -fPIC)
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
harden_c += $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
endif
# One place says the version: include/knee.h. The number in the library's name is the major one.
version_of = $(shell sed -n 's/^$(hash)define KNEE_VERSION_$(1) *//p' include/knee.h)
so_major := $(call version_of,MAJOR)
version  := $(so_major).$(call version_of,MINOR).$(call version_of,PATCH)
so_name  := libknee.so.$(so_major)

# MPI brings its own compiler command; what needs it is an object of its own, loaded by a run that does.
has_mpi := $(if $(filter 0,$(MPI)),0,$(shell command -v $(MPICC) >/dev/null 2>&1 && echo 1 || echo 0))
use_mpi := $(if $(filter 1-0,$(MPI)-$(has_mpi)),$(error MPI=1 but $(MPICC) is missing: apt-get install libopenmpi-dev openmpi-bin),$(has_mpi))
# CUDA with NCCL likewise; the compiler stays the same, for there is no device code in knee. RPATH=0: found where the
# system looks, not where it was at build time.
cuda_flags = -isystem $(CUDA_HOME)/include
cuda_libs  = $(foreach d,$(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib),-L$(d) $(if $(filter 0,$(RPATH)),,-Wl,-rpath,$(d))) -lnccl -lcudart
has_cuda := $(if $(filter 0,$(CUDA)),0,$(shell printf '$(hash)include <cuda_runtime_api.h>\n$(hash)include <nccl.h>\n' | $(CC) $(cuda_flags) -E - >/dev/null 2>&1 && echo 1 || echo 0))
use_cuda := $(if $(filter 1-0,$(CUDA)-$(has_cuda)),$(error CUDA=1 but cuda_runtime_api.h or nccl.h is missing in $(CUDA_HOME)/include: install CUDA and NCCL, or set CUDA_HOME),$(has_cuda))

# The page: what it takes, and the page itself, which all builds share.
can_page := $(shell command -v node >/dev/null && command -v wasm-ld >/dev/null && \
              test -e node_modules/uplot/dist/uPlot.iife.min.js && \
              echo '$(hash)include <stdlib.h>' | $(CLANG) --target=wasm32-wasi -E - >/dev/null 2>&1 && echo 1 || echo 0)
use_page := $(if $(filter 0,$(WASM)),0,$(can_page))
ifeq ($(WASM)$(can_page),10)
$(error WASM=1 but the page cannot be built: tools/setup web installs what it takes)
endif
page := build/knee.html

# A room may have rooms inside.
room_src  = $(foreach r,$(1),$(wildcard src/$(r)/*.c src/$(r)/*/*.c))
lib_src  := $(call room_src,base cluster collective fit job timeline read predict replay judge out ask)
cli_src  := $(call room_src,cli)
# Loadable: each is one object of its own, and knee runs without it.
load_src := src/reach/mpi.c src/reach/nccl.c
loadable := $(if $(filter 1,$(use_mpi)),$(B)/knee-mpi.so) $(if $(filter 1,$(use_cuda)),$(B)/knee-nccl.so)
# The agent runs inside other people's programs: an object of its own, which carries what it needs of the library.
live_src := $(filter-out src/live/live_pmpi.c,$(call room_src,live))
live_obj := $(live_src:%.c=$(B)/%.o)
agents   := $(B)/libknee_live.so $(if $(filter 1,$(use_mpi)),$(B)/libknee_live_mpi.so)
measure_src := $(filter-out $(load_src),$(call room_src,reach bench lab doctor))
gen_src  := $(B)/gen/cluster_presets.c $(B)/gen/models.c $(B)/gen/profiles.c $(B)/gen/nccl_variables.c
lib_obj  := $(lib_src:%.c=$(B)/%.o) $(gen_src:.c=.o)
cli_obj  := $(cli_src:%.c=$(B)/%.o)
measure_obj := $(measure_src:%.c=$(B)/%.o)
unit_src := $(wildcard tests/unit/*.c)
unit_bin := $(unit_src:tests/unit/%.c=$(B)/tests/%)

all: $(B)/knee $(if $(filter 1,$(use_page)),$(page)) $(B)/libknee.a $(B)/libknee.so $(B)/knee.1 $(B)/completion/knee.bash $(loadable) $(agents)

$(B)/gen/cluster_presets.c: tools/presets.awk data/gpus.csv data/links.csv data/cluster_presets.csv data/transports.csv \
    data/gpu_words.csv data/gpu_stand_ins.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=cluster/presets.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/models.c: tools/presets.awk data/models.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=job/models.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/profiles.c: tools/presets.awk data/profiles.csv data/constants.csv data/architectures.csv data/profile_rules.csv data/bands.csv \
    data/doubts.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=job/profile.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/nccl_variables.c: tools/presets.awk data/nccl_variables.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=judge/doctor/doctor_judge.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -MMD -MP $(CPPFLAGS) -c $< -o $@

$(B)/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -MMD -MP $(CPPFLAGS) -c $< -o $@

# Other flags, other objects: without this a build folder keeps what older flags made.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(STD) $(WARN) $(CFLAGS)' | cmp -s - $@ || printf '%s\n' '$(STD) $(WARN) $(CFLAGS)' > $@
$(lib_obj) $(cli_obj) $(measure_obj) $(live_obj): $(B)/flags
# The library works in threads with 64 KB of stack (tests/unit/test_guest.c). Sanitizers make frames larger.
ifneq ($(filter -O1 -O2 -O3 -Os,$(CFLAGS)),)
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
# private: else the prerequisites would take it over, and with them what stands in the file flags.
$(lib_obj): private override WARN += -Wframe-larger-than=16384
endif
endif
FORCE:

# ---- The page: the same core as WebAssembly, one file ----

wasm_flags = --target=wasm32-wasi -std=c17 -D_DEFAULT_SOURCE -ffp-contract=off -Oz -flto -mnontrapping-fptoint -msign-ext -mbulk-memory -DKNEE_JSON_ONLY=1 -Iinclude -Isrc
web_src   := web/core.c web/spans.c web/lean.c
# What web/lean.c stands in for.
page_leaves := src/read/run/torchtitan.c src/timeline/where.c src/predict/simulate/simulate.c src/read/trace/op_log.c src/replay/slowdown.c src/out/show_slowdown.c src/read/yaml.c src/read/cluster/cluster_read.c src/fit/fit.c src/ask/ask_perfetto.c src/ask/ask_commands.c src/ask/ask_diff_logs.c
wasm_obj  := $(patsubst %.c,build/wasm/%.o,$(filter-out $(page_leaves),$(lib_src)) $(web_src) $(patsubst $(B)/%,build/%,$(gen_src)))
build/wasm/%.o: %.c
	@mkdir -p $(@D)
	$(call say,WASM,$<)
	$(Q)$(CLANG) $(wasm_flags) -MMD -MP -c $< -o $@
build/core.wasm: $(wasm_obj)
	$(call say,LINK,$@)
	$(Q)$(CLANG) --target=wasm32-wasi -mexec-model=reactor -flto -Wl,--strip-all -Wl,--gc-sections \
	  -Wl,-z,stack-size=1048576 $^ -lm -o $@
	$(Q)if command -v wasm-opt >/dev/null; then wasm-opt --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int -Oz --converge $@ -o $@; fi
$(page): build/core.wasm tools/page.mjs $(wildcard web/*.js web/*.css web/*.html)
	$(call say,PAGE,$@)
	$(Q)node tools/page.mjs build/core.wasm $@
web: $(page)

ifeq ($(use_page),1)
$(B)/src/cli/page.o: override CPPFLAGS += -DKNEE_HAVE_PAGE=1 -DKNEE_PAGE='"$(page)"'
$(B)/src/cli/page.o: $(page)
endif

$(B)/libknee.a: $(lib_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/$(so_name): $(lib_obj)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(harden_l) $(LDFLAGS) -shared -Wl,-soname,$(so_name) -o $@ $^ $(LDLIBS)
$(B)/libknee.so: $(B)/$(so_name)
	$(Q)ln -sf $(so_name) $@

# Measuring reads clocks and talks to other processes: part of the program, not of the library.
$(B)/measure.a: $(measure_obj)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# MPI's own compiler command; an object each, so that a coverage build counts it beside the others.
mpi_cc = OMPI_CC='$(CC)' MPICH_CC='$(CC)' $(MPICC)
mpi_obj := $(B)/src/reach/mpi.o $(B)/src/live/live_pmpi.o
$(mpi_obj): $(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,MPI,$<)
	$(Q)$(mpi_cc) $(STD) $(WARN) $(CFLAGS) -fPIC -MMD -MP $(CPPFLAGS) -c $< -o $@
-include $(mpi_obj:.o=.d)

$(B)/knee-mpi.so: $(B)/src/reach/mpi.o
	$(call say,LINK,$@)
	$(Q)$(mpi_cc) $(CFLAGS) -shared $< -o $@ $(harden_l) $(LDFLAGS)

$(B)/knee-nccl.so: src/reach/nccl.c src/reach/runtime.h include/knee.h
	@mkdir -p $(@D)
	$(call say,CUDA,$@)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) $(CPPFLAGS) $(cuda_flags) -fPIC -shared $< -o $@ $(harden_l) $(LDFLAGS) $(cuda_libs)

# Never unloaded: NCCL closes a plugin while the agent's thread runs. Nothing of CUDA is linked.
live_link = -shared -Wl,-z,nodelete -Wl,--exclude-libs,ALL $(call takes,-Wl$(comma)--gc-sections)
live_libs = -lm -lpthread -ldl
$(B)/libknee_live.so: $(live_obj) $(B)/libknee.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(harden_l) $(LDFLAGS) $(live_link) -o $@ $^ $(live_libs)

$(B)/libknee_live_mpi.so: $(B)/src/live/live_pmpi.o $(live_obj) $(B)/libknee.a
	$(call say,LINK,$@)
	$(Q)$(mpi_cc) $(CFLAGS) $(harden_l) $(LDFLAGS) $(live_link) -o $@ $^ $(live_libs)

$(B)/knee: $(cli_obj) $(B)/measure.a $(B)/libknee.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(harden_exe) $(harden_l) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/knee.1: $(B)/knee
	$(Q)$(B)/knee man > $@

$(B)/completion/knee.bash: $(B)/knee
	@mkdir -p $(@D)
	$(Q)$(B)/knee completion bash > $@
	$(Q)$(B)/knee completion zsh > $(@D)/_knee
	$(Q)$(B)/knee completion fish > $(@D)/knee.fish

-include $(lib_obj:.o=.d) $(cli_obj:.o=.d) $(wasm_obj:.o=.d) $(measure_obj:.o=.d) $(live_obj:.o=.d)

# ---- Tests (./check runs them all and counts) ----

# The object is kept: a change of the library links tests anew, and only a change of what one includes compiles it.
$(B)/tests/unit/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(call say,TEST,$<)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -MMD -MP $(CPPFLAGS) -Itests/unit -c $< -o $@
$(B)/tests/%: $(B)/tests/unit/%.o $(B)/measure.a $(B)/libknee.a
	$(Q)$(CC) $(CFLAGS) $^ $(LDFLAGS) -lcmocka $(LDLIBS) -o $@
# The agent's own parts; what it leaves away, the test has from the library.
$(B)/tests/test_live: $(filter-out %/live_lean.o,$(live_obj))
$(B)/tests/test_live: LDFLAGS += $(B)/libknee.a
.SECONDARY: $(unit_bin:$(B)/tests/%=$(B)/tests/unit/%.o)
$(unit_bin:$(B)/tests/%=$(B)/tests/unit/%.o): $(B)/flags
-include $(unit_bin:$(B)/tests/%=$(B)/tests/unit/%.d)

unit: $(unit_bin)

$(B)/example: examples/predict.c include/knee.h $(B)/libknee.so
	$(CC) -std=c17 $(WARN) -Iinclude $< -o $@ $(B)/libknee.so -Wl,-rpath,'$$ORIGIN'
# The library alone, by its one header: tests/ask puts its answers beside the program's.
$(B)/ask: examples/ask.c include/knee.h $(B)/libknee.so
	$(Q)$(CC) -std=c17 $(WARN) -Iinclude $< -o $@ $(B)/libknee.so -Wl,-rpath,'$$ORIGIN'

# What tests/live plays into the agent: events of every version of NCCL's interface, and a stand-in for CUPTI.
$(B)/tests/live/%.so: tests/live/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -shared $< -o $@ -lpthread
$(B)/tests/live/%: tests/live/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -rdynamic $< -o $@ $(LDFLAGS) -lpthread -ldl -lm
$(B)/tests/live/mpi_job: tests/live/mpi_job.c
	@mkdir -p $(@D)
	$(Q)$(MPICC) $(STD) $(WARN) $(CFLAGS) $< -o $@
# The driver's name: who looks for it among what is loaded finds this.
$(B)/tests/live/gpu.so $(B)/tests/live/gpu_older.so: tests/live/gpu.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) $(if $(findstring older,$@),-DOLDER) -fPIC -shared -Wl,-soname,libcuda.so.1 $< -o $@
live_stand_ins = $(addprefix $(1)/tests/live/,play cupti.so gpu.so gpu_older.so)
live-tests: $(call live_stand_ins,$(B)) $(if $(filter 1,$(use_mpi)),$(B)/tests/live/mpi_job) $(agents)

# In the place of knee-mpi.so: forked processes, and calls that fail (tests/measure/wire).
$(B)/tests/wire/knee-mpi.so: tests/wire.c tests/place.h src/reach/local.c src/reach/runtime.h $(B)/measure.a $(B)/libknee.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) -D_GNU_SOURCE $(WARN) $(CFLAGS) $(CPPFLAGS) -fPIC -shared $< -o $@ -Wl,--exclude-libs,ALL $(B)/measure.a $(B)/libknee.a $(LDLIBS)

$(B)/failmalloc.so: tests/failmalloc.c tests/place.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 $(WARN) -O2 -fPIC -shared $< -o $@

$(B)/bench/%: bench/%.c $(B)/libknee.a
	@mkdir -p $(@D)
	$(CC) $(STD) $(WARN) $(CFLAGS) $(CPPFLAGS) $< $(B)/libknee.a $(LDLIBS) -o $@

$(B)/bench/measure: bench/measure.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) $< -o $@

$(B)/gen_trace $(B)/gen_rollcall: $(B)/%: tools/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) -Wno-format-nonliteral $(CFLAGS) $< -o $@

# What is doubled takes at most 2.5 times what it took: every reader and every command that takes its input in.
growth: all $(B)/bench/measure ; tests/growth $(B)/knee
# Every call that can fail fails, in every command: a long run.
faults: all $(B)/failmalloc.so ; tests/faults $(B)/knee --all

# watch, lab, bench and the live agent with random signals for an hour; SOAK_HOURS=0.1 for less.
SOAK_HOURS ?= 1
soak: all ; tests/soak $(B)/knee --hours $(SOAK_HOURS)

bench: $(B)/bench/closed $(B)/bench/collective $(B)/bench/plan all
	$(B)/bench/closed
	$(B)/bench/collective
	$(B)/bench/plan
	bench/try
	bench/trace
	bench/mpi-trace
	bench/mpi-validate

# One line each: the same tree, another compiler setting, its own folder.
SAN = CC='$(CLANG)' CFLAGS='-O1 -gline-tables-only -fno-omit-frame-pointer -fno-sanitize-recover=all
asan: ; $(MAKE) -s B=build/asan $(SAN) -fsanitize=address,undefined' all unit
msan: ; $(MAKE) -s B=build/msan YAML=0 ISAL=0 ZLIB=0 SQLITE=0 WASM=0 MPI=0 CUDA=0 BLAS=0 $(SAN) -O2 -fsanitize=memory' all unit
# What has threads, or several processes on shared memory: the library's calls at once, lab, bench, live, the program.
tsan_tests = test_guest test_lab test_bench test_live test_runtime test_stop
tsan: ; $(MAKE) -s B=build/tsan WASM=0 MPI=0 CUDA=0 BLAS=0 $(SAN) -fsanitize=thread' build/tsan/knee $(tsan_tests:%=build/tsan/tests/%)
# What ranks send each other over MPI, rings of live, traces of several ranks: the corpus, under MSan.
msan_corpus = share ranks live rollcall ras trace series lists peers
msan-corpus: ; $(MAKE) -s B=build/msan YAML=0 ISAL=0 ZLIB=0 SQLITE=0 WASM=0 MPI=0 CUDA=0 BLAS=0 $(SAN) -O2 -fsanitize=memory' $(msan_corpus:%=build/msan/replay/%)
	@for t in $(msan_corpus); do printf '%s: ' $$t; build/msan/replay/$$t tests/fuzz/seeds/$$t $$(ls -d tests/corpus/$$t 2>/dev/null) || exit 1; done
# The agent of live, with what stands in for NCCL and CUPTI (tests/measure/live, agent).
live_tests = $(1)/libknee_live.so $(1)/tests/live/play $(1)/tests/live/cupti.so
asan-live: ; $(MAKE) -s B=build/asan $(SAN) -fsanitize=address,undefined' $(call live_tests,build/asan)
tsan-live: ; $(MAKE) -s B=build/tsan WASM=0 MPI=0 CUDA=0 BLAS=0 $(SAN) -fsanitize=thread' $(call live_tests,build/tsan)
# Another C library, and nothing that need not be there; the page is shared.
musl: ; $(MAKE) -s B=build/musl CC='$(MUSL)' CFLAGS='-O0' YAML=0 ISAL=0 ZLIB=0 SQLITE=0 MPI=0 CUDA=0 BLAS=0 all
coverage: ; $(MAKE) -s B=build/cov CFLAGS='-O0 --coverage -include tests/cov_exit.h' CUDA=0 all unit replay-build build/cov/failmalloc.so build/cov/tests/wire/knee-mpi.so live-tests && tools/coverage build/cov

# HOURS=1: all targets in turn, an equal part of it each; tools/fuzz prints executions and rates.
HOURS ?=
FUZZ_SECONDS ?= 20
fuzz_targets := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz_flags = -O2 -g -DKNEE_WINDOW_BYTES=2048 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# What bytes are compared with guides the search where they are read; behind that, and in distances between words, it costs
# half of the time.
fuzz_compares = $(if $(filter src/base/% src/read/%,$(filter-out src/base/spell.c,$(1))),,-fno-sanitize-coverage=trace-cmp)
fuzz_obj := $(patsubst %.c,$(B)/fuzz/obj/%.o,$(lib_src) $(gen_src))
$(B)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(STD) $(fuzz_flags) $(call fuzz_compares,$<) -MMD -MP $(CPPFLAGS) -c $< -o $@
$(fuzz_obj): $(B)/fuzz/flags
$(B)/fuzz/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(STD) $(fuzz_flags)' | cmp -s - $@ || printf '%s\n' '$(STD) $(fuzz_flags)' > $@
$(B)/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/cheaper.c tests/fuzz/seldom.h $(fuzz_obj)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)
	$(Q)$(CLANG) $(STD) $(fuzz_flags) -fsanitize=fuzzer $(CPPFLAGS) $(filter-out %.h,$^) $(FUZZ_LIBS) $(LDLIBS) -o $@
-include $(fuzz_obj:.o=.d)
fuzz-build: $(addprefix $(B)/fuzz/,$(fuzz_targets))
fuzz-%: $(B)/fuzz/%
	@mkdir -p $(B)/corpus/$*
	$(B)/fuzz/$* -max_total_time=$(FUZZ_SECONDS) -entropic=0 -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 \
	  -artifact_prefix=$(B)/fuzz/ -verbosity=0 $(B)/corpus/$* $(wildcard tests/corpus/$*) tests/fuzz/seeds/$*
ifeq ($(HOURS),)
fuzz: $(addprefix fuzz-,$(fuzz_targets))
else
fuzz: fuzz-build ; tools/fuzz $(B) $(HOURS) $(fuzz_targets)
endif
# The corpus and the seeds, without libFuzzer: each target is a program that takes files, and does all it can with each.
$(B)/replay/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c tests/fuzz/seldom.h $(B)/libknee.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -DKNEE_FUZZ_ALL=1 $(CPPFLAGS) $< tests/fuzz/replay.c -Wl,--wrap=realloc,--wrap=abort $(B)/libknee.a $(LDLIBS) -o $@
replay-build: $(addprefix $(B)/replay/,$(fuzz_targets))
corpus: replay-build
	@for t in $(fuzz_targets); do printf '%s: ' $$t; $(B)/replay/$$t --memory 4 tests/fuzz/seeds/$$t $$(ls -d tests/corpus/$$t 2>/dev/null) || exit 1; done
# Every reader without memory, at every place: where the corpus is, under ASan.
corpus-memory: ; $(MAKE) -s B=build/asan $(SAN) -fsanitize=address,undefined' replay-build
	@for t in $(fuzz_targets); do printf '%s: ' $$t; ASAN_OPTIONS=detect_leaks=0 build/asan/replay/$$t --memory 100 tests/fuzz/seeds/$$t $$(ls -d tests/corpus/$$t 2>/dev/null) || exit 1; done

lint: all tidy style
	tools/rooms $(B)
	tools/options $(B)/knee
# What takes seconds: ./check quick does it too. cppcheck goes only through what changed.
style:
	@clang-format --dry-run -Werror $(wildcard include/*.h src/*/*.[ch] src/*/*/*.[ch] tests/*.c tests/*/*.[ch] examples/*.c bench/*.c tools/*.c web/*.c)
	@mkdir -p $(B)/cppcheck
	@cppcheck --quiet -j$$(nproc) --cppcheck-build-dir=$(B)/cppcheck --error-exitcode=1 --std=c11 --inline-suppr --enable=warning,performance,portability \
	  --suppress=missingIncludeSystem --suppress=invalidPointerCast -Iinclude -Isrc -DKNEE_HAVE_YAML=1 -DKNEE_HAVE_ZLIB=1 -DKNEE_HAVE_SQLITE=1 src examples bench web

# clang-tidy, again only for what was compiled again: an object is newer when its source or a header is. TIDY_NODES: how far its
# analyzer follows a function; clang's own 225,000 take four times as long as the 50,000 of ./check.
TIDY_NODES = 225000
tidy_depth = -Xclang -analyzer-config -Xclang max-nodes=$(TIDY_NODES)
tidy_src := $(lib_src) $(measure_src) $(live_src) $(cli_src)
$(B)/tidy/%.ok: $(B)/%.o .clang-tidy
	@mkdir -p $(@D)
	$(call say,TIDY,$*.c)
	@clang-tidy --quiet $*.c -- $(STD) $(CPPFLAGS) $(tidy_depth) 2>/dev/null
	@touch $@
$(B)/tidy/examples/predict.ok: examples/predict.c include/knee.h .clang-tidy
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(STD) $(CPPFLAGS) $(tidy_depth) 2>/dev/null
	@touch $@
$(B)/tidy/web/%.ok: build/wasm/web/%.o .clang-tidy
	@mkdir -p $(@D)
	@clang-tidy --quiet web/$*.c -- $(wasm_flags) $(tidy_depth) 2>/dev/null
	@touch $@
tidy: $(tidy_src:%.c=$(B)/tidy/%.ok) $(B)/tidy/examples/predict.ok $(if $(filter 1,$(use_page)),$(web_src:%.c=$(B)/tidy/%.ok))

format: ; @clang-format -i $(wildcard include/*.h src/*/*.[ch] src/*/*/*.[ch] tests/*.c tests/*/*.[ch] examples/*.c bench/*.c tools/*.c web/*.c)

docs: $(B)/knee
	awk -f tools/apidoc.awk include/knee.h > docs/api.md
	for f in README.md docs/*.md tests/cli/*.txt; do tests/transcript --update $$f; done

# The constants of the operation model, fitted anew to the published runs beside the repository.
DATA ?= ../shared/data
$(B)/calibrate: tools/calibrate.c $(B)/libknee.a
	$(CC) $(STD) $(WARN) $(CFLAGS) $(CPPFLAGS) $< $(B)/libknee.a $(LDLIBS) -o $@
calibrate: $(B)/calibrate
	gzip -dc $(DATA)/published/published_single_node.csv.gz > $(B)/single_node.csv
	awk 'NR == 1 || NR % 2 == 0' $(DATA)/published/nanotron_dev.csv > $(B)/sweep.csv
	$(B)/calibrate data/constants.csv $(DATA)/published/published_dev.csv $(B)/single_node.csv@0.03 \
	  $(B)/sweep.csv@0.1 $(DATA)/h200/steps.jsonl@0.5@h200 > $(B)/constants.csv
	mv $(B)/constants.csv data/constants.csv
	$(MAKE) -s $(B)/calibrate
	$(B)/calibrate --bands $(DATA)/published/published_dev.csv > $(B)/bands.csv
	mv $(B)/bands.csv data/bands.csv
	tools/dp-curves --runs $(DATA) > $(B)/bert.csv
	$(B)/calibrate --doubts $(DATA)/published/published_dev.csv $(B)/bert.csv@0 > $(B)/doubts.csv
	mv $(B)/doubts.csv data/doubts.csv

test: ; ./check

# ---- Install ----
# mode, what, where: everything that is installed, so that uninstall can take it away again.
man_dir = $(PREFIX)/share/man/man1
bash_dir = $(PREFIX)/share/bash-completion/completions
zsh_dir = $(PREFIX)/share/zsh/site-functions
fish_dir = $(PREFIX)/share/fish/vendor_completions.d
installs = 755:$(B)/knee:$(PREFIX)/bin/knee \
  $(foreach h,$(wildcard include/*.h),644:$(h):$(PREFIX)/include/$(notdir $(h))) \
  644:$(B)/libknee.a:$(LIBDIR)/libknee.a 755:$(B)/$(so_name):$(LIBDIR)/$(so_name) \
  $(foreach o,$(loadable) $(agents),755:$(o):$(LIBDIR)/knee/$(notdir $(o))) \
  644:$(B)/knee.1:$(man_dir)/knee.1 644:$(B)/completion/knee.bash:$(bash_dir)/knee \
  644:$(B)/completion/_knee:$(zsh_dir)/_knee 644:$(B)/completion/knee.fish:$(fish_dir)/knee.fish
install: all
	@set -e; for row in $(installs); do mode=$${row%%:*} row=$${row#*:}; \
	  install -D -m$$mode "$${row%%:*}" "$(DESTDIR)$${row#*:}"; done
	@ln -sf $(so_name) $(DESTDIR)$(LIBDIR)/libknee.so
	@mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' 'Name: knee' \
	  'Description: where the next worker of a training job stops paying, why, and what to change' \
	  'Version: $(version)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lknee' \
	  'Libs.private: $(strip $(LDLIBS))' > $(DESTDIR)$(LIBDIR)/pkgconfig/knee.pc
	$(call say,PUT,$(DESTDIR)$(PREFIX))
# Also what an earlier build put there and this one does not have.
uninstall:
	@for row in $(installs); do rm -f "$(DESTDIR)$${row##*:}"; done
	@rm -f $(DESTDIR)$(LIBDIR)/libknee.so $(DESTDIR)$(LIBDIR)/pkgconfig/knee.pc \
	  $(DESTDIR)$(LIBDIR)/knee/knee-mpi.so $(DESTDIR)$(LIBDIR)/knee/knee-nccl.so \
	  $(DESTDIR)$(LIBDIR)/knee/libknee_live.so $(DESTDIR)$(LIBDIR)/knee/libknee_live_mpi.so
	@rmdir $(DESTDIR)$(LIBDIR)/knee 2>/dev/null || true
clean: ; rm -rf build

# ---- To hand on ----
# SOURCE_DATE_EPOCH makes them the same bytes from the same tree; the newest commit's date where nothing is said.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)
deb: all
	packaging/deb $(B)/deb
static: ; packaging/static
packages-test: all ; tests/packages $(B) bookworm trixie
# The library for the wheel has libyaml inside and needs only the C library: Python unpacks .gz, and opens the files.
wheel:
	@$(MAKE) -s B=$(B)/wheel CFLAGS='-O2' YAML=1 ISAL=0 ZLIB=0 SQLITE=0 LDFLAGS='-s' LDLIBS='-l:libyaml.a' $(B)/wheel/$(so_name)
	@python3 tools/wheel.py $(B)/wheel/$(so_name) $(B)
dist:
	@git archive --format=tar --prefix=knee-$(version)/ HEAD | gzip -9n > $(B)/knee-$(version).tar.gz
	@echo "$(B)/knee-$(version).tar.gz: $$(sha256sum < $(B)/knee-$(version).tar.gz | cut -c1-16)"

.PHONY: FORCE all growth faults soak corpus corpus-memory replay-build web unit live-tests fuzz-build calibrate bench asan msan msan-corpus tsan musl coverage fuzz lint style tidy format docs test install uninstall clean \
  deb static packages-test wheel dist asan-live tsan-live
.DELETE_ON_ERROR:
