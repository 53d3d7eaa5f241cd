/* SPDX-License-Identifier: MIT */
/*
 * Writes the made-up roll call of a job, one file per rank, for benchmarks: lines of NCCL Inspector
 * or dumps of PyTorch's Flight Recorder as JSON. Rank 17 comes last at every fourth collective and
 * keeps the others waiting; everything else is noise.
 *
 *   gen_rollcall inspector|flight FOLDER [RANKS [CALLS]]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE = 17 };

static uint64_t state = 1;

static int below(int most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)most);
}

/* How long a rank stays: the wire, and what it waits for rank 17. */
static int stay_us(int rank, int call)
{
    bool waits = call % 4 == 0 && rank != LATE;
    return 1100 + below(40) + (waits ? 800 : 0);
}

static void inspector_line(FILE *file, int rank, int ranks, int call)
{
    int us = stay_us(rank, call);
    double gbs = 268435456e-3 / us;
    fprintf(file,
            "{\"header\":{\"id\":\"0x9e7a479f95a66c\",\"comm_name\":\"data_parallel\",\"rank\":%d,"
            "\"n_ranks\":%d,\"nnodes\":%d},\"metadata\":{\"inspector_output_format_version\":"
            "\"v4.0\",\"git_rev\":\"\",\"rec_mechanism\":\"nccl_profiler_interface\","
            "\"dump_timestamp_us\":%lld,\"hostname\":\"node%d\",\"pid\":%d},\"coll_perf\":{"
            "\"coll\":\"AllReduce\",\"coll_sn\":%d,\"coll_msg_size_bytes\":268435456,"
            "\"coll_exec_time_us\":%d,\"coll_timing_source\":\"kernel_gpu\","
            "\"coll_algobw_gbs\":%.6f,\"coll_busbw_gbs\":%.6f}}\n",
            rank, ranks, (ranks + 7) / 8, 1752867229276385 + (long long)call, rank / 8, 4100 + rank,
            call, us, gbs, 2 * gbs);
}

static void flight_dump(FILE *file, int rank, int ranks, int calls)
{
    fprintf(file,
            "{\"version\":\"2.4\",\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"default_pg\","
            "\"ranks\":\"[");
    for (int r = 0; r < ranks; r++)
        fprintf(file, "%s%d", r ? ", " : "", r);
    fprintf(file, "]\"}},\"pg_status\":{},\"rank\":%d,\"entries\":[", rank);
    for (int call = 0; call < calls; call++)
        fprintf(file,
                "%s\n{\"record_id\":%d,\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],"
                "\"collective_seq_id\":%d,\"p2p_seq_id\":0,\"op_id\":%d,\"profiling_name\":"
                "\"nccl:all_reduce\",\"input_sizes\":[[67108864]],\"input_dtypes\":[\"Float\"],"
                "\"output_sizes\":[[67108864]],\"output_dtypes\":[\"Float\"],"
                "\"time_created_ns\":%lld,\"time_discovered_started_ns\":null,"
                "\"time_discovered_completed_ns\":null,\"duration_ms\":%.3f,\"timeout_ms\":600000,"
                "\"state\":\"completed\",\"retired\":true,\"is_p2p\":false,\"frames\":[{\"name\":"
                "\"all_reduce\",\"filename\":\"torch/distributed/distributed_c10d.py\",\"line\":"
                "2806},{\"name\":\"step\",\"filename\":\"train.py\",\"line\":88}]}",
                call ? "," : "", call, call, call, 1752867229276385000 + 2000000LL * call,
                1e-3 * stay_us(rank, call));
    fputs("]}\n", file);
}

int main(int argc, char **argv)
{
    int ranks = argc > 3 ? atoi(argv[3]) : 1024, calls = argc > 4 ? atoi(argv[4]) : 10000;
    bool flight = argc > 1 && strcmp(argv[1], "flight") == 0;
    if (argc < 3 || ranks < 1 || calls < 1) {
        fputs("gen_rollcall inspector|flight FOLDER [RANKS [CALLS]]\n", stderr);
        return 2;
    }
    for (int rank = 0; rank < ranks; rank++) {
        char name[4096];
        snprintf(name, sizeof name, flight ? "%s/nccl_trace_rank_%d" : "%s/node-pid%d.log", argv[2],
                 rank);
        FILE *file = fopen(name, "w");
        if (!file) {
            perror(name);
            return 4;
        }
        for (int call = 0; call < calls && !flight; call++)
            inspector_line(file, rank, ranks, call);
        if (flight)
            flight_dump(file, rank, ranks, calls);
        if (fclose(file)) {
            perror(name);
            return 4;
        }
    }
    return 0;
}
