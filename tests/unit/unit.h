/* SPDX-License-Identifier: MIT */
/* What the unit tests share: cmocka, jobs from words, near-equality, reproducible chance, memory
 * that runs out. */
#ifndef KNEE_TESTS_UNIT_H
#define KNEE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/keys.h"
#include "knee_judge.h"

/* The tests of this program. Each registers itself before main() starts, in the order in which they
 * stand in the file; FIXTURE(before, after) adds what runs before the first and after the last. */
static struct {
    struct CMUnitTest tests[64];
    size_t count;
    CMFixtureFunction before, after;
} unit_all;

static inline void unit_add(const char *name, CMUnitTestFunction test)
{
    if (unit_all.count == sizeof unit_all.tests / sizeof *unit_all.tests)
        abort();
    unit_all.tests[unit_all.count++] = (struct CMUnitTest){.name = name, .test_func = test};
}

#define TEST(name)                                                                                 \
    static void name(void **unit_state);                                                           \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        unit_add(#name, name);                                                                     \
    }                                                                                              \
    static void name(void **unit_state __attribute__((unused)))
#define FIXTURE(first, last)                                                                       \
    __attribute__((constructor)) static void add_fixture(void)                                     \
    {                                                                                              \
        unit_all.before = first;                                                                   \
        unit_all.after = last;                                                                     \
    }

/* test_x [NAME]: all tests, or those whose names match a pattern with * and ?. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests("tests", unit_all.tests, unit_all.count, unit_all.before,
                                   unit_all.after);
}

/* OWNED(knee_text) text = {0}: a struct knee_text that its release function is called for at the
 * end of the block. */
#define OWNED(type) __attribute__((cleanup(type##_release))) struct type

/* Sets "key value key value ..." in an object; fails the test on a bad one. The object may point to
 * the words: they stay until eight more objects were made. */
static inline void set_words(const struct knee_keys *keys, void *object, const char *words)
{
    static char copies[8][1024];
    static size_t next;
    struct knee_err err;
    char *copy = copies[next++ % 8], *rest = NULL;
    snprintf(copy, sizeof *copies, "%s", words);
    for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
        char *value = strtok_r(NULL, " ", &rest);
        if (knee_keys_set(keys, object, key, value, KNEE_FLAG, &err))
            fail_msg("%s %s: %s", key, value, err.what);
    }
}

/* for (struct pieces p = {"a|b||c"}; next_piece(&p);): p.text is "a", "b", "", "c". */
struct pieces {
    const char *rest;
    char text[256];
};

static inline bool next_piece(struct pieces *p)
{
    if (!p->rest)
        return false;
    size_t length = strcspn(p->rest, "|");
    assert_true(length < sizeof p->text);
    memcpy(p->text, p->rest, length);
    p->text[length] = '\0';
    p->rest = p->rest[length] ? p->rest + length + 1 : NULL;
    return true;
}

/* A seed of the fuzz targets, "train_log/03_nemo"; it stays until the next is read. */
static inline const char *seed_of(const char *name)
{
    static char text[65536];
    char path[256];
    snprintf(path, sizeof path, "tests/fuzz/seeds/%s", name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static inline struct knee_job job_of(const char *words)
{
    struct knee_job job;
    knee_job_init(&job);
    set_words(&knee_job_keys, &job, words);
    return job;
}

/* "key=value key=value ..." must hold of the object; "key=" means that it is not given. */
static inline void assert_says(const struct knee_keys *keys, const void *object,
                               const char *expected, const char *text)
{
    char copy[512], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", expected);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '='), seen[64] = "";
        *value++ = '\0';
        bool gpus = strcmp(word, "gpus") == 0; /* the one number of a plan that is no key */
        size_t row = gpus ? 0 : knee_keys_find(keys, word);
        if (row == keys->count)
            fail_msg("there is no key %s", word);
        enum knee_key_kind kind = gpus ? KNEE_KEY_NUMBER : keys->rows[row].kind;
        const char *field = (const char *)object +
                            (gpus ? offsetof(struct knee_plan, gpus) : keys->rows[row].offset);
        double number;
        int choice;
        memcpy(&number, field, sizeof number);
        memcpy(&choice, field, sizeof choice);
        if (kind == KNEE_KEY_NUMBER && !isnan(number))
            snprintf(seen, sizeof seen, "%g", number);
        else if (kind == KNEE_KEY_CHOICE && choice >= 0)
            snprintf(seen, sizeof seen, "%s", keys->rows[row].choices->name((size_t)choice));
        if (strcmp(seen, value) != 0)
            fail_msg("%s\nsays %s '%s', not '%s'", text, word, seen, value);
    }
}

/* What a GPU is priced as, under a software profile; NULL: the usual one. */
static inline struct knee_machine machine_of(const char *gpu, const char *profile)
{
    struct knee_platform platform;
    struct knee_machine machine = {0};
    struct knee_err err;
    knee_platform_init(&platform);
    if (knee_keys_set(&knee_platform_keys, &platform, "gpu", gpu, KNEE_FLAG, &err) ||
        (profile &&
         knee_keys_set(&knee_platform_keys, &platform, "profile", profile, KNEE_FLAG, &err)) ||
        knee_machine_init(&platform, NULL, &machine, &err))
        fail_msg("%s: %s", gpu, err.what);
    return machine;
}

static inline struct knee_terms terms_of(const struct knee_job *given)
{
    struct knee_job job = *given;
    struct knee_terms terms;
    struct knee_err err;
    if (knee_job_complete(&job, &err))
        fail_msg("%s; %s", err.what, err.hint);
    knee_terms_init(&job, &terms);
    return terms;
}

static inline struct knee_row row_of(const char *words, double workers)
{
    struct knee_job job = job_of(words);
    struct knee_terms terms = terms_of(&job);
    struct knee_row row;
    knee_evaluate(&terms, workers, &row);
    return row;
}

static inline struct knee_prediction predict(const char *words)
{
    struct knee_job job = job_of(words);
    struct knee_prediction prediction;
    struct knee_err err;
    if (knee_predict(&job, NULL, &prediction, &err))
        fail_msg("%s: %s; %s", words, err.what, err.hint);
    return prediction;
}

/* The shape of a model by its name. */
static inline struct knee_shape shape_named(const char *name)
{
    struct knee_shape shape;
    struct knee_err err;
    knee_shape_init(&shape);
    if (knee_keys_set(&knee_shape_keys, &shape, "model", name, KNEE_FLAG, &err) ||
        knee_shape_complete(&shape, &err))
        fail_msg("%s: %s", name, err.what);
    return shape;
}

#define assert_ok(call) assert_int_equal(call, KNEE_OK)

static inline void near_at(double got, double want, double tolerance, const char *what, int line)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("line %d: %s is %.12g, not %.12g within %g", line, what, got, want, tolerance);
}
#define assert_near(got, want, tolerance) near_at(got, want, tolerance, #got, __LINE__)
#define assert_relative(got, want, share) near_at(got, want, (share)*fabs(want), #got, __LINE__)

/* xorshift64*: the same numbers everywhere. */
static inline double chance(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

static inline double between(uint64_t *state, double low, double high) /* geometric */
{
    return low * pow(high / low, chance(state));
}

/* About normal, standard deviation 1: twelve uniform numbers (Irwin and Hall). */
static inline double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += chance(state);
    return sum;
}

/* An allocator whose call number fail_at fails; `live` blocks are not freed yet. */
struct failing {
    size_t calls, fail_at, live;
    struct knee_alloc alloc; /* of FOR_EACH_FAILURE */
};

static inline void *failing_resize(void *ctx, void *ptr, size_t size)
{
    struct failing *f = ctx;
    if (size == 0) {
        assert_non_null(ptr); /* the contract says nothing about freeing nothing */
        f->live--;
        free(ptr);
        return NULL;
    }
    if (++f->calls == f->fail_at)
        return NULL;
    void *now = realloc(ptr, size);
    f->live += ptr == NULL && now != NULL;
    return now;
}

/* Did the allocation that was to fail happen? */
static inline bool failing_met(const struct failing *f)
{
    return f->calls >= f->fail_at;
}

static inline bool failing_next(struct failing *f)
{
    assert_int_equal(f->live, 0); /* nothing is left behind */
    bool more = failing_met(f);
    f->fail_at++;
    f->calls = 0;
    return more;
}

/* The block that follows runs with f.alloc, whose first allocation fails, then the second, and so
 * on; the last time none does. */
#define FOR_EACH_FAILURE(f)                                                                        \
    for (struct failing f = {.alloc = {failing_resize, &(f)}}; failing_next(&(f));)

/* Under a sanitizer the same code runs 5 to 20 times slower: brute force gets smaller there. */
#if defined(UNIT_SANITIZED)
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define UNIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define UNIT_SANITIZED 1
#endif
#endif
#ifndef UNIT_SANITIZED
#define UNIT_SANITIZED 0
#endif

/* How many of so many. */
#define UNIT_SOME(all) (UNIT_SANITIZED ? ((all) + 4) / 5 : (all))

#endif
