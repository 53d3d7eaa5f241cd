/* SPDX-License-Identifier: MIT */
/* What a piece of GPU work is, by its name. */
#ifndef KNEE_TIMELINE_KINDS_H
#define KNEE_TIMELINE_KINDS_H

#include "collective/collective_op.h"
#include "knee_timeline.h"

struct knee_kernel_facts {
    enum knee_span_kind kind;
    enum knee_op op;
    const char *algorithm, *protocol, *dtype; /* "" when the name does not say */
};

/* From the name of a kernel. The options' patterns come first; options may be NULL. */
struct knee_kernel_facts knee_kernel_facts(const char *name,
                                           const struct knee_trace_options *options);

/* Bytes of one element, 0 when the type is not known: "Float", "bf16", "Float8_e4m3fn" ... */
int knee_dtype_bytes(const char *name, size_t length);

/* Does every member need data of every other before it can end? Then the last to come decides. */
bool knee_op_is_barrier(enum knee_op op);

/* What a kernel does, by its name. */
enum knee_kernel_kind knee_kernel_kind_of(const char *name);
/* The same, looked up once: *known is 0 before that. */
static inline enum knee_kernel_kind knee_known_kind(const char *name, unsigned char *known)
{
    if (!*known)
        *known = (unsigned char)(1 + knee_kernel_kind_of(name));
    return (enum knee_kernel_kind)(*known - 1);
}
bool knee_kernel_is_plain(const char *name);   /* a 32-bit product without tensor cores */
bool knee_kernel_is_double(const char *name);  /* a product of 64-bit numbers */
bool knee_kernel_is_wide(const char *name);    /* 32-bit numbers on tensor cores */
bool knee_kernel_is_softmax(const char *name); /* of unfused attention; not a loss */

/* What a copy's name says of where it goes: "Memcpy HtoD (Pinned -> Device)". */
enum knee_copy_kind knee_copy_kind_of(const char *name);

/* Case-insensitive search. */
bool knee_has_word(const char *text, const char *word);

#endif
