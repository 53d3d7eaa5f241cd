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

#include "base/order.h"
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
    ASSUMED_EVERY = 128, /* ... and the next when its cost is above the noise */
    MOST_EVERY = 1 << 16,
    FIRST_TRIES = 3, /* this thread may come too late */
    NEWEST = 4,      /* steps in a row that are all longer, or all shorter: the job has changed */
    SOON = 2,        /* samples then: ranks may see it a step apart, and miss one */
    KNOWN_FROM = 16, /* steps, before that can be said */
    LINES_A_SECOND = 2000,
    AROUND = 3, /* steps that are compared with the others where all are recorded */
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

struct live_writer {
    const struct live_recorder *recorder; /* NULL: steps are timed and not sampled */
    struct live_period *period;
    struct live_event recent[RECENT]; /* a ring */
    uint64_t recent_count;
    struct {
        uint64_t key;
        int64_t step;
    } step_of[RECENT];

    struct live_boundary last; /* the step that runs now; number -1: none */
    bool begun;
    struct line gathered, held;

    struct {
        enum phase phase;
        int64_t number, retry_ns;
        int64_t on_ns; /* since when it records */
        struct live_boundary start, end;
        int quiet_rounds, boundaries;
        bool asked; /* the recorder, for what it holds of this sample */
        uint64_t first_recent;
        bool costs; /* its steps are added up, until the recorder has left again */
        int64_t around_ns, around_steps;
        int64_t done, written; /* samples so far, and those that brought a trace */
    } sample;

    int64_t plain_ns[PLAIN_STEPS], cost_ns[SAMPLES], newest_ns[NEWEST];
    size_t plain_count, cost_count, newest_count;
    int soon; /* samples that a change asks for */
    int64_t cost_in_all_ns, every;
    int64_t calls_every, rate_since_ns;
    uint64_t rate_calls, left_out;
    struct live_gpu gpu;
    int64_t gpu_read_ns, flushed_ns, swept_ns, first_ns, pause_looked_ns, interval_since_ns;
    bool gpu_told, paused;
    struct { /* of each communicator, the newest collective on the GPU */
        uint64_t seq;
        int64_t gpu_ns;
        uint32_t launch;
    } newest[LIVE_COMMS];
};

/* ---- Medians ---- */

static int64_t median(const int64_t *values, size_t count)
{
    int64_t sorted[PLAIN_STEPS];
    if (!count)
        return 0;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, knee_ascending_whole);
    return sorted[count / 2];
}

/* Half the distance between the quartiles. */
static int64_t spread(const int64_t *values, size_t count)
{
    int64_t sorted[PLAIN_STEPS];
    if (count < 4)
        return 0;
    memcpy(sorted, values, count * sizeof *values);
    qsort(sorted, count, sizeof *sorted, knee_ascending_whole);
    return (sorted[count * 3 / 4] - sorted[count / 4]) / 2;
}

static size_t kept(size_t count, size_t room)
{
    return count < room ? count : room;
}

/* ---- How often to sample ---- */

static int64_t plain_step_ns(struct live_writer *w)
{
    return median(w->plain_ns, kept(w->plain_count, PLAIN_STEPS));
}

/* A sample costs its median and what chance leaves open, a fifth of a percent of a step at
 * least.
 */
static void choose_every(struct live_writer *w)
{
    size_t count = kept(w->cost_count, SAMPLES);
    int64_t step_ns = plain_step_ns(w);
    if (!count || !step_ns)
        return;
    double cost =
        (double)median(w->cost_ns, count) + (double)spread(w->cost_ns, count) / (double)count;
    double least = 0.002 * (double)step_ns;
    double budget = REGULAR * live_config()->budget;
    double wanted = (cost > least ? cost : least) / (budget * (double)step_ns);
    for (w->every = LEAST_EVERY; (double)w->every < wanted && w->every < MOST_EVERY;)
        w->every *= 2;
}

static void note_cost(struct live_writer *w)
{
    int64_t cost = w->sample.around_ns - w->sample.around_steps * plain_step_ns(w);
    w->cost_in_all_ns += cost > 0 || w->cost_in_all_ns + cost > 0 ? cost : -w->cost_in_all_ns;
    if (++w->sample.done > 1) /* the first one loads libraries: it is paid once */
        w->cost_ns[w->cost_count++ % SAMPLES] = cost;
    choose_every(w);
}

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* Of the job's time so far, with `more_ns` to come. */
static double spent_share(struct live_writer *w, int64_t now_ns, int64_t more_ns)
{
    return share((double)(live_took_in_all_ns() + w->cost_in_all_ns + more_ns),
                 (double)(now_ns - w->first_ns));
}

/* The newest steps all differ from the usual one to the same side, by a tenth of it or more. */
static bool has_changed(struct live_writer *w)
{
    int64_t usual_ns = plain_step_ns(w);
    int longer = 0, shorter = 0;
    for (size_t i = 0; i < NEWEST; i++) {
        longer += w->newest_ns[i] > usual_ns + usual_ns / 10;
        shorter += w->newest_ns[i] < usual_ns - usual_ns / 10;
    }
    return longer == NEWEST || shorter == NEWEST;
}

static void note_plain(struct live_writer *w, int64_t dur_ns)
{
    w->plain_ns[w->plain_count++ % PLAIN_STEPS] = dur_ns;
    w->newest_ns[w->newest_count++ % NEWEST] = dur_ns;
    if (w->plain_count < KNOWN_FROM || w->newest_count < NEWEST || !has_changed(w))
        return;
    memcpy(w->plain_ns, w->newest_ns, sizeof w->newest_ns); /* this is usual from now on */
    w->plain_count = NEWEST;
    w->newest_count = 0;
    w->soon = SOON;
}

static void note_duration(struct live_writer *w, int64_t dur_ns)
{
    if (w->sample.costs) {
        w->sample.around_ns += dur_ns;
        w->sample.around_steps++;
        w->sample.costs =
            live_config()->always ? w->sample.around_steps < AROUND : w->sample.phase != WAITING;
        if (!w->sample.costs)
            note_cost(w);
    } else if (w->sample.phase == WAITING || live_config()->always)
        note_plain(w, dur_ns);
}

/* So many steps before a sample its recording begins: this thread looks every 20 ms. */
static int64_t ahead(struct live_writer *w)
{
    enum { LOOK_NS = 30000000, MOST_AHEAD = 64 };
    int64_t step_ns = plain_step_ns(w);
    double steps = step_ns > 0 ? LOOK_NS * live_config()->clock_scale / (double)step_ns : 0;
    return 1 + (steps < MOST_AHEAD ? (int64_t)steps : MOST_AHEAD);
}

/* What the next sample will cost, by what others did. */
static int64_t next_cost_ns(struct live_writer *w)
{
    int64_t ns =
        w->cost_count ? median(w->cost_ns, kept(w->cost_count, SAMPLES)) : w->cost_in_all_ns;
    return ns > 0 ? ns : 0;
}

/* The first sample is always taken, in three tries at most; after that what they cost so far,
 * and the next with them, must be within the budget. A job that has changed does not wait for the
 * latter: its cause is wanted now. Without a GPU they cost nothing. */
static bool is_first(struct live_writer *w)
{
    return !w->sample.written && w->sample.done < FIRST_TRIES;
}

static bool can_pay(struct live_writer *w)
{
    double needs = spent_share(w, live_now_ns(), w->soon ? 0 : next_cost_ns(w));
    return is_first(w) || !w->recorder->has_gpu || needs < live_config()->budget;
}

static bool wants_sample(struct live_writer *w, int64_t number)
{
    int64_t often = w->every;
    if (!w->recorder)
        return false;
    if (live_config()->always)
        return live_now_ns() - w->sample.start.at_ns > ALWAYS_NS;
    else if (w->sample.retry_ns || w->soon) /* another tool was the client: try again soon */
        often = LEAST_EVERY;
    else if (is_first(w))
        often = FIRST_EVERY;
    return number % often == 0 && (w->plain_count >= 8 || w->soon) && can_pay(w);
}

/* ---- Lines ---- */

static void put_gpu(struct live_writer *w, struct knee_text *text)
{
    if (!w->gpu.fresh)
        return;
    w->gpu.fresh = false;
    knee_text_printf(text, ", \"gpu_s\": %.6f", w->gpu.interval_s);
    if (w->gpu.energy_j >= 0)
        knee_text_printf(text, ", \"energy_j\": %.3f", w->gpu.energy_j);
    if (w->gpu.power_w >= 0)
        knee_text_printf(text, ", \"power_w\": %.1f", w->gpu.power_w);
    if (w->gpu.sm_mhz >= 0)
        knee_text_printf(text, ", \"sm_mhz\": %d, \"throttle\": %" PRIu64, w->gpu.sm_mhz,
                         w->gpu.throttle);
    if (w->gpu.temp_c >= 0)
        knee_text_printf(text, ", \"temp_c\": %d", w->gpu.temp_c);
}

/* One step in so many; 0: none. */
static int64_t recorded_every(struct live_writer *w)
{
    return !w->recorder ? 0 : live_config()->always ? 1 : w->every;
}

static void put_agent(struct live_writer *w, struct knee_text *text, int64_t now_ns)
{
    struct timespec cpu = {0, 0};
    double elapsed = (double)(now_ns - w->first_ns);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    knee_text_printf(
        text, ", \"overhead\": %.7f, \"cpu\": %.6f, \"every\": %" PRId64 ", \"left_out\": %" PRIu64,
        spent_share(w, now_ns, 0), share((double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec, elapsed),
        recorded_every(w), w->left_out + live_pushed_too_many() + live_slots_lost());
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

static void end_line(struct live_writer *w, struct knee_text *text, int64_t now_ns)
{
    put_gpu(w, text);
    put_agent(w, text, now_ns);
    knee_text_puts(text, "}\n");
    live_files_step(text);
    knee_text_release(text);
}

static void write_line(struct live_writer *w, struct line *line)
{
    struct knee_text text = {0};
    begin_line(&text, line, false);
    end_line(w, &text, line->at_ns);
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

static void arm(struct live_writer *w, int64_t number)
{
    if (live_now_ns() < w->sample.retry_ns)
        return;
    w->sample.retry_ns = 0;
    w->sample.first_recent = w->recent_count;
    if (!w->recorder->begin()) {
        w->sample.retry_ns = live_now_ns() + RETRY_NS;
        return;
    }
    w->sample.phase = ARMED;
    w->sample.number = number;
    w->sample.on_ns = live_now_ns();
    w->recorder->forget(w->sample.on_ns - plain_step_ns(w));
    w->sample.around_ns = w->sample.around_steps = 0;
    w->sample.costs = !live_config()->always || !w->sample.done; /* always: CUPTI comes but once */
    w->soon -= w->soon > 0;
}

static void forget_sample(struct live_writer *w)
{
    if (w->recorder)
        w->recorder->stop();
    w->sample.phase = WAITING;
}

/* The collectives of the sample, in the order in which they came. */
static size_t copy_recent(struct live_writer *w, struct live_event **out)
{
    uint64_t first = w->sample.first_recent;
    if (w->recent_count - first > RECENT)
        first = w->recent_count - RECENT;
    size_t count = (size_t)(w->recent_count - first);
    *out = malloc((count + 1) * sizeof **out);
    for (size_t i = 0; *out && i < count; i++)
        (*out)[i] = w->recent[(first + i) % RECENT];
    return *out ? count : 0;
}

static void write_sample(struct live_writer *w)
{
    struct live_about about = live_about();
    struct live_event *calls = NULL;
    size_t count = copy_recent(w, &calls);
    struct live_sample taken = {
        .start = w->sample.start, .end = w->sample.end, .calls = calls, .call_count = count};
    struct knee_text trace = {0}, text = {0};
    struct live_labels labels = {0};
    char file[64] = "";
    if (about.rank < 0)
        about.rank = live_comm(0).rank;
    if (about.world < 0)
        about.world = live_comm(0).size;
    taken.recording = w->recorder->recording();
    live_trace_write(&taken, &about, &trace);
    if (!trace.failed && live_files_trace(w->sample.number, &trace, file, sizeof file))
        live_trace_label(&trace, w->sample.number, &labels);
    begin_line(&text, &w->held, file[0] != '\0');
    if (file[0])
        put_labels(&text, file, &taken.recording, &labels);
    w->sample.written += file[0] != '\0';
    end_line(w, &text, w->held.at_ns);
    knee_text_release(&trace);
    free(calls);
}

/* Always: the recording goes on. */
static void next_sample(struct live_writer *w)
{
    if (live_config()->always)
        w->sample.phase = WAITING;
    else
        forget_sample(w);
}

/* What was launched last may not have run yet: two looks that bring nothing new, a step later.
 * Where all is recorded every look brings something new: two steps later it is over. */
static bool is_drained(struct live_writer *w, int64_t waited_ns)
{
    return w->recorder->goes_on || w->sample.quiet_rounds >= 2 || waited_ns > 5 * INTERVAL_NS;
}

/* CUPTI is asked once, so that it closes its buffer, and then when all may be there. */
static void drain(struct live_writer *w)
{
    int64_t waited_ns = live_now_ns() - w->sample.end.at_ns;
    bool settled = w->sample.boundaries > 1 + live_config()->always || waited_ns > INTERVAL_NS ||
                   !w->recorder->has_gpu;
    size_t news = w->recorder->drain(settled || !w->sample.asked);
    w->sample.asked = true;
    w->sample.quiet_rounds = news || !settled ? 0 : w->sample.quiet_rounds + 1;
    if (!settled || !is_drained(w, waited_ns))
        return;
    w->recorder->leave();
    write_sample(w);
    next_sample(w);
}

/* ---- Steps ---- */

static void hold_or_write(struct live_writer *w, const struct live_boundary *b, bool sampled)
{
    w->gathered.at_ns = b->at_ns;
    w->gathered.number = w->last.number;
    w->gathered.comm = w->last.comm;
    w->gathered.seq = w->last.seq;
    w->gathered.steps++;
    w->gathered.dur_ns += b->at_ns - w->last.at_ns;
    if (sampled) {
        w->held = w->gathered;
        w->gathered = (struct line){.number = -1};
    } else if (w->gathered.dur_ns >= LINE_NS || w->sample.phase == ARMED) {
        write_line(w, &w->gathered);
    }
}

static void on_boundary(struct live_writer *w, const struct live_boundary *b)
{
    bool ends_sample =
        w->begun && w->sample.phase == RECORDING && w->last.number == w->sample.number;
    if (w->begun) {
        note_duration(w, b->at_ns - w->last.at_ns);
        hold_or_write(w, b, ends_sample);
    } else {
        w->gathered = (struct line){.number = -1}; /* of no step */
    }
    w->begun = true;
    w->last = *b;
    if (ends_sample) {
        w->sample.phase = TRAILING;
        w->sample.end = *b;
        w->sample.quiet_rounds = w->sample.boundaries = 0;
        w->sample.asked = false;
    } else if (w->sample.phase == ARMED && b->number == w->sample.number &&
               b->at_ns > w->sample.on_ns) {
        w->sample.phase = RECORDING;
        w->sample.start = *b;
    } else if (w->sample.phase == ARMED && b->number >= w->sample.number) {
        forget_sample(w); /* this thread was too late for it; it costs what it costs */
    } else if (w->sample.phase == WAITING && wants_sample(w, b->number + ahead(w))) {
        arm(w, b->number + ahead(w));
    }
    w->sample.boundaries += w->sample.phase == DRAINING || w->sample.phase == TRAILING;
}

static void stop_trailing(struct live_writer *w)
{
    if (w->recorder)
        w->recorder->end();
    w->sample.phase = DRAINING;
}

/* ---- Events ---- */

/* Else calls are remembered when they have run, not when they are enqueued. */
static bool has_gpu(const struct live_writer *w)
{
    return !w->recorder || w->recorder->has_gpu;
}

static size_t place_of(const struct live_event *e, uint64_t *key)
{
    *key = (e->seq * UINT64_C(0x9fb21c651e98df25)) ^ ((uint64_t)e->comm << 48) ^
           ((uint64_t)e->op << 40) ^ (uint64_t)(uint32_t)e->peer;
    return (size_t)((*key * UINT64_C(0x9fb21c651e98df25)) >> 51);
}

static void on_enqueued(struct live_writer *w, const struct live_event *e)
{
    struct live_boundary boundary;
    uint64_t key;
    if (w->sample.phase == TRAILING)
        stop_trailing(w);
    if (live_period_take(w->period, e, &boundary))
        on_boundary(w, &boundary);
    size_t at = place_of(e, &key);
    w->step_of[at].key = key;
    w->step_of[at].step = w->begun ? w->last.number : -1;
    if (has_gpu(w))
        w->recent[w->recent_count++ % RECENT] = *e;
    w->gathered.calls++;
    w->gathered.bytes += e->count * live_type_bytes(e->type);
}

/* More lines than that a second: only of some steps, the same on all ranks. */
static void watch_rate(struct live_writer *w, int64_t now_ns)
{
    w->rate_calls++;
    if (now_ns - w->rate_since_ns < 5 * INTERVAL_NS)
        return;
    double rate = (double)w->rate_calls * 1e9 / (double)(now_ns - w->rate_since_ns);
    for (w->calls_every = 1;
         rate > LINES_A_SECOND * (double)w->calls_every && w->calls_every < MOST_EVERY;)
        w->calls_every *= 2;
    w->rate_calls = 0;
    w->rate_since_ns = now_ns;
}

/* In a replayed CUDA graph the GPU's times are those of an earlier replay, or a mixture: a
 * collective begins no earlier than the one before it on its communicator, and its channels run
 * side by side.
 */
static bool is_stale(struct live_writer *w, const struct live_event *e)
{
    size_t row = e->comm % LIVE_COMMS;
    bool mixed = e->longest_ns && e->dur_ns > 2 * (int64_t)e->longest_ns;
    if (e->pair || e->seq < w->newest[row].seq)
        return mixed;
    bool together = e->launch && e->launch == w->newest[row].launch;
    bool stale =
        mixed || (!together && w->newest[row].gpu_ns && e->gpu_ns <= w->newest[row].gpu_ns);
    w->newest[row].seq = e->seq;
    w->newest[row].launch = e->launch;
    w->newest[row].gpu_ns = e->gpu_ns > w->newest[row].gpu_ns ? e->gpu_ns : w->newest[row].gpu_ns;
    return stale;
}

static void on_ran(struct live_writer *w, struct live_event *e)
{
    uint64_t key;
    size_t at = place_of(e, &key);
    if (e->gpu_ns && is_stale(w, e)) {
        e->dur_ns = -1;
        e->gpu_ns = 0;
        e->shortest_ns = e->longest_ns = 0;
    }
    int64_t step = w->step_of[at].key == key ? w->step_of[at].step : -1;
    if (!has_gpu(w))
        w->recent[w->recent_count++ % RECENT] = *e;
    watch_rate(w, e->at_ns);
    if (step < 0 || step % w->calls_every == 0)
        write_call(e, step);
    else
        w->left_out++;
}

/* ---- The round ---- */

/* Paused: as if nothing had been seen, but for the period, which is still the job's. */
static void look_for_pause(struct live_writer *w, int64_t now_ns)
{
    if (now_ns - w->pause_looked_ns < INTERVAL_NS / 2)
        return;
    w->pause_looked_ns = now_ns;
    bool is = live_look_for_pause();
    if (is && !w->paused) {
        if (w->sample.phase != WAITING || live_config()->always) /* which records all the time */
            forget_sample(w);
        w->begun = false;
        w->gathered = (struct line){.number = -1};
        w->sample.costs = false;
    }
    w->paused = is;
}

/* Before steps are known, or when none ends any more: a line a second and one at the end, if
 * anything happened. */
static void write_interval(struct live_writer *w, int64_t now_ns, bool is_last)
{
    int64_t since_ns = w->interval_since_ns ? w->interval_since_ns : now_ns;
    w->interval_since_ns = since_ns;
    if (w->begun || (now_ns - since_ns < INTERVAL_NS && !is_last))
        return;
    if (w->gathered.calls) {
        w->gathered.at_ns = now_ns;
        w->gathered.dur_ns = now_ns - since_ns;
        write_line(w, &w->gathered);
    }
    w->interval_since_ns = now_ns;
}

static void look_at_gpu(struct live_writer *w, int64_t now_ns)
{
    if (!live_config()->nvml || !has_gpu(w) || now_ns - w->gpu_read_ns < 2 * INTERVAL_NS)
        return;
    w->gpu_read_ns = now_ns;
    live_nvml_read(&w->gpu);
    if (!w->gpu_told && live_about().gpu_uuid[0]) {
        w->gpu_told = true;
        live_files_about();
    }
}

static void empty_queue(struct live_writer *w)
{
    struct live_event event;
    for (size_t i = 0; i < 1 << 16 && live_is_on() && live_pull(&event); i++)
        if (event.kind == LIVE_ENQUEUED)
            on_enqueued(w, &event);
        else
            on_ran(w, &event);
}

void live_writer_round(struct live_writer *w, bool is_last)
{
    int64_t now_ns = live_now_ns();
    w->recorder = live_recorder();
    if (is_last || now_ns - w->swept_ns > INTERVAL_NS / 2) {
        live_slots_sweep(is_last);
        w->swept_ns = now_ns;
    }
    empty_queue(w);
    if (w->sample.phase != DRAINING && w->recorder)
        w->recorder->drain(false); /* what CUPTI has filled: there are few buffers */
    if (w->sample.phase == TRAILING && now_ns - w->sample.end.at_ns > TRAIL_NS)
        stop_trailing(w);
    else if (w->sample.phase == DRAINING && !is_last)
        drain(w);
    else if ((w->sample.phase == ARMED || w->sample.phase == RECORDING) &&
             now_ns - w->sample.on_ns > 60 * INTERVAL_NS)
        forget_sample(w);
    look_for_pause(w, now_ns);
    look_at_gpu(w, now_ns);
    write_interval(w, now_ns, is_last);
    if (is_last && w->gathered.steps)
        write_line(w, &w->gathered);
    if (is_last || now_ns - w->flushed_ns > INTERVAL_NS / 2) {
        live_files_flush();
        w->flushed_ns = now_ns;
    }
}

bool live_writer_hurried(struct live_writer *w)
{
    return w->sample.phase == ARMED || w->sample.phase == RECORDING || w->sample.phase == TRAILING;
}

struct live_writer *live_writer_new(void)
{
    struct live_writer *w = calloc(1, sizeof *w);
    struct live_period *found = w ? live_period_new() : NULL;
    if (!found) {
        free(w);
        live_off("out of memory; recording is off");
        return NULL;
    }
    w->period = found;
    w->every = ASSUMED_EVERY;
    w->calls_every = 1;
    w->first_ns = w->flushed_ns = w->rate_since_ns = live_now_ns();
    w->last.number = w->gathered.number = -1;
    return w;
}

void live_writer_free(struct live_writer *w)
{
    if (!w)
        return;
    live_period_free(w->period);
    free(w);
    live_files_release();
}
