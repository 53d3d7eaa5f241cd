/* SPDX-License-Identifier: MIT */
/*
 * The writer's round: empty the queue, find steps, sample some of them, write lines.
 *
 * A sample of step N begins while step N - 1 runs, so that the recording is on when N begins, and
 * ends after N + 1 has begun; what the GPU still has to do then is waited for, and then CUPTI
 * leaves. What it cost is seen in the durations of the steps from its coming to its going against
 * those of the others; `every` follows from that and the budget. It is a power of two and steps are
 * sampled whose number it divides, so that ranks sample the same steps though each goes by its own
 * costs.
 */
#include "live/live_agent.h"

#include "live/live_slots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RECENT = 8192,    /* collectives remembered for a sample, and their steps */
    PLAIN_STEPS = 64, /* durations of steps without a sample */
    SAMPLES = 16,     /* costs of samples */
    LEAST_EVERY = 8,
    FIRST_EVERY = 16,    /* the first sample is soon ... */
    ASSUMED_EVERY = 128, /* ... and the next when its cost can be told from chance */
    MOST_EVERY = 1 << 16,
    FIRST_TRIES = 3, /* this thread may come too late */
    NEWEST = 4,      /* steps in a row that are all longer, or all shorter: the job has changed */
    SOON = 2,        /* samples then: ranks may see it a step apart, and miss one */
    KNOWN_FROM = 16, /* steps, before that can be said */
    LINES_A_SECOND = 2000,
    AROUND = 3, /* steps that are held against the others where all are recorded */
};
#define REGULAR     0.75 /* of the budget; the rest is for changes */
#define LINE_NS     INT64_C(50000000)
#define INTERVAL_NS INT64_C(1000000000)
#define RETRY_NS    INT64_C(10000000000)
#define TRAIL_NS    INT64_C(5000000)
#define ALWAYS_NS   INT64_C(500000000) /* where all steps are recorded, one is written so often */

enum phase {
    WAITING,
    ARMED,     /* recording, in the step before */
    RECORDING, /* in the step */
    TRAILING,  /* after it: what comes first of the next step says where it ends on the GPU */
    DRAINING   /* recording no more; the GPU is still at it */
};

/* What one line of steps.jsonl says. */
struct line {
    int64_t at_ns, number, steps, dur_ns;
    uint64_t calls, bytes, seq;
    uint16_t comm;
};

static struct live_period *period;
static struct live_event *recent; /* a ring */
static uint64_t recent_count;
static struct {
    uint64_t key;
    int64_t step;
} step_of[RECENT];

static struct live_boundary last; /* the step that runs now; number -1: none */
static bool begun;
static struct line gathered, held;

static struct {
    enum phase phase;
    int64_t number, retry_ns;
    int64_t on_ns; /* since when it records */
    struct live_boundary start, end;
    int quiet_rounds, boundaries;
    bool asked; /* CUPTI, for what it holds of this sample */
    uint64_t first_recent;
    bool costs; /* its steps are added up, until CUPTI has left again */
    int64_t around_ns, around_steps;
    int64_t done, written; /* samples so far, and those that brought a trace */
} sample;

static int64_t plain_ns[PLAIN_STEPS], cost_ns[SAMPLES], newest_ns[NEWEST];
static size_t plain_count, cost_count, newest_count;
static int soon; /* samples that a change asks for */
static int64_t cost_in_all_ns, every = ASSUMED_EVERY;
static int64_t calls_every = 1, rate_since_ns;
static uint64_t rate_calls, left_out;
static struct live_gpu gpu;
static int64_t gpu_read_ns, flushed_ns, swept_ns, first_ns;
static bool gpu_told;

/* ---- Medians ---- */

static int compare(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int64_t median(const int64_t *values, size_t count)
{
    int64_t sorted[PLAIN_STEPS];
    if (!count)
        return 0;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted[count / 2];
}

/* Half the distance between the quartiles. */
static int64_t spread(const int64_t *values, size_t count)
{
    int64_t sorted[PLAIN_STEPS];
    if (count < 4)
        return 0;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, compare);
    return (sorted[count * 3 / 4] - sorted[count / 4]) / 2;
}

static size_t kept(size_t count, size_t room)
{
    return count < room ? count : room;
}

/* ---- How often to sample ---- */

static int64_t plain_step_ns(void)
{
    return median(plain_ns, kept(plain_count, PLAIN_STEPS));
}

/* A sample costs its median and what chance leaves open, a fifth of a percent of a step at least.
 */
static void choose_every(void)
{
    size_t count = kept(cost_count, SAMPLES);
    int64_t step_ns = plain_step_ns();
    if (!count || !step_ns)
        return;
    double cost = (double)median(cost_ns, count) + (double)spread(cost_ns, count) / (double)count;
    double least = 0.002 * (double)step_ns;
    double budget = REGULAR * live_config()->budget;
    double wanted = (cost > least ? cost : least) / (budget * (double)step_ns);
    for (every = LEAST_EVERY; (double)every < wanted && every < MOST_EVERY;)
        every *= 2;
}

static void note_cost(void)
{
    int64_t cost = sample.around_ns - sample.around_steps * plain_step_ns();
    cost_in_all_ns += cost > 0 || cost_in_all_ns + cost > 0 ? cost : -cost_in_all_ns;
    if (++sample.done > 1) /* the first one loads libraries: it is paid once */
        cost_ns[cost_count++ % SAMPLES] = cost;
    choose_every();
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* Of the job's time so far, with `more_ns` to come. */
static double spent_share(int64_t now_ns, int64_t more_ns)
{
    return share((double)(live_took_in_all_ns() + cost_in_all_ns + more_ns),
                 (double)(now_ns - first_ns));
}

/* The newest steps all differ from the usual one to the same side, by a tenth of it or more. */
static bool has_changed(void)
{
    int64_t usual_ns = plain_step_ns();
    int longer = 0, shorter = 0;
    for (size_t i = 0; i < NEWEST; i++) {
        longer += newest_ns[i] > usual_ns + usual_ns / 10;
        shorter += newest_ns[i] < usual_ns - usual_ns / 10;
    }
    return longer == NEWEST || shorter == NEWEST;
}

static void note_plain(int64_t dur_ns)
{
    plain_ns[plain_count++ % PLAIN_STEPS] = dur_ns;
    newest_ns[newest_count++ % NEWEST] = dur_ns;
    if (plain_count < KNOWN_FROM || newest_count < NEWEST || !has_changed())
        return;
    memcpy(plain_ns, newest_ns, sizeof newest_ns); /* this is usual from now on */
    plain_count = NEWEST;
    newest_count = 0;
    soon = SOON;
}

static void note_duration(int64_t dur_ns)
{
    if (sample.costs) {
        sample.around_ns += dur_ns;
        sample.around_steps++;
        sample.costs =
            live_config()->always ? sample.around_steps < AROUND : sample.phase != WAITING;
        if (!sample.costs)
            note_cost();
    } else if (sample.phase == WAITING || live_config()->always)
        note_plain(dur_ns);
}

/* So many steps before a sample its recording begins: this thread looks every 20 ms. */
static int64_t ahead(void)
{
    enum { LOOK_NS = 30000000, MOST_AHEAD = 64 };
    int64_t step_ns = plain_step_ns();
    double steps = step_ns > 0 ? LOOK_NS * live_config()->clock_scale / (double)step_ns : 0;
    return 1 + (steps < MOST_AHEAD ? (int64_t)steps : MOST_AHEAD);
}

static bool is_mpi(void)
{
    return live_about().source == LIVE_FROM_MPI;
}

/* What the next sample will cost, by what others did. */
static int64_t next_cost_ns(void)
{
    int64_t ns = cost_count ? median(cost_ns, kept(cost_count, SAMPLES)) : cost_in_all_ns;
    return ns > 0 ? ns : 0;
}

/* The first sample is always taken, in three tries at most; after that what they cost so far, and
 * the next with them, must be within the budget. A job that has changed does not wait for the
 * latter: its cause is wanted now. Without a GPU they cost nothing. */
static bool is_first(void)
{
    return !sample.written && sample.done < FIRST_TRIES;
}

static bool can_pay(void)
{
    double needs = spent_share(live_now_ns(), soon ? 0 : next_cost_ns());
    return is_first() || is_mpi() || needs < live_config()->budget;
}

static bool wants_sample(int64_t number)
{
    int64_t often = every;
    if (live_config()->always)
        return live_now_ns() - sample.start.at_ns > ALWAYS_NS;
    else if (sample.retry_ns || soon) /* it was somebody else's: as soon as that may have changed */
        often = LEAST_EVERY;
    else if (is_first())
        often = FIRST_EVERY;
    return number % often == 0 && (plain_count >= 8 || soon) && can_pay();
}

/* ---- Lines ---- */

static void put_gpu(struct knee_text *text)
{
    if (!gpu.fresh)
        return;
    gpu.fresh = false;
    knee_text_printf(text, ", \"gpu_s\": %.6f", gpu.interval_s);
    if (gpu.energy_j >= 0)
        knee_text_printf(text, ", \"energy_j\": %.3f", gpu.energy_j);
    if (gpu.power_w >= 0)
        knee_text_printf(text, ", \"power_w\": %.1f", gpu.power_w);
    if (gpu.sm_mhz >= 0)
        knee_text_printf(text, ", \"sm_mhz\": %d, \"throttle\": %" PRIu64, gpu.sm_mhz,
                         gpu.throttle);
    if (gpu.temp_c >= 0)
        knee_text_printf(text, ", \"temp_c\": %d", gpu.temp_c);
}

/* One step in so many; 0: none. */
static int64_t recorded_every(void)
{
    if (!live_config()->cupti && !is_mpi())
        return 0;
    return live_config()->always ? 1 : every;
}

static void put_agent(struct knee_text *text, int64_t now_ns)
{
    struct timespec cpu = {0, 0};
    double elapsed = (double)(now_ns - first_ns);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    knee_text_printf(
        text, ", \"overhead\": %.7f, \"cpu\": %.6f, \"every\": %" PRId64 ", \"left_out\": %" PRIu64,
        spent_share(now_ns, 0), share((double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec, elapsed),
        recorded_every(), left_out + live_pushed_too_many() + live_slots_lost());
}

static void put_labels(struct knee_text *text, const char *file, const struct live_recording *r,
                       const struct live_labels *labels)
{
    static const char *const names[] = {"compute_s", "transfer_s", "wait_s", "copy_s",
                                        "starved_s", "host_s",     "idle_s"};
    size_t work = 0;
    for (size_t i = 0; i < r->count; i++)
        work += r->records[i].kind != LIVE_HOST_CALL;
    knee_text_printf(text, ", \"trace\": \"%s\", \"kernels\": %zu, \"lost\": %" PRIu64, file, work,
                     r->lost);
    if (!labels->known)
        return;
    for (size_t i = 0; i < 7; i++)
        knee_text_printf(text, ", \"%s\": %.9f", names[i], (double)labels->label_ns[i] / 1e9);
    knee_text_printf(text, ", \"comm_s\": %.9f, \"window_s\": %.9f", (double)labels->comm_ns / 1e9,
                     (double)labels->window_ns / 1e9);
}

static void begin_line(struct knee_text *text, const struct line *line, bool sampled)
{
    struct live_comm comm = live_comm(line->comm);
    knee_text_printf(text,
                     "{\"t_ns\": %" PRId64 ", \"step\": %" PRId64 ", \"steps\": %" PRId64
                     ", \"step_s\": %.9f, \"calls\": %" PRIu64 ", \"bytes\": %" PRIu64,
                     line->at_ns, line->number, line->steps,
                     (double)line->dur_ns / 1e9 / (double)(line->steps ? line->steps : 1),
                     line->calls, line->bytes);
    if (line->number >= 0)
        knee_text_printf(text, ", \"comm\": \"%" PRIx64 "\", \"seq\": %" PRIu64, comm.id,
                         line->seq);
    knee_text_printf(text, ", \"sampled\": %s", sampled ? "true" : "false");
}

static void end_line(struct knee_text *text, int64_t now_ns)
{
    put_gpu(text);
    put_agent(text, now_ns);
    knee_text_puts(text, "}\n");
    live_files_step(text);
    knee_text_release(text);
}

static void write_line(struct line *line)
{
    struct knee_text text = {0};
    begin_line(&text, line, false);
    end_line(&text, line->at_ns);
    *line = (struct line){.number = -1};
}

static void put_word(struct knee_text *text, const char *name, const char *word)
{
    if (*word)
        knee_text_printf(text, ", \"%s\": \"%s\"", name, word);
}

static void write_call(const struct live_event *e, int64_t step)
{
    struct live_comm comm = live_comm(e->comm);
    struct knee_text text = {0};
    knee_text_printf(&text,
                     "{\"comm\": \"%" PRIx64 "\", \"seq\": %" PRIu64
                     ", \"op\": \"%s\", \"bytes\": %" PRIu64 ", \"start_ns\": %" PRId64
                     ", \"dur_ns\": %" PRId64 ", \"step\": %" PRId64,
                     comm.id, e->seq, live_op_name(e->op), e->count * live_type_bytes(e->type),
                     e->at_ns, e->dur_ns, step);
    if (!e->pair)
        knee_text_printf(&text, ", \"sn\": %" PRIu64, e->sn);
    else
        knee_text_printf(&text, ", \"peer\": %d", e->peer);
    if (e->gpu_ns)
        knee_text_printf(&text, ", \"gpu_ns\": %" PRId64, e->gpu_ns);
    if (e->longest_ns)
        knee_text_printf(&text, ", \"ch_ns\": [%" PRIu32 ", %" PRIu32 "]", e->shortest_ns,
                         e->longest_ns);
    put_word(&text, "algo", live_algo_name(e->algo));
    put_word(&text, "proto", live_proto_name(e->proto));
    if (e->channels)
        knee_text_printf(&text, ", \"channels\": %d", e->channels);
    knee_text_printf(&text, ", \"rank\": %d, \"n\": %d}\n", comm.rank, comm.size);
    live_files_call(&text);
    knee_text_release(&text);
}

/* ---- Samples ---- */

static bool recorder_begins(void)
{
    static int told;
    if (is_mpi())
        return true;
    if (!live_config()->cupti)
        return false;
    switch (live_cupti_begin()) {
    case LIVE_CUPTI_ON: return true;
    case LIVE_CUPTI_TAKEN:
        live_say(&told, "another profiler has CUPTI; sampling goes on when it has let go of it");
        break;
    default: break;
    }
    sample.retry_ns = live_now_ns() + RETRY_NS;
    return false;
}

static void arm(int64_t number)
{
    if (live_now_ns() < sample.retry_ns)
        return;
    sample.retry_ns = 0;
    sample.first_recent = recent_count;
    if (!recorder_begins())
        return;
    sample.phase = ARMED;
    sample.number = number;
    sample.on_ns = live_now_ns();
    if (live_config()->always && !is_mpi())
        live_cupti_forget(sample.on_ns - plain_step_ns());
    sample.around_ns = sample.around_steps = 0;
    sample.costs = !live_config()->always || !sample.done; /* always: CUPTI comes but once */
    soon -= soon > 0;
}

static void forget_sample(void)
{
    if (!is_mpi()) {
        live_cupti_end();
        live_cupti_forget(INT64_MAX);
        live_cupti_leave();
    }
    sample.phase = WAITING;
}

/* The collectives of the sample, in the order in which they came. */
static size_t copy_recent(struct live_event **out)
{
    uint64_t first = sample.first_recent;
    if (recent_count - first > RECENT)
        first = recent_count - RECENT;
    size_t count = (size_t)(recent_count - first);
    *out = malloc((count + 1) * sizeof **out);
    for (size_t i = 0; *out && i < count; i++)
        (*out)[i] = recent[(first + i) % RECENT];
    return *out ? count : 0;
}

static void write_sample(void)
{
    struct live_about about = live_about();
    struct live_event *calls = NULL;
    size_t count = copy_recent(&calls);
    struct live_sample taken = {
        .start = sample.start, .end = sample.end, .calls = calls, .call_count = count};
    struct knee_text trace = {0}, text = {0};
    struct live_labels labels = {0};
    char file[64] = "";
    if (about.rank < 0)
        about.rank = live_comm(0).rank;
    if (about.world < 0)
        about.world = live_comm(0).size;
    if (!is_mpi())
        taken.recording = live_cupti_recording();
    live_trace_write(&taken, &about, &trace);
    if (!trace.failed && live_files_trace(sample.number, &trace, file, sizeof file))
        live_trace_label(&trace, sample.number, &labels);
    begin_line(&text, &held, file[0] != '\0');
    if (file[0])
        put_labels(&text, file, &taken.recording, &labels);
    sample.written += file[0] != '\0';
    end_line(&text, held.at_ns);
    knee_text_release(&trace);
    free(calls);
}

/* Always: the recording goes on. */
static void next_sample(void)
{
    if (live_config()->always)
        sample.phase = WAITING;
    else
        forget_sample();
}

/* What was launched last may not have run yet: two looks that bring nothing new, a step later.
 * Where all is recorded every look brings something new: two steps later it is over. */
static bool is_drained(int64_t waited_ns)
{
    bool goes_on = live_config()->always && !is_mpi();
    return goes_on || sample.quiet_rounds >= 2 || waited_ns > 5 * INTERVAL_NS;
}

/* CUPTI is asked once, so that it closes its buffer, and then when all may be there. */
static void drain(void)
{
    int64_t waited_ns = live_now_ns() - sample.end.at_ns;
    bool settled =
        sample.boundaries > 1 + live_config()->always || waited_ns > INTERVAL_NS || is_mpi();
    size_t news = is_mpi() ? 0 : live_cupti_drain(settled || !sample.asked);
    sample.asked = true;
    sample.quiet_rounds = news || !settled ? 0 : sample.quiet_rounds + 1;
    if (!settled || !is_drained(waited_ns))
        return;
    if (!is_mpi() && !live_config()->always)
        live_cupti_leave();
    write_sample();
    next_sample();
}

/* ---- Steps ---- */

static void hold_or_write(const struct live_boundary *b, bool sampled)
{
    gathered.at_ns = b->at_ns;
    gathered.number = last.number;
    gathered.comm = last.comm;
    gathered.seq = last.seq;
    gathered.steps++;
    gathered.dur_ns += b->at_ns - last.at_ns;
    if (sampled) {
        held = gathered;
        gathered = (struct line){.number = -1};
    } else if (gathered.dur_ns >= LINE_NS || sample.phase == ARMED) {
        write_line(&gathered);
    }
}

static void on_boundary(const struct live_boundary *b)
{
    bool ends_sample = begun && sample.phase == RECORDING && last.number == sample.number;
    if (begun) {
        note_duration(b->at_ns - last.at_ns);
        hold_or_write(b, ends_sample);
    } else {
        gathered = (struct line){.number = -1}; /* of no step */
    }
    begun = true;
    last = *b;
    if (ends_sample) {
        sample.phase = TRAILING;
        sample.end = *b;
        sample.quiet_rounds = sample.boundaries = 0;
        sample.asked = false;
    } else if (sample.phase == ARMED && b->number == sample.number && b->at_ns > sample.on_ns) {
        sample.phase = RECORDING;
        sample.start = *b;
    } else if (sample.phase == ARMED && b->number >= sample.number) {
        forget_sample(); /* this thread was too late for it; it costs what it costs */
    } else if (sample.phase == WAITING && wants_sample(b->number + ahead())) {
        arm(b->number + ahead());
    }
    sample.boundaries += sample.phase == DRAINING || sample.phase == TRAILING;
}

static void stop_trailing(void)
{
    if (!is_mpi() && !live_config()->always)
        live_cupti_end();
    sample.phase = DRAINING;
}

/* ---- Events ---- */

static size_t place_of(const struct live_event *e, uint64_t *key)
{
    *key = (e->seq * UINT64_C(0x9fb21c651e98df25)) ^ ((uint64_t)e->comm << 48) ^
           ((uint64_t)e->op << 40) ^ (uint64_t)(uint32_t)e->peer;
    return (size_t)((*key * UINT64_C(0x9fb21c651e98df25)) >> 51);
}

static void on_enqueued(const struct live_event *e)
{
    struct live_boundary boundary;
    uint64_t key;
    if (sample.phase == TRAILING)
        stop_trailing();
    if (live_period_take(period, e, &boundary))
        on_boundary(&boundary);
    size_t at = place_of(e, &key);
    step_of[at].key = key;
    step_of[at].step = begun ? last.number : -1;
    if (!is_mpi())
        recent[recent_count++ % RECENT] = *e;
    gathered.calls++;
    gathered.bytes += e->count * live_type_bytes(e->type);
}

/* More lines than that a second: only of some steps, the same on all ranks. */
static void watch_rate(int64_t now_ns)
{
    rate_calls++;
    if (now_ns - rate_since_ns < 5 * INTERVAL_NS)
        return;
    double rate = (double)rate_calls * 1e9 / (double)(now_ns - rate_since_ns);
    for (calls_every = 1; rate > LINES_A_SECOND * (double)calls_every && calls_every < MOST_EVERY;)
        calls_every *= 2;
    rate_calls = 0;
    rate_since_ns = now_ns;
}

/* In a replayed CUDA graph the GPU's times are those of an earlier replay, or a mixture: a
 * collective begins no earlier than the one before it on its communicator, and its channels run
 * side by side.
 */
static bool is_stale(const struct live_event *e)
{
    static struct {
        uint64_t seq;
        int64_t gpu_ns;
        uint32_t launch;
    } newest[LIVE_COMMS];
    size_t row = e->comm % LIVE_COMMS;
    bool mixed = e->longest_ns && e->dur_ns > 2 * (int64_t)e->longest_ns;
    if (e->pair || e->seq < newest[row].seq)
        return mixed;
    bool together = e->launch && e->launch == newest[row].launch;
    bool stale = mixed || (!together && newest[row].gpu_ns && e->gpu_ns <= newest[row].gpu_ns);
    newest[row].seq = e->seq;
    newest[row].launch = e->launch;
    newest[row].gpu_ns = e->gpu_ns > newest[row].gpu_ns ? e->gpu_ns : newest[row].gpu_ns;
    return stale;
}

static void on_ran(struct live_event *e)
{
    uint64_t key;
    size_t at = place_of(e, &key);
    if (e->gpu_ns && is_stale(e)) {
        e->dur_ns = -1;
        e->gpu_ns = 0;
        e->shortest_ns = e->longest_ns = 0;
    }
    int64_t step = step_of[at].key == key ? step_of[at].step : -1;
    if (is_mpi())
        recent[recent_count++ % RECENT] = *e;
    watch_rate(e->at_ns);
    if (step < 0 || step % calls_every == 0)
        write_call(e, step);
    else
        left_out++;
}

/* ---- The round ---- */

/* Paused: as if nothing had been seen, but for the period, which is still the job's. */
static void look_for_pause(int64_t now_ns)
{
    static int64_t looked_ns;
    static bool was;
    if (now_ns - looked_ns < INTERVAL_NS / 2)
        return;
    looked_ns = now_ns;
    bool is = live_look_for_pause();
    if (is && !was) {
        if (sample.phase != WAITING || live_config()->always) /* which records all the time */
            forget_sample();
        begun = false;
        gathered = (struct line){.number = -1};
        sample.costs = false;
    }
    was = is;
}

static bool ready(void)
{
    if (!period && !(period = live_period_new())) {
        live_off("out of memory; recording is off");
        return false;
    }
    if (!recent && !(recent = calloc(RECENT, sizeof *recent))) {
        live_off("out of memory; recording is off");
        return false;
    }
    if (!first_ns) {
        first_ns = flushed_ns = rate_since_ns = live_now_ns();
        last.number = gathered.number = -1;
    }
    return true;
}

/* Before steps are known, or when none ends any more: a line a second and one at the end, if
 * anything happened. */
static void write_interval(int64_t now_ns, bool is_last)
{
    static int64_t since_ns;
    since_ns = since_ns ? since_ns : now_ns;
    if (begun || (now_ns - since_ns < INTERVAL_NS && !is_last))
        return;
    if (gathered.calls) {
        gathered.at_ns = now_ns;
        gathered.dur_ns = now_ns - since_ns;
        write_line(&gathered);
    }
    since_ns = now_ns;
}

static void look_at_gpu(int64_t now_ns)
{
    if (!live_config()->nvml || is_mpi() || now_ns - gpu_read_ns < 2 * INTERVAL_NS)
        return;
    gpu_read_ns = now_ns;
    live_nvml_read(&gpu);
    if (!gpu_told && live_about().gpu_uuid[0]) {
        gpu_told = true;
        live_files_about();
    }
}

static void empty_queue(void)
{
    struct live_event event;
    for (size_t i = 0; i < 1 << 16 && live_is_on() && live_pull(&event); i++)
        if (event.kind == LIVE_ENQUEUED)
            on_enqueued(&event);
        else
            on_ran(&event);
}

void live_writer_round(bool is_last)
{
    if (!ready())
        return;
    int64_t now_ns = live_now_ns();
    if (is_last || now_ns - swept_ns > INTERVAL_NS / 2) {
        live_slots_sweep(is_last);
        swept_ns = now_ns;
    }
    empty_queue();
    if (sample.phase != DRAINING && live_config()->cupti && !is_mpi())
        live_cupti_drain(false); /* what CUPTI has filled: there are few buffers */
    if (sample.phase == TRAILING && now_ns - sample.end.at_ns > TRAIL_NS)
        stop_trailing();
    else if (sample.phase == DRAINING && !is_last)
        drain();
    else if ((sample.phase == ARMED || sample.phase == RECORDING) &&
             now_ns - sample.on_ns > 60 * INTERVAL_NS)
        forget_sample();
    look_for_pause(now_ns);
    look_at_gpu(now_ns);
    write_interval(now_ns, is_last);
    if (is_last && gathered.steps)
        write_line(&gathered);
    if (is_last || now_ns - flushed_ns > INTERVAL_NS / 2) {
        live_files_flush();
        flushed_ns = now_ns;
    }
}

bool live_writer_hurried(void)
{
    return sample.phase == ARMED || sample.phase == RECORDING || sample.phase == TRAILING;
}

void live_writer_release(void)
{
    live_period_free(period);
    free(recent);
    period = NULL;
    recent = NULL;
    live_files_release();
}
