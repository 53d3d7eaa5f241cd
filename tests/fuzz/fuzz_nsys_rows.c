/* SPDX-License-Identifier: MIT */
/*
 * Databases with structure: the tables of an Nsight export, with rows whose cells are of any type,
 * some columns under another name or not there at all, sometimes a view in place of a table.
 */
#include "knee_timeline.h"
#include "seldom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if KNEE_HAVE_SQLITE
#include <sqlite3.h>

/* ---- SQLite's memory ----
 * A database is some hundred small blocks, and AddressSanitizer takes its time for each. What is
 * freed is used again at once, by powers of two; fuzz_nsys.c has the checked memory. */

enum { SMALLEST = 5, CLASSES = 16 }; /* 32 bytes to 1 MiB */

struct block {
    union {
        int class;
        long double aligned;
    } head;
    union {
        struct block *next; /* while it is free */
        long double aligned;
    } rest;
};

static struct block *free_blocks[CLASSES];

static int class_of(int size)
{
    int class = 0;
    while (class < CLASSES && (1 << (SMALLEST + class)) < size)
        class ++;
    return class;
}

static void *get(int size)
{
    int class = class_of(size);
    struct block *block = class < CLASSES ? free_blocks[class] : NULL;
    if (block)
        free_blocks[class] = block->rest.next;
    else if (class < CLASSES)
        block = malloc(offsetof(struct block, rest) + ((size_t)1 << (SMALLEST + class)));
    if (!block)
        return NULL;
    block->head.class = class;
    return &block->rest;
}

static struct block *block_of(void *memory)
{
    return (struct block *)((char *)memory - offsetof(struct block, rest));
}

static void put(void *memory)
{
    struct block *block = block_of(memory);
    block->rest.next = free_blocks[block->head.class];
    free_blocks[block->head.class] = block;
}

static int size_of(void *memory)
{
    return memory ? 1 << (SMALLEST + block_of(memory)->head.class) : 0;
}

static void *change(void *memory, int size)
{
    void *larger = size <= size_of(memory) ? memory : get(size);
    if (larger && larger != memory) {
        memcpy(larger, memory, (size_t)size_of(memory));
        put(memory);
    }
    return larger;
}

static int round_up(int size)
{
    int class = class_of(size);
    return class < CLASSES ? 1 << (SMALLEST + class) : size;
}

static int begin(void *unused)
{
    (void)unused;
    return SQLITE_OK;
}

static void end(void *unused)
{
    (void)unused;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const sqlite3_mem_methods memory = {get,      put,   change, size_of,
                                               round_up, begin, end,    NULL};
    (void)argc, (void)argv;
    sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
    return 0;
}

/* ---- Databases ---- */

static const struct {
    const char *name, *columns[8];
} tables[] = {
    {"StringIds", {"id", "value"}},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName"}},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId", "nameId"}},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "copyKind"}},
    {"NVTX_EVENTS", {"start", "end", "globalTid", "text", "textId"}},
    {"TARGET_INFO_GPU", {"name"}},
};
enum { TABLES = sizeof tables / sizeof *tables };

struct bytes {
    const uint8_t *at, *end;
};

static uint8_t next(struct bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

static void make_table(sqlite3 *db, size_t t, uint8_t how)
{
    char sql[512];
    size_t used = (size_t)snprintf(
        sql, sizeof sql, how == 255 ? "CREATE VIEW \"%s\" AS SELECT " : "CREATE TABLE \"%s\"(",
        tables[t].name);
    for (size_t c = 0; c < 8 && tables[t].columns[c]; c++)
        used += (size_t)snprintf(sql + used, sizeof sql - used,
                                 how == 255 ? "%s1 AS \"%s%s\"" : "%s\"%s%s\"", c ? ", " : "",
                                 tables[t].columns[c], (how >> c) & 1 ? "_old" : "");
    snprintf(sql + used, sizeof sql - used, how == 255 ? "" : ")");
    sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static void bind(sqlite3_stmt *row, int at, struct bytes *b)
{
    static const char *const texts[] = {"gemm",
                                        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                                        "cudaLaunchKernel_v7000",
                                        "ProfilerStep#3",
                                        "\xff\x1b[0m",
                                        ""};
    uint8_t kind = next(b), value = next(b);
    switch (kind & 7) {
    case 0: sqlite3_bind_null(row, at); break;
    case 1: sqlite3_bind_text(row, at, texts[value % 6], -1, SQLITE_STATIC); break;
    case 2: sqlite3_bind_double(row, at, value * 1e17 - 5e18); break;
    case 3: sqlite3_bind_blob(row, at, b->at, (int)(b->end - b->at) % 40, SQLITE_STATIC); break;
    case 4: sqlite3_bind_int64(row, at, kind & 8 ? INT64_MAX - value : INT64_MIN + value); break;
    case 5: sqlite3_bind_int64(row, at, (int64_t)value << 24); break;
    default: sqlite3_bind_int64(row, at, value * (kind & 8 ? 1000 : 1)); break;
    }
}

static sqlite3_stmt *prepare(sqlite3 *db, size_t t)
{
    char sql[256];
    sqlite3_stmt *row = NULL;
    size_t used = (size_t)snprintf(sql, sizeof sql, "INSERT INTO \"%s\" VALUES(", tables[t].name);
    for (size_t c = 0; c < 8 && tables[t].columns[c]; c++)
        used += (size_t)snprintf(sql + used, sizeof sql - used, c ? ", ?" : "?");
    snprintf(sql + used, sizeof sql - used, ")");
    sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    return row; /* NULL: there is no such table, or a view */
}

static void add_row(sqlite3_stmt *row, size_t t, struct bytes *b)
{
    for (int c = 0; row && c < 8 && tables[t].columns[c]; c++)
        bind(row, c + 1, b);
    if (row) {
        sqlite3_step(row);
        sqlite3_reset(row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, data + size};
    sqlite3 *db = NULL;
    sqlite3_int64 length = 0;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        abort();
    sqlite3_exec(db, "PRAGMA page_size = 512; BEGIN", NULL, NULL, NULL);
    for (size_t t = 0; t < TABLES; t++) {
        uint8_t how = next(&b);
        if (how != 254)
            make_table(db, t, how < 128 ? 0 : how);
    }
    sqlite3_stmt *insert[TABLES];
    for (size_t t = 0; t < TABLES; t++)
        insert[t] = prepare(db, t);
    for (int rows = 0; b.at < b.end && rows < 32; rows++) {
        size_t t = next(&b) % TABLES;
        add_row(insert[t], t, &b);
    }
    for (size_t t = 0; t < TABLES; t++)
        sqlite3_finalize(insert[t]);
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    unsigned char *image = sqlite3_serialize(db, "main", &length, 0);
    sqlite3_close(db);
    struct knee_trace trace;
    struct knee_account account;
    struct knee_err err;
    if (image && !knee_nsys_read((struct knee_file_bytes){"fuzz", image, (size_t)length}, NULL,
                                 NULL, &trace, &err)) {
        if (!knee_account(&trace, 1, NULL, &account, &err))
            knee_account_release(&account);
        knee_trace_release(&trace);
    }
    sqlite3_free(image);
    return 0;
}
#else
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)data, (void)size;
    return 0;
}
#endif
