/* SPDX-License-Identifier: MIT */
/* Which of the formats that are read as a whole a file is in, and what they share. */
#include "read/trace/image.h"

#include "base/error.h"
#include "base/text.h"
#include "read/trace/trace_json.h"

#include <string.h>

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

static bool has(const char *head, size_t length, const char *word)
{
    return knee_slice_has((struct knee_slice){head, length}, word);
}

static bool named_xplane(const char *file, const char *head, size_t length)
{
    (void)head, (void)length;
    return ends_with(file, ".xplane.pb") || ends_with(file, ".xplane.pb.gz");
}

static bool named_chakra(const char *file, const char *head, size_t length)
{
    (void)head, (void)length;
    return ends_with(file, ".et") || ends_with(file, ".et.gz");
}

static bool is_rocprof_json(const char *file, const char *head, size_t length)
{
    (void)file;
    return has(head, length, "\"rocprofiler-sdk-tool\"");
}

static bool is_chakra_json(const char *file, const char *head, size_t length)
{
    (void)file;
    return has(head, length, "\"workload_graph\"");
}

static bool is_rocprof_csv(const char *file, const char *head, size_t length)
{
    (void)file;
    return has(head, length, "Start_Timestamp") && has(head, length, "End_Timestamp") &&
           has(head, length, "Correlation_Id");
}

static const struct format {
    const char *name;
    bool (*recognise)(const char *file, const char *head, size_t length);
    knee_status (*read)(struct knee_image *image, struct knee_err *err);
} formats[] = {
    {"xplane", named_xplane, knee_xplane_read},
    {"chakra", named_chakra, knee_chakra_read},
    {"rocprofv3", is_rocprof_json, knee_rocprof_json_read},
    {"rocprofv3", is_rocprof_csv, knee_rocprof_csv_read},
    {"chakra", is_chakra_json, knee_chakra_json_read},
};

static const struct format *format_of(const char *file, const char *head, size_t length)
{
    length = length < KNEE_IMAGE_HEAD ? length : KNEE_IMAGE_HEAD;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].recognise(file, head, length))
            return &formats[i];
    return NULL;
}

bool knee_image_recognise(const char *file, const char *head, size_t length)
{
    return format_of(file, head, length) != NULL;
}

void knee_image_span(struct knee_image *image, int64_t device, int64_t start_ns, int64_t end_ns,
                     struct knee_slice name, int32_t stream, uint64_t correlation, bool copy,
                     const struct knee_call_facts *facts)
{
    image->trace->losses[KNEE_REPAIR_DURATION].count += end_ns < start_ns;
    end_ns = end_ns < start_ns ? start_ns : end_ns;
    image->trace->events++;
    if (!knee_time_is_good(start_ns, end_ns)) {
        image->trace->losses[KNEE_LOSS_TIME].count++;
        return;
    }
    if (name.length == 0)
        name = knee_slice_of("unnamed kernel");
    knee_builder_span(image->builder, device, start_ns, end_ns,
                      knee_builder_name(image->builder, name.at, name.length), stream, correlation,
                      copy, facts);
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

knee_status knee_image_read(const char *file, char *data, size_t length,
                            const struct knee_trace_options *options,
                            const struct knee_alloc *alloc, struct knee_trace *out,
                            struct knee_err *err)
{
    static const struct knee_trace_options plain = {0};
    const struct format *format = format_of(file, data, length);
    struct knee_trace trace = {.rank = -1,
                               .world_size = -1,
                               .first_step = -1,
                               .last_step = -1,
                               .alloc = alloc,
                               .bytes = length};
    struct knee_image image = {.file = file,
                               .data = data,
                               .length = length,
                               .options = options ? options : &plain,
                               .alloc = alloc,
                               .trace = &trace};
    size_t name_size = strlen(file) + 1;
    knee_status status = KNEE_OK;
    trace.file = knee_resize(alloc, NULL, name_size);
    image.builder = knee_builder_new(image.options, alloc);
    if (!trace.file || !image.builder)
        status = knee_fail(err, KNEE_SYSTEM, file, "out of memory");
    else
        memcpy(trace.file, file, name_size);
    if (!status)
        status = format ? read_with(format, &image, err)
                        : knee_fail(err, KNEE_INPUT, file, "not a trace that is read as a whole");
    knee_builder_free(image.builder);
    if (status)
        knee_trace_release(&trace);
    else
        *out = trace;
    return status;
}
