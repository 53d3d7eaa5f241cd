/* SPDX-License-Identifier: MIT */
/* Which of the formats that are read as a whole a file is in, and what they share. */
#include "read/trace/image.h"

#include "base/error.h"
#include "base/text.h"
#include "read/file_kinds.h"
#include "read/trace/trace_json.h"

#include <string.h>

/* By the names of kinds (read/file_kinds.h). */
static const struct format {
    const char *kind, *name;
    knee_status (*read)(struct knee_image *image, struct knee_err *err);
} formats[] = {
    {"xplane", "xplane", knee_xplane_read},
    {"chakra", "chakra", knee_chakra_read},
    {"chakra json", "chakra", knee_chakra_json_read},
    {"rocprofv3", "rocprofv3", knee_rocprof_csv_read},
    {"rocprofv3 json", "rocprofv3", knee_rocprof_json_read},
};

static const struct format *format_of(const char *file, const char *head, size_t length)
{
    const struct knee_file_kind *kind = knee_file_kind_of(file, head, length);
    if (!kind || kind->reader != KNEE_READ_IMAGE)
        return NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].kind, kind->name) == 0)
            return &formats[i];
    return NULL; /* unreachable: every kind that is read as a whole has a row */
}

void knee_image_span(struct knee_image *image, struct knee_slice name, struct knee_gpu_work work)
{
    image->trace->losses[KNEE_REPAIR_DURATION].count += work.end_ns < work.start_ns;
    work.end_ns = work.end_ns < work.start_ns ? work.start_ns : work.end_ns;
    image->trace->events++;
    if (!knee_time_is_good(work.start_ns, work.end_ns)) {
        image->trace->losses[KNEE_LOSS_TIME].count++;
        return;
    }
    if (name.length == 0)
        name = knee_slice_of("unnamed kernel");
    work.name = knee_builder_name(image->builder, name.at, name.length);
    knee_builder_span(image->builder, &work);
}

static knee_status read_with(const struct format *format, struct knee_image *image,
                             struct knee_err *err)
{
    struct knee_trace *trace = image->trace;
    knee_status status = format->read(image, err);
    if (!status)
        status = knee_builder_finish(image->builder, trace, err);
    if (status)
        return status;
    trace->format = format->name;
    if (trace->rank < 0)
        trace->rank = knee_rank_from_name(trace->file);
    return KNEE_OK;
}

knee_status knee_image_read(struct knee_file_bytes in, const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err)
{
    static const struct knee_trace_options plain = {0};
    const struct format *format = format_of(in.name, in.data, in.length);
    struct knee_trace trace = {.rank = -1,
                               .world_size = -1,
                               .first_step = -1,
                               .last_step = -1,
                               .alloc = alloc,
                               .bytes = in.length};
    struct knee_image image = {.file = in.name,
                               .data = in.data,
                               .length = in.length,
                               .options = options ? options : &plain,
                               .alloc = alloc,
                               .trace = &trace};
    size_t name_size = strlen(in.name) + 1;
    knee_status status = KNEE_OK;
    trace.file = knee_resize(alloc, NULL, name_size);
    image.builder = knee_builder_new(image.options, alloc);
    if (!trace.file || !image.builder)
        status = knee_fail(err, KNEE_SYSTEM, in.name, "out of memory");
    else
        memcpy(trace.file, in.name, name_size);
    if (!status)
        status = format
                     ? read_with(format, &image, err)
                     : knee_fail(err, KNEE_INPUT, in.name, "not a trace that is read as a whole");
    knee_builder_free(image.builder);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}
