/* SPDX-License-Identifier: MIT */
/*
 * CUPTI's activity records, for a step at a time. Nothing of CUDA is linked: the library that the
 * process has loaded is found by name, else the usual one is loaded. A process has one client of
 * CUPTI at most (live_client.c): if another tool is the client, the agent does not use CUPTI.
 *
 * Offsets into records are those of CUDA 11 to 13, whose records share their beginnings.
 */
#include "live/live_agent.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    KIND_MEMCPY = 1,
    KIND_MEMSET = 2,
    KIND_DRIVER = 4,
    KIND_RUNTIME = 5,
    KIND_KERNEL = 10,
    KIND_MEMCPY2 = 22,
    OTHER_CLIENT = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */
};

enum {
    FLUSH_FORCED = 1,
    BUFFERS = 16,
    BUFFER_BYTES = 1 << 20,
    RECORDS = 1 << 17, /* their trace is less than half of KNEE_LIVE_BYTES, unless names are long */
    NAMES = 1 << 13,
    CALLBACKS = 2048, /* of the driver and of the runtime: more than there are */
};

static int (*activity_register)(void *request, void *complete);
static int (*activity_enable)(int kind), (*activity_disable)(int kind);
static int (*activity_flush)(uint32_t flag);
static int (*activity_next)(uint8_t *buffer, size_t size, void **record);
static int (*activity_dropped)(void *context, uint32_t stream, size_t *dropped);
static int (*get_timestamp)(uint64_t *ns);
static int (*callback_name)(int domain, uint32_t id, const char **name);
static int (*set_attribute)(int attribute, size_t *size, void *value); /* since CUDA 11 */

static bool tried, enabled;
static bool attached; /* by us; any call attaches it */

/* ---- The library ---- */

static const struct live_symbol symbols[] = {
    {"cuptiActivityRegisterCallbacks", &activity_register},
    {"cuptiActivityEnable", &activity_enable},
    {"cuptiActivityDisable", &activity_disable},
    {"cuptiActivityFlushAll", &activity_flush},
    {"cuptiActivityGetNextRecord", &activity_next},
    {"cuptiActivityGetNumDroppedRecords", &activity_dropped},
    {"cuptiGetTimestamp", &get_timestamp},
    {"cuptiGetCallbackName", &callback_name},
};
static const struct live_symbol wanted[] = {{"cuptiActivitySetAttribute", &set_attribute}};

static void *open_library(void)
{
    static const char *const names[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                        "libcupti.so"};
    const char *given = live_config()->cupti_library;
    void *library = NULL;
    if (*given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    for (int loaded = 1; loaded >= 0; loaded--) /* the one that is there comes first */
        for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
            library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | (loaded ? RTLD_NOLOAD : 0));
    return library;
}

bool live_symbols_find(void *library, const struct live_symbol *list, size_t count)
{
    bool all = library != NULL;
    void *none = NULL;
    for (size_t i = 0; i < count; i++) {
        void *symbol = all ? dlsym(library, list[i].name) : NULL;
        memcpy(list[i].function, &symbol, sizeof symbol);
        all = all && symbol;
    }
    for (size_t i = 0; !all && i < count; i++)
        memcpy(list[i].function, &none, sizeof none);
    return all;
}

static bool load(void)
{
    static int told;
    void *library = tried ? NULL : open_library();
    if (tried)
        return activity_register != NULL;
    tried = true;
    if (!live_symbols_find(library, symbols, sizeof symbols / sizeof *symbols) ||
        !live_client_load(library)) {
        activity_register = NULL;
        library = NULL;
    }
    live_symbols_find(library, wanted, sizeof wanted / sizeof *wanted);
    if (!library)
        live_say(&told, "no CUPTI was found: collectives are recorded, kernels are not; "
                        "LD_LIBRARY_PATH may name the folder of libcupti.so");
    return library != NULL;
}

/* ---- Buffers: CUPTI's threads ask for one and hand it back full ---- */

enum buffer_state { EMPTY, GIVEN, FULL };

static struct {
    _Atomic int state;
    uint8_t *bytes;
    _Atomic size_t valid;
} buffers[BUFFERS];
static _Atomic uint64_t refused, dropped;

static void on_request(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *most_records = 0;
    for (size_t i = 0; i < BUFFERS; i++) {
        int expected = EMPTY;
        if (buffers[i].bytes &&
            atomic_compare_exchange_strong(&buffers[i].state, &expected, GIVEN)) {
            *buffer = buffers[i].bytes;
            *size = BUFFER_BYTES;
            return;
        }
    }
    *buffer = NULL;
    *size = 0;
    atomic_fetch_add(&refused, 1);
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    size_t lost = 0;
    (void)size;
    if (activity_dropped(context, stream, &lost) == 0)
        atomic_fetch_add(&dropped, lost);
    for (size_t i = 0; i < BUFFERS; i++)
        if (buffers[i].bytes && buffers[i].bytes == buffer) {
            atomic_store(&buffers[i].valid, valid);
            atomic_store(&buffers[i].state, FULL);
            return;
        }
}

/* CUPTI wants buffers of zeros. It would write them itself, a megabyte at a time in the thread of
 * the job that launches; here it costs the job nothing. */
static void empty_buffer(size_t i)
{
    memset(buffers[i].bytes, 0, BUFFER_BYTES);
    atomic_store(&buffers[i].state, EMPTY);
}

static void promise_zeros(void)
{
    enum { ZEROED_OUT_BUFFERS = 5 };
    uint8_t yes = 1;
    size_t size = sizeof yes;
    if (set_attribute)
        set_attribute(ZEROED_OUT_BUFFERS, &size, &yes);
}

/* ---- Names ---- */

static struct {
    const char *given; /* CUPTI's pointer */
    char *text;
} names[NAMES];
static size_t name_count;

/* The same name comes with the same pointer as long as its module is loaded; a new module may reuse
 * one, so the text is looked at too. */
uint32_t live_cupti_name_row(const char *given, const char *text)
{
    size_t at = (size_t)(((uintptr_t)given * UINT64_C(0x9fb21c651e98df25)) >> 51) % NAMES;
    for (size_t i = 0; i < NAMES; i++, at = (at + 1) % NAMES) {
        if (names[at].given == given && strcmp(names[at].text, text) == 0)
            return (uint32_t)at;
        if (names[at].given)
            continue;
        if (name_count > NAMES * 3 / 4 || !(names[at].text = strdup(text)))
            return UINT32_MAX;
        names[at].given = given;
        name_count++;
        return (uint32_t)at;
    }
    return UINT32_MAX;
}

const char *live_cupti_name(uint32_t name)
{
    return name < NAMES && names[name].text ? names[name].text : "unknown";
}

/* Which of the host's calls are kept: those that hand work over or wait. 0: not asked yet, 1: no,
 * else its name's row + 2. */
static uint32_t call_names[2][CALLBACKS];

/* cudaLaunchKernel_v7000: without the version. */
static uint32_t plain_row(const char *name)
{
    char plain[128];
    size_t length = strlen(name);
    length = length < sizeof plain ? length : sizeof plain - 1;
    memcpy(plain, name, length);
    plain[length] = '\0';
    char *version = strstr(plain, "_v");
    if (version && version[2] >= '0' && version[2] <= '9')
        *version = '\0';
    return live_cupti_name_row(name, plain);
}

static uint32_t find_call(int domain, uint32_t id)
{
    static const char *const words[] = {"Launch", "Memcpy", "Memset", "Synchronize", "WaitEvent"};
    const char *name = NULL;
    if (callback_name(domain, id, &name) != 0 || !name)
        return 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i])) {
            uint32_t row = plain_row(name);
            return row == UINT32_MAX ? 1 : row + 2;
        }
    return 1;
}

static uint32_t call_row(int domain, uint32_t id)
{
    uint32_t *row = &call_names[domain == LIVE_DOMAIN_RUNTIME][id < CALLBACKS ? id : 0];
    if (id >= CALLBACKS)
        return 1;
    if (*row == 0)
        *row = find_call(domain, id);
    return *row;
}

/* ---- Records ---- */

static struct live_record *records;
static size_t record_count;
static uint64_t no_room;
static int64_t clock_shift_ns; /* CUPTI's clock to the host's */

static uint64_t u64(const uint8_t *record, size_t at)
{
    uint64_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

static uint32_t u32(const uint8_t *record, size_t at)
{
    uint32_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

/* Where things lie; a host call has its own beginning. */
static const struct shape {
    uint32_t kind;
    uint8_t as;
    size_t bytes, start, device, stream, correlation; /* 0: it has none */
} shapes[] = {
    {KIND_KERNEL, LIVE_KERNEL, 0, 16, 40, 48, 92}, {KIND_MEMCPY, LIVE_COPY, 8, 16, 32, 40, 44},
    {KIND_MEMCPY2, LIVE_COPY, 8, 16, 32, 40, 60},  {KIND_MEMSET, LIVE_FILL, 8, 16, 32, 40, 44},
    {KIND_DRIVER, LIVE_HOST_CALL, 0, 8, 0, 0, 32}, {KIND_RUNTIME, LIVE_HOST_CALL, 0, 8, 0, 0, 32},
};

static uint32_t name_of(const struct shape *shape, const uint8_t *record)
{
    static const char *const copies[] = {"Memcpy Unknown",
                                         "Memcpy HtoD (Host -> Device)",
                                         "Memcpy DtoH (Device -> Host)",
                                         "Memcpy HtoA",
                                         "Memcpy AtoH",
                                         "Memcpy AtoA",
                                         "Memcpy AtoD",
                                         "Memcpy DtoA",
                                         "Memcpy DtoD (Device -> Device)",
                                         "Memcpy HtoH",
                                         "Memcpy PtoP"};
    const char *name = "Memset (Device)";
    if (shape->as == LIVE_HOST_CALL) {
        uint32_t row = call_row(
            shape->kind == KIND_RUNTIME ? LIVE_DOMAIN_RUNTIME : LIVE_DOMAIN_DRIVER, u32(record, 4));
        return row == 1 ? UINT32_MAX : row - 2;
    }
    if (shape->as == LIVE_KERNEL)
        memcpy(&name, record + 104, sizeof name);
    else if (shape->as == LIVE_COPY)
        name = copies[record[4] < sizeof copies / sizeof *copies ? record[4] : 0];
    name = name ? name : "unknown";
    return live_cupti_name_row(name, name);
}

static void take_record(const uint8_t *record)
{
    const struct shape *shape = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !shape; i++)
        shape = shapes[i].kind == u32(record, 0) ? &shapes[i] : NULL;
    if (!shape)
        return;
    uint32_t name = name_of(shape, record);
    if (name == UINT32_MAX && shape->as == LIVE_HOST_CALL)
        return;
    if (record_count == RECORDS) {
        no_room++;
        return;
    }
    bool device = shape->device != 0;
    records[record_count++] = (struct live_record){
        .start_ns = (int64_t)u64(record, shape->start) + clock_shift_ns,
        .end_ns = (int64_t)u64(record, shape->start + 8) + clock_shift_ns,
        .bytes = shape->bytes ? u64(record, shape->bytes) : 0,
        .correlation = u32(record, shape->correlation),
        .name = name,
        .stream = device ? u32(record, shape->stream) : 0,
        .thread = device ? 0 : u32(record, 28),
        .kind = shape->as,
        .device = device ? (uint8_t)u32(record, shape->device) : 0,
    };
}

static void take_buffer(size_t i)
{
    void *record = NULL;
    size_t valid = atomic_load(&buffers[i].valid);
    while (valid && activity_next(buffers[i].bytes, valid, &record) == 0)
        take_record(record);
    empty_buffer(i);
}

/* ---- Sampling ---- */

static bool make_room(void)
{
    if (!records && !(records = malloc(RECORDS * sizeof *records)))
        return false;
    for (size_t i = 0; i < BUFFERS; i++) {
        if (buffers[i].bytes)
            continue;
        if (!(buffers[i].bytes = aligned_alloc(64, BUFFER_BYTES)))
            return false;
        empty_buffer(i);
    }
    return true;
}

static void set_clock(void)
{
    uint64_t theirs = 0;
    int64_t before = live_now_ns();
    if (get_timestamp(&theirs) == 0)
        clock_shift_ns = before + (live_now_ns() - before) / 2 - (int64_t)theirs;
}

static const int kinds[] = {KIND_KERNEL,  KIND_MEMCPY,  KIND_MEMSET,
                            KIND_MEMCPY2, KIND_RUNTIME, KIND_DRIVER};

static int enable(void)
{
    int code = 0;
    void (*request)(uint8_t **, size_t *, size_t *) = on_request;
    void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t) = on_complete;
    void *r, *c;
    memcpy(&r, &request, sizeof r);
    memcpy(&c, &complete, sizeof c);
    promise_zeros();
    if ((code = activity_register(r, c)) != 0)
        return code;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((code = activity_enable(kinds[i])) != 0) {
            while (i-- > 0)
                activity_disable(kinds[i]);
            return code;
        }
    return 0;
}

enum live_cupti_state live_cupti_begin(void)
{
    if (enabled)
        return LIVE_CUPTI_ON;
    if (!load())
        return LIVE_CUPTI_OFF;
    if (!make_room())
        return LIVE_CUPTI_OFF;
    static int told;
    int code = live_client_come(live_config()->always);
    attached = code == 0;
    if (code == 0 && (code = enable()) == 0) {
        enabled = true;
        set_clock();
        return LIVE_CUPTI_ON;
    }
    live_client_stay();
    if (code == OTHER_CLIENT)
        return LIVE_CUPTI_TAKEN;
    live_say(&told,
             "CUPTI cannot be used here (it says %d): collectives are recorded, kernels are not",
             code);
    return LIVE_CUPTI_OFF;
}

void live_cupti_end(void)
{
    for (size_t i = 0; enabled && i < sizeof kinds / sizeof *kinds; i++)
        activity_disable(kinds[i]);
    enabled = false;
}

size_t live_cupti_drain(bool ask)
{
    size_t before = record_count;
    if (!attached)
        return 0;
    if (ask)
        activity_flush(0);
    for (size_t i = 0; i < BUFFERS; i++)
        if (atomic_load(&buffers[i].state) == FULL)
            take_buffer(i);
    return record_count - before;
}

struct live_recording live_cupti_recording(void)
{
    return (struct live_recording){records, record_count,
                                   no_room + atomic_load(&refused) + atomic_load(&dropped)};
}

void live_cupti_forget(int64_t before_ns)
{
    size_t left = 0;
    if (before_ns == INT64_MAX)
        live_cupti_drain(true);
    for (size_t i = 0; i < record_count; i++)
        if (records[i].end_ns >= before_ns)
            records[left++] = records[i];
    record_count = left;
    no_room = 0;
    atomic_store(&refused, 0);
    atomic_store(&dropped, 0);
}

/* What CUPTI had of our buffers it has handed back or forgotten. */
void live_cupti_leave(void)
{
    if (!attached || enabled)
        return;
    activity_flush(FLUSH_FORCED);
    attached = !live_client_leave();
    for (size_t i = 0; !attached && i < BUFFERS; i++)
        if (atomic_load(&buffers[i].state) != EMPTY)
            empty_buffer(i);
}

/* The driver loads this object and calls this, when CUDA_INJECTION64_PATH names it. The writer does
 * the rest once there are steps to sample. */
LIVE_EXPORT int InitializeInjection(void);
LIVE_EXPORT int InitializeInjection(void)
{
    live_start(LIVE_FROM_CUDA);
    return 1;
}
