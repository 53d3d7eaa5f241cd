/* SPDX-License-Identifier: MIT */
/*
 * Collects the events of one file, in any order, and makes a struct knee_trace of them: names
 * interned, spans sorted, each kernel joined with the call that launched it and put into its step.
 * Every reader, and whoever makes up a timeline, goes through here. When memory runs out, `failed`
 * sticks and knee_builder_finish() says so.
 */
#ifndef KNEE_TIMELINE_BUILDER_H
#define KNEE_TIMELINE_BUILDER_H

#include "timeline/kinds.h"
#include "timeline/marks.h"

#define KNEE_NO_CORRELATION UINT64_MAX
#define KNEE_NO_NAME        UINT32_MAX

struct knee_builder;

struct knee_builder *knee_builder_new(const struct knee_trace_options *options,
                                      const struct knee_alloc *alloc); /* NULL: no memory */
void knee_builder_free(struct knee_builder *builder);

/* The row of a name that is kept once; KNEE_NO_NAME when memory ran out. */
uint32_t knee_builder_name(struct knee_builder *builder, const char *name, size_t length);

/* What is known of a collective call beside its kernel's name. -1 and 0 are "not known". */
struct knee_call_facts {
    enum knee_op op;
    int64_t in_elements, out_elements, group_size, sequence, bytes;
    int dtype_bytes;
    uint32_t group, description, members; /* names + 1 */
    int64_t peer;                         /* of a send or receive, in its group */
    bool sends;
};
#define KNEE_CALL_UNKNOWN                                                                          \
    {                                                                                              \
        KNEE_OP_UNKNOWN, -1, -1, -1, -1, -1, 0, 0, 0, 0, -1, false                                 \
    }

/* A kernel or copy. A copy stays one unless its name says that it goes to another GPU. */
struct knee_gpu_work {
    int64_t device; /* any number that names it */
    int64_t start_ns, end_ns;
    uint32_t name; /* row */
    int32_t stream;
    uint64_t correlation;
    bool copy;
    const struct knee_call_facts *facts; /* may be NULL */
};
void knee_builder_span(struct knee_builder *builder, const struct knee_gpu_work *work);

/* A host call that hands work to the GPU. */
void knee_builder_launch(struct knee_builder *builder, int64_t start_ns, int64_t end_ns,
                         int64_t thread, uint64_t correlation);

/* A host operation that describes the collective launched inside it. */
void knee_builder_comm_op(struct knee_builder *builder, int64_t start_ns, int64_t end_ns,
                          int64_t thread, const struct knee_call_facts *facts);

/* Adds a host event that GPU work depends on. For a launch, call knee_builder_launch() right after
 * it. */
void knee_builder_host(struct knee_builder *builder, int64_t start_ns, int64_t end_ns,
                       int64_t thread, enum knee_host_kind kind, uint32_t name);

/* Sets the autograd sequence number of the host event that was added last. */
void knee_builder_sequence(struct knee_builder *builder, int64_t sequence);

/* In how many blocks the kernel of this correlation runs. */
void knee_builder_grid(struct knee_builder *builder, uint64_t correlation, int64_t blocks);

/* A product or attention whose shape is known; its kernels are found by their launches. */
void knee_builder_product(struct knee_builder *builder, const struct knee_product *product);

/* How much the copy of this correlation moves. */
void knee_builder_copy(struct knee_builder *builder, uint64_t correlation, int64_t bytes);

/* The same for a sum over all copies of its kind, in the whole file. */
void knee_builder_copied(struct knee_builder *builder, uint32_t name, int64_t bytes,
                         int64_t duration_ns);

/* What the host's side says of the recording (see struct knee_trace). */
void knee_builder_long_launch(struct knee_builder *builder, int64_t start_ns, int64_t end_ns);
void knee_builder_long_call(struct knee_builder *builder, int64_t start_ns, int64_t end_ns,
                            int64_t thread, enum knee_host_kind kind, uint32_t name);
void knee_builder_capture(struct knee_builder *builder);
void knee_builder_operation(struct knee_builder *builder);
void knee_builder_backward(struct knee_builder *builder);

/* A training step on the host, as the profiler marks it. The second one says in which process it
 * stands (-1: not known), who marked it, and the name + 1 of the optimizer whose step it is. */
void knee_builder_step(struct knee_builder *builder, int64_t start_ns, int64_t end_ns,
                       int64_t number);
void knee_builder_step_of(struct knee_builder *builder, const struct knee_raw_mark *step);
/* Waiting for a batch; `ahead`: other processes were loading it during the step. */
void knee_builder_load(struct knee_builder *builder, int64_t process, int64_t start_ns,
                       int64_t end_ns, bool ahead);

/* Fills ranks, steps, loads and names of *out and counts duplicates. Device keys become rank
 * numbers when there are several. The builder is empty afterwards. */
knee_status knee_builder_finish(struct knee_builder *builder, struct knee_trace *out,
                                struct knee_err *err);

#endif
