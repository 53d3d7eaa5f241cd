/* SPDX-License-Identifier: MIT */
/* Formats that are read from memory as a whole: a table of them, one file each. */
#ifndef KNEE_READ_TRACE_IMAGE_H
#define KNEE_READ_TRACE_IMAGE_H

#include "base/slice.h"
#include "timeline/builder.h"

/* A file being read. */
struct knee_image {
    const char *file;
    char *data; /* may be changed */
    size_t length;
    const struct knee_trace_options *options;
    const struct knee_alloc *alloc;
    struct knee_builder *builder;
    struct knee_trace *trace;
};

/* Each puts what it finds into the builder and the trace. KNEE_INPUT: the file cannot be used. */
knee_status knee_xplane_read(struct knee_image *image, struct knee_err *err);
knee_status knee_rocprof_json_read(struct knee_image *image, struct knee_err *err);
knee_status knee_rocprof_csv_read(struct knee_image *image, struct knee_err *err);
knee_status knee_chakra_read(struct knee_image *image, struct knee_err *err);
knee_status knee_chakra_json_read(struct knee_image *image, struct knee_err *err);

/* Work with checked times; what cannot be used is counted. */
void knee_image_span(struct knee_image *image, struct knee_slice name, struct knee_gpu_work work);

#endif
