/* SPDX-License-Identifier: MIT */
/*
 * The runtime's contract, for whichever one the process was started under: alone it is self; under
 * mpirun the same laws hold over all ranks (tests/measure/mpi runs it so).
 */
#include "reach/runtime.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct knee_runtime *rt;

static int open_runtime(void **state)
{
    (void)state;
    struct knee_err err;
    return knee_runtime_open(NULL, &rt, &err) == KNEE_OK ? 0 : -1;
}

static int close_runtime(void **state)
{
    (void)state;
    rt->finish(rt);
    return 0;
}

TEST(names_and_hosts_are_consistent)
{
    assert_true(rt->size >= 1 && rt->rank >= 0 && rt->rank < rt->size);
    assert_true(rt->host_count >= 1 && rt->host_of[rt->rank] == rt->host);
    assert_int_equal(rt->host_of[0], 0);
    assert_true(strlen(rt->host_name) > 0);
}

TEST(all_reduce_is_the_same_everywhere)
{
    enum { N = 1000 };
    double sum[N];
    float most[N];
    int64_t least[N];
    unsigned char bytes[3] = {(unsigned char)rt->rank, 0, 7};
    for (int i = 0; i < N; i++) {
        sum[i] = rt->rank + i;
        most[i] = (float)(rt->rank - i);
        least[i] = (int64_t)rt->rank * 1000000007 + i;
    }
    assert_true(rt->all_reduce(rt, sum, N, KNEE_RUNTIME_F64, KNEE_RUNTIME_SUM));
    assert_true(rt->all_reduce(rt, most, N, KNEE_RUNTIME_F32, KNEE_RUNTIME_MAX));
    assert_true(rt->all_reduce(rt, bytes, 3, KNEE_RUNTIME_U8, KNEE_RUNTIME_MAX));
    struct knee_request *request = NULL;
    assert_true(rt->all_reduce_start(rt, least, N, KNEE_RUNTIME_I64, KNEE_RUNTIME_MIN, &request));
    for (bool done = false; !done;)
        assert_true(rt->test(rt, &request, &done));
    assert_null(request);
    for (int i = 0; i < N; i++) {
        assert_true(sum[i] == (double)rt->size * (rt->size - 1) / 2 + (double)rt->size * i);
        assert_true(most[i] == (float)(rt->size - 1 - i));
        assert_int_equal(least[i], i);
    }
    assert_int_equal(bytes[0], rt->size - 1);
    assert_int_equal(bytes[2], 7);
}

TEST(messages_arrive_in_order_and_by_tag)
{
    int next = (rt->rank + 1) % rt->size, before = (rt->rank + rt->size - 1) % rt->size;
    char sent[3][8], got[3][8];
    struct knee_request *send[3] = {0}, *receive[3] = {0};
    static const int tags[3] = {5, 6, 5};
    for (int i = 0; i < 3; i++) {
        snprintf(sent[i], sizeof sent[i], "%d:%d", rt->rank % 100, i);
        assert_true(rt->send_start(rt, sent[i], sizeof sent[i], next, tags[i], &send[i]));
    }
    static const int order[3] = {1, 0, 2}; /* tag 6 first, then both of tag 5 */
    for (int i = 0; i < 3; i++) {
        int m = order[i];
        assert_true(rt->receive_start(rt, got[m], sizeof got[m], before, tags[m], &receive[m]));
        assert_true(rt->wait(rt, &receive[m]));
        assert_null(receive[m]);
    }
    for (int i = 0; i < 3; i++) {
        char wanted[8];
        snprintf(wanted, sizeof wanted, "%d:%d", before % 100, i);
        assert_string_equal(got[i], wanted);
        assert_true(rt->wait(rt, &send[i]));
        assert_true(rt->wait(rt, &send[i])); /* nothing: done */
    }
    assert_true(rt->barrier(rt));
}

TEST(gather_brings_every_byte_to_rank_0)
{
    size_t mine = (size_t)rt->rank * 1000, *sizes = calloc((size_t)rt->size, sizeof *sizes);
    char *data = malloc(mine + 1);
    void *all = NULL;
    memset(data, 'a' + rt->rank % 26, mine + 1);
    assert_true(rt->gather_bytes(rt, data, mine, &all, sizes));
    char *at = all;
    for (int r = 0; rt->rank == 0 && r < rt->size; at += sizes[r++]) {
        assert_int_equal(sizes[r], r * 1000);
        for (size_t i = 0; i < sizes[r]; i++)
            assert_int_equal(at[i], 'a' + r % 26);
    }
    if (rt->rank != 0)
        assert_null(all);
    free(all);
    free(data);
    free(sizes);
}

TEST(an_unknown_runtime_is_refused)
{
    struct knee_err err;
    struct knee_runtime *other = NULL;
    assert_int_equal(knee_runtime_open("pigeons", &other, &err), KNEE_USAGE);
    assert_null(other);
    assert_non_null(strstr(err.what, "pigeons"));
}

/* In a process of its own, for the environment is changed: what launched() and rank() say. */
static int told_by(const char *const *words)
{
    static const char all[] =
        "OMPI_COMM_WORLD_SIZE|OMPI_COMM_WORLD_RANK|PMI_SIZE|PMI_RANK|SLURM_STEP_NUM_TASKS|"
        "PMIX_RANK|KNEE_RUNTIME";
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (struct pieces p = {.rest = all}; next_piece(&p);)
            unsetenv(p.text);
        for (; *words; words += 2)
            setenv(words[0], words[1], 1);
        _exit(knee_runtime_launched() ? 100 + knee_runtime_rank() : knee_runtime_rank());
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

TEST(a_rank_without_a_size_says_nothing)
{
    static const struct {
        const char *words[9];
        int wanted; /* 100 + rank: one of several */
    } cases[] = {
        {{NULL}, 0},
        {{"PMI_RANK", "1"}, 0},
        {{"PMIX_RANK", "1"}, 0},
        {{"PMI_RANK", "1", "PMI_SIZE", "1"}, 0},
        {{"PMI_RANK", "1", "PMI_SIZE", "many"}, 0},
        {{"PMI_SIZE", "4"}, 0},
        {{"PMI_RANK", "1", "PMI_SIZE", "2"}, 101},
        {{"PMIX_RANK", "0", "SLURM_STEP_NUM_TASKS", "1"}, 0},
        {{"PMIX_RANK", "3", "SLURM_STEP_NUM_TASKS", "8"}, 103},
        {{"OMPI_COMM_WORLD_SIZE", "1", "OMPI_COMM_WORLD_RANK", "0"}, 100},
        {{"OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_RANK", "2", "PMIX_RANK", "7"}, 102},
        {{"PMI_RANK", "1", "PMI_SIZE", "2", "KNEE_RUNTIME", "self"}, 0},
        {{"KNEE_RUNTIME", "mpi"}, 100},
        {{"PMI_RANK", "1", "PMI_SIZE", "2", "KNEE_RUNTIME", ""}, 101},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(told_by(cases[i].words), cases[i].wanted);
}

TEST(alone_waiting_for_nobody_is_an_error)
{
    if (strcmp(rt->name, "self") != 0)
        return;
    char byte = 0;
    struct knee_request *request = NULL;
    assert_false(rt->send_start(rt, &byte, 1, 1, 0, &request));
    assert_true(rt->receive_start(rt, &byte, 1, 0, 9, &request));
    assert_false(rt->wait(rt, &request));
    assert_true(rt->fault[0]);
    assert_true(rt->send_start(rt, "x", 1, 0, 9, &(struct knee_request *){NULL}));
    assert_true(rt->wait(rt, &request));
    assert_int_equal(byte, 'x');
}

FIXTURE(open_runtime, close_runtime)
