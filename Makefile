# SPDX-License-Identifier: MIT
# knee. Targets: all (default), web, clean; tests/Makefile: unit, test, lint, asan, msan, tsan, musl, coverage, fuzz, corpus, bench,
# docs; packaging/Makefile: install, uninstall, deb, static, wheel, dist.
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
# Hidden: libknee.so shows what include/knee.h declares (tools/exports), nothing else.
STD      = -std=c17 -D_DEFAULT_SOURCE -ffp-contract=off -fvisibility=hidden $(harden_c)
# override: what is given on the command line stands beside these, not in their place.
override CPPFLAGS += -Iinclude -Isrc
# make V=1 shows the commands.
Q = $(if $(V),,@)
say = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),@:,@printf '  %-5s %s\n' $(1) $(2))

# What there is: tools/probe asks the compiler once and keeps its answers in $(B)/probes.mk. What only removes needs none of it.
hash := \#
ifneq ($(filter-out clean format dist,$(or $(MAKECMDGOALS),all)),)
probe := $(shell tools/probe '$(B)' '$(CC)' '$(CLANG)' '$(MPICC)' '$(CUDA_HOME)' 2>&1)
$(if $(probe),$(error tools/probe: $(probe)))
include $(B)/probes.mk
endif
# use NAME, has_NAME, what is missing, how to get it: NAME=auto|0|1
use = $(if $(filter 0,$($(1))),0,$(if $(filter 10,$($(1))$($(2))),$(error $(1)=1 but $(3) is missing: $(4)),$($(2))))
use_yaml   := $(call use,YAML,has_yaml,yaml.h,apt-get install libyaml-dev)
use_isal   := $(call use,ISAL,has_isal,isa-l/igzip_lib.h,apt-get install libisal-dev)
use_zlib   := $(call use,ZLIB,has_zlib,zlib.h,apt-get install zlib1g-dev)
use_sqlite := $(call use,SQLITE,has_sqlite,sqlite3.h,apt-get install libsqlite3-dev)
use_blas   := $(call use,BLAS,has_blas,cblas.h,apt-get install libopenblas-dev)
override CPPFLAGS += -DKNEE_HAVE_YAML=$(use_yaml) -DKNEE_HAVE_ISAL=$(use_isal) -DKNEE_HAVE_ZLIB=$(use_zlib) \
            -DKNEE_HAVE_SQLITE=$(use_sqlite) -DKNEE_HAVE_BLAS=$(use_blas)
override LDLIBS += $(if $(filter 1,$(use_yaml)),-lyaml) \
            $(if $(filter 1,$(use_isal)),-lisal,$(if $(filter 1,$(use_zlib)),-lz)) \
            $(if $(filter 1,$(use_sqlite)),-lsqlite3) -lm -lpthread -ldl

# ---- Hardening and the version ----
# HARDEN=0 leaves it away. Each flag only where compiler and linker know it; checks of the C library's calls only
# where there is optimisation, which they need, and no sanitizer, which they disturb.
HARDEN ?= auto
ifneq ($(HARDEN),0)
harden_c := $(takes_c)
harden_l := $(takes_l)
harden_exe := $(takes_exe)
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
harden_c += $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
endif
# One place says the version: include/knee.h. The number in the library's name is the major one.
version_of = $(shell sed -n 's/^$(hash)define KNEE_VERSION_$(1) *//p' include/knee.h)
so_major := $(call version_of,MAJOR)
version  := $(so_major).$(call version_of,MINOR).$(call version_of,PATCH)
so_name  := libknee.so.$(so_major)

# MPI has its own compiler command. Code that needs MPI is a separate object, loaded only by runs that use MPI.
use_mpi := $(call use,MPI,has_mpi,$(MPICC),apt-get install libopenmpi-dev openmpi-bin)
# CUDA with NCCL likewise; the compiler stays the same, for there is no device code in knee. RPATH=0: found where the
# system looks, not where it was at build time.
cuda_flags = -isystem $(CUDA_HOME)/include
cuda_libs  = $(foreach d,$(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib),-L$(d) $(if $(filter 0,$(RPATH)),,-Wl,-rpath,$(d))) -lnccl -lcudart
use_cuda := $(call use,CUDA,has_cuda,cuda_runtime_api.h or nccl.h in $(CUDA_HOME)/include,install CUDA and NCCL or set CUDA_HOME)

# The page: what it takes, and the page itself, which all builds share.
use_page := $(call use,WASM,can_page,what the page takes,tools/setup web installs it)
page := build/knee.html

# A room may have rooms inside.
room_src  = $(foreach r,$(1),$(wildcard src/$(r)/*.c src/$(r)/*/*.c))
lib_src  := $(call room_src,base cluster collective fit job timeline read predict replay judge say out ask)
cli_src  := $(call room_src,cli)
# Loadable: each file becomes one separate object; knee runs without it.
load_src := src/reach/mpi.c src/reach/nccl.c
loadable := $(if $(filter 1,$(use_mpi)),$(B)/knee-mpi.so) $(if $(filter 1,$(use_cuda)),$(B)/knee-nccl.so)
# The agent runs inside other people's programs: a separate object that contains the parts of the library it needs.
live_src := $(filter-out src/live/live_pmpi.c,$(call room_src,live))
live_obj := $(live_src:%.c=$(B)/%.o)
agents   := $(B)/libknee_live.so $(if $(filter 1,$(use_mpi)),$(B)/libknee_live_mpi.so)
measure_src := $(filter-out $(load_src),$(call room_src,reach bench lab doctor))
gen_src  := $(B)/gen/cluster_presets.c $(B)/gen/models.c $(B)/gen/profiles.c $(B)/gen/published_runs.c $(B)/gen/power.c $(B)/gen/doctor_tables.c $(B)/gen/host_tables.c $(B)/gen/hang_kinds.c $(B)/gen/job_words.c $(B)/gen/train_tables.c $(B)/gen/run_columns.c $(B)/gen/import_names.c $(B)/gen/file_kinds.c $(B)/gen/unit_spellings.c
lib_obj  := $(lib_src:%.c=$(B)/%.o) $(gen_src:.c=.o)
cli_obj  := $(cli_src:%.c=$(B)/%.o)
measure_obj := $(measure_src:%.c=$(B)/%.o)

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

$(B)/gen/published_runs.c: tools/presets.awk data/published_runs.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=predict/plan/published_runs.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/power.c: tools/presets.awk data/power.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=predict/goodput/energy.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/doctor_tables.c: tools/presets.awk data/nccl_variables.csv data/other_variables.csv data/doctor_rules.csv data/xids.csv data/alike_facts.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=judge/doctor/doctor_judge.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/hang_kinds.c: tools/presets.awk data/hang_kinds.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=judge/hang/hang.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/job_words.c: tools/presets.awk data/job_triggers.csv data/failure_lines.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=read/hang/job_lines.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/train_tables.c: tools/presets.awk data/train_keys.csv data/train_facts.csv data/train_fields.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=read/run/train_log.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/file_kinds.c: tools/presets.awk data/file_kinds.csv
	@mkdir -p $(@D)
	$(Q)awk -v header="read/file_kinds.h read/trace/roll_readers.h knee_scale.h" -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/unit_spellings.c: tools/presets.awk data/unit_spellings.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=base/number.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/run_columns.c: tools/presets.awk data/run_columns.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=read/run/runs_row.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/import_names.c: tools/presets.awk data/import_names.csv data/model_families.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=read/run/import.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/gen/host_tables.c: tools/presets.awk data/nccl_log_patterns.csv data/smi_fields.csv data/host_paths.csv data/kernel_lines.csv
	@mkdir -p $(@D)
	$(Q)awk -v header=read/host/host_read.h -f $^ > $@.tmp && mv $@.tmp $@

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -MMD -MP $(CPPFLAGS) -c $< -o $@

$(B)/gen/%.o: $(B)/gen/%.c
	$(call say,CC,$<)
	$(Q)$(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -MMD -MP $(CPPFLAGS) -c $< -o $@

# Changed flags or libraries must rebuild all objects; without this stamp a build folder keeps the old ones. Expanded
# here because some targets set their own flags.
flags := $(STD) $(WARN) $(CFLAGS) $(CPPFLAGS) $(LDLIBS)
fuzz_stamp := $(STD) $(CPPFLAGS)
# Several makes may run at once: each writes its own stamp before comparing it.
stamp_id := $(shell echo $$PPID)
keep_stamp = $(shell mkdir -p $(@D))$(file >$@.$(stamp_id).new,$(1))@if cmp -s $@.$(stamp_id).new $@; then rm -f $@.$(stamp_id).new; else mv $@.$(stamp_id).new $@; fi
$(B)/flags: FORCE
	$(call keep_stamp,$(flags))
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

wasm_flags = --target=wasm32-wasi -std=c17 -D_DEFAULT_SOURCE -ffp-contract=off -Oz -flto -mnontrapping-fptoint -msign-ext -mbulk-memory -fno-builtin-fmin -fno-builtin-fmax -DKNEE_JSON_ONLY=1 -Iinclude -Isrc
web_src   := web/core.c web/lanes.c web/spans.c web/lean.c web/heap.c web/math.c
# What web/lean.c stands in for.
page_leaves := src/read/run/torchtitan.c src/timeline/where.c src/predict/simulate/simulate.c src/read/trace/op_log.c src/read/host/known_paths.c src/read/host/lspci.c src/replay/slowdown.c src/say/say_slowdown.c src/say/say_where.c src/read/yaml.c src/read/cluster/cluster_read.c src/fit/fit.c src/ask/ask_commands.c src/ask/ask_diff_logs.c src/read/run/sacct.c src/judge/sched_account.c src/say/say_jobs.c src/predict/plan/published_runs.c src/read/hang/text_layout.c src/judge/idle_gaps.c src/judge/doctor/site_rules.c src/judge/doctor/alike.c src/judge/doctor/pci_rules.c src/read/log/log_csv.c
# What -Oz runs, less what makes the packed page larger: it cuts zeros out of the data (11 KB) and sorts functions by their use.
wasm_tidy := $(patsubst %,--%,dce remove-unused-names remove-unused-brs optimize-instructions precompute-propagate simplify-locals-nostructure \
  vacuum remove-unused-brs coalesce-locals simplify-locals vacuum coalesce-locals reorder-locals vacuum merge-blocks remove-unused-brs \
  remove-unused-names merge-blocks precompute-propagate optimize-instructions rse vacuum)
wasm_passes := --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int --shrink-level=2 --optimize-level=2 --low-memory-unused \
  --duplicate-function-elimination --inlining-optimizing --flatten --rereloop $(wasm_tidy) $(wasm_tidy) --optimize-added-constants-propagate --dae-optimizing \
  --duplicate-function-elimination $(patsubst %,--%,optimize-instructions simplify-locals coalesce-locals reorder-locals remove-unused-brs vacuum) \
  --remove-unused-module-elements
wasm_obj  := $(patsubst %.c,build/wasm/%.o,$(filter-out $(page_leaves),$(lib_src)) $(web_src) $(patsubst $(B)/%,build/%,$(gen_src)))
build/wasm/%.o: %.c
	@mkdir -p $(@D)
	$(call say,WASM,$<)
	$(Q)$(CLANG) $(wasm_flags) -MMD -MP -c $< -o $@
build/core.wasm: $(wasm_obj)
	$(call say,LINK,$@)
	$(Q)$(CLANG) --target=wasm32-wasi -mexec-model=reactor -flto -Wl,--strip-all -Wl,--gc-sections \
	  -Wl,-z,stack-size=1048576 $^ -lm -o $@
	$(Q)if command -v wasm-opt >/dev/null; then wasm-opt $(wasm_passes) $@ -o $@; fi
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
live_link = -shared -Wl,-z,nodelete -Wl,--exclude-libs,ALL $(takes_gc)
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

clean: ; rm -rf build

include tests/Makefile packaging/Makefile

.PHONY: FORCE all growth corpora faults soak corpus corpus-memory replay-build web unit live-tests fuzz-build smoke calibrate bench asan msan msan-corpus tsan musl coverage fuzz lint style tidy format docs test install uninstall clean \
  deb static packages-test wheel dist asan-live tsan-live
.DELETE_ON_ERROR:
