/* SPDX-License-Identifier: MIT */
/*
 * Facts about one rank that need its spans, runs and names, and so are found where those are: what
 * its compute and copies are made of, the longest stretch in which it does nothing, whether the
 * names speak of training or of serving, and whether code was loaded or compiled meanwhile. Sums
 * are over complete steps (all of the recording where there are none).
 */
#include "base/fold.h"
#include "base/format.h"
#include "base/order.h"
#include "base/text.h"
#include "timeline/account.h"
#include "timeline/kinds.h"
#include "timeline/marks.h"

#include <string.h>

/* ---- Names ---- */

static const char *const serving_words[] = {
    "vllm::",       "sglang",       "sgl_kernel",       "paged_attention",   "pagedattention",
    "flashinfer",   "tensorrt_llm", "decode_attention", "reshape_and_cache", "batchdecode",
    "batchprefill", "kv_cache",     "llama_token",
};
static const char *const decode_words[] = {"decode", "paged_attention", "pagedattention"};
static const char *const prefill_words[] = {"prefill", "extend_attention", "context_attention"};
/* In names of kernels and of host scopes. `multi_tensor` alone proves nothing: servers copy with
 * it. */
static const char *const training_words[] = {
    "backward",         "_bwd", "bwd_", "adam", "optimizer", "dgrad", "wgrad", "nll_loss",
    "autograd::engine",
};

/* Does a name, in small letters, have one of the words? */
static bool any_of(const char *folded, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(folded, words[i]))
            return true;
    return false;
}
#define ANY(folded, words) any_of(folded, words, sizeof(words) / sizeof *(words))

/* Names of GPU work only: which of the host's are known depends on what the reader kept. */
static bool read_names(const struct knee_trace *trace, const struct knee_alloc *alloc,
                       struct knee_rank_facts *facts)
{
    bool *used = knee_zeroed(alloc, trace->name_count + 1);
    if (!used)
        return false;
    for (size_t r = 0; r < trace->rank_count; r++)
        for (size_t i = 0; i < trace->ranks[r].span_count; i++)
            used[trace->ranks[r].spans[i].name] = true;
    facts->trains = trace->optimizer_count > 0 || trace->backward;
    facts->torch = trace->operations || strcmp(trace->format, "kineto") == 0 ||
                   strcmp(trace->format, "cpu") == 0 || strcmp(trace->format, "chakra") == 0;
    for (size_t n = 0; n < trace->name_count; n++) {
        char folded[KNEE_FOLDED];
        if (!used[n])
            continue;
        knee_fold(trace->names[n], folded, sizeof folded);
        facts->trains = facts->trains || ANY(folded, training_words);
        facts->torch = facts->torch || strstr(folded, "at::native");
        facts->serves = facts->serves || ANY(folded, serving_words);
        facts->decodes = facts->decodes || ANY(folded, decode_words);
        facts->prefills = facts->prefills || ANY(folded, prefill_words);
    }
    knee_resize(alloc, used, 0);
    return true;
}

/* ---- Complete steps ---- */

struct steps {
    const struct knee_step_account *list;
    size_t count, at; /* moves on with time */
    size_t complete;
};

static struct steps steps_of(const struct knee_outcome *outcome)
{
    struct steps steps = {.list = outcome->steps, .count = outcome->step_count};
    for (size_t i = 0; i < steps.count; i++)
        steps.complete += steps.list[i].complete;
    return steps;
}

/* Calls must go forward in time. */
static bool in_complete(struct steps *steps, int64_t ns)
{
    if (!steps->complete)
        return true;
    while (steps->at + 1 < steps->count && steps->list[steps->at + 1].start_ns <= ns)
        steps->at++;
    const struct knee_step_account *step = &steps->list[steps->at];
    return step->complete && ns >= step->start_ns && ns - step->start_ns < step->ledger.window_ns;
}

/* ---- What work is made of ---- */

/* Shorter 32-bit products do not fill the tensor cores of a large GPU, and gain nothing. */
#define LARGE_PRODUCT_NS 100000
#define LEAST_SOFTMAX    0.03 /* of the kernels */
#define SCORES_TAKE      3    /* a third of softmax' time at least */
#define LONGEST_FUSION   4    /* so many kernels at most are counted as one */

/* What is to be known of a name, looked up when it is first met: most are the host's. */
struct name_kind {
    unsigned char work, copy;
    bool generated;               /* by a compiler that fuses already */
    bool plain, softmax, forward; /* forward: of softmax */
    bool wide;                    /* 32-bit numbers on tensor cores */
    bool fused;                   /* an optimizer's */
    bool joins, converts;         /* tensors into one; between NCHW and NHWC */
    bool doubles;                 /* a product of 64-bit numbers */
    bool special;                 /* one of these, but for softmax and optimizers: most are not */
    bool known;
};

/* Inductor's kernels: triton_poi_fused_add_0, triton__0d1d2. Others of Triton are written by hand.
 */
static bool is_generated(const char *name)
{
    return strncmp(name, "triton_", 7) == 0 && (name[7] == '_' || strstr(name, "_fused"));
}

/* Behind the kinds of all names: what knee_known_kind() has found. */
static unsigned char *known_of(const struct knee_trace *trace, struct name_kind *kinds)
{
    return (unsigned char *)(kinds + trace->name_count + 1);
}

static const struct name_kind *kind_of(const struct knee_trace *trace, uint32_t name,
                                       struct name_kind *kinds)
{
    const char *text = trace->names[name];
    if (kinds[name].known)
        return &kinds[name];
    enum knee_kernel_kind work = knee_known_kind(text, &known_of(trace, kinds)[name]);
    bool product = work == KNEE_KERNEL_PRODUCT, elementwise = work == KNEE_KERNEL_ELEMENTWISE;
    bool softmax = elementwise && knee_kernel_is_softmax(text);
    kinds[name] = (struct name_kind){
        .work = (unsigned char)work,
        .copy = (unsigned char)knee_copy_kind_of(text),
        .generated = is_generated(text),
        .plain = product && knee_kernel_is_plain(text),
        .softmax = softmax,
        .forward = softmax && strstr(text, "orward"),
        .wide = knee_kernel_is_wide(text),
        .fused = work == KNEE_KERNEL_OPTIMIZER && strstr(text, "Fused"),
        .joins = elementwise && strstr(text, "CatArrayBatchedCopy"),
        .converts = !elementwise && (strstr(text, "nchwToNhwc") || strstr(text, "nhwcToNchw")),
        .doubles = product && knee_kernel_is_double(text),
        .known = true,
    };
    struct name_kind *kind = &kinds[name];
    kind->special = kind->generated || kind->plain || kind->joins || kind->doubles ||
                    kind->converts || kind->wide || work == KNEE_KERNEL_INDEXING;
    return kind;
}

/* How much of a span is labelled as an exposed copy; `run` moves on with the spans' starts. */
static int64_t exposed_ns(const struct knee_rank_account *rank, const struct knee_span *span,
                          size_t *run)
{
    int64_t sum = 0;
    while (*run + 1 < rank->run_count && rank->runs[*run + 1].start_ns <= span->start_ns)
        ++*run;
    for (size_t i = *run; i < rank->run_count && rank->runs[i].start_ns < span->end_ns; i++) {
        int64_t from = rank->runs[i].start_ns, to = knee_run_end(rank, i);
        from = from > span->start_ns ? from : span->start_ns;
        to = to < span->end_ns ? to : span->end_ns;
        if (rank->runs[i].label == KNEE_COPY && to > from)
            sum += to - from;
    }
    return sum;
}

/* Kernels that an optimizer's step hands over are its own, whatever they do. */
static enum knee_kernel_kind work_of(struct knee_marks optimizers, const struct knee_span *span,
                                     const struct name_kind *kind)
{
    size_t mark =
        optimizers.count &&
                (kind->work == KNEE_KERNEL_ELEMENTWISE || kind->work == KNEE_KERNEL_INDEXING) &&
                span->launch_ns != KNEE_NO_TIME
            ? knee_marks_before(optimizers, span->launch_ns)
            : 0;
    bool inside = mark && span->launch_ns <= optimizers.list[mark - 1].end_ns;
    return inside ? KNEE_KERNEL_OPTIMIZER : (enum knee_kernel_kind)kind->work;
}

static void spend(struct knee_rank_facts *facts, enum knee_spent on, int64_t ns)
{
    facts->spent_ns[on] = knee_add_ns(facts->spent_ns[on], ns);
}

/* Elementwise and norm kernels in a row, which a compiler fuses: what they read and write between
 * them stays on the chip. */
struct chain {
    int64_t sum_ns, longest_ns;
};

static void end_chain(struct chain *chain, struct knee_rank_facts *facts)
{
    int64_t least = chain->sum_ns / LONGEST_FUSION;
    spend(facts, KNEE_SPENT_LONGEST, chain->longest_ns);
    spend(facts, KNEE_SPENT_FUSED, chain->longest_ns > least ? chain->longest_ns : least);
    *chain = (struct chain){0};
}

static void add_to_chain(struct chain *chain, enum knee_kernel_kind work, int64_t ns,
                         struct knee_rank_facts *facts)
{
    if (work == KNEE_KERNEL_ELEMENTWISE || work == KNEE_KERNEL_NORM) {
        chain->sum_ns = knee_add_ns(chain->sum_ns, ns);
        chain->longest_ns = ns > chain->longest_ns ? ns : chain->longest_ns;
    } else if (work != KNEE_KERNEL_OTHER && chain->sum_ns > 0) {
        end_chain(chain, facts);
    }
}

/* What is special about compute of one kind. */
static void add_kind(enum knee_kernel_kind work, const struct name_kind *kind, int64_t ns,
                     struct knee_rank_facts *facts)
{
    bool large = ns >= LARGE_PRODUCT_NS;
    if (work == KNEE_KERNEL_OPTIMIZER && !kind->fused)
        spend(facts, KNEE_SPENT_OPTIMIZER, ns);
    if (!kind->special)
        return;
    spend(facts, KNEE_SPENT_GENERATED, kind->generated ? ns : 0);
    spend(facts, KNEE_SPENT_PLAIN, kind->plain && large ? ns : 0);
    spend(facts, KNEE_SPENT_JOINING, kind->joins ? ns : 0);
    spend(facts, KNEE_SPENT_DOUBLE, kind->doubles ? ns : 0);
    spend(facts, KNEE_SPENT_INDEXING, work == KNEE_KERNEL_INDEXING ? ns : 0);
    spend(facts, KNEE_SPENT_LAYOUT, kind->converts ? ns : 0);
    if (kind->wide && work == KNEE_KERNEL_PRODUCT && large)
        spend(facts, KNEE_SPENT_WIDE_PRODUCT, ns);
    if (kind->wide && work == KNEE_KERNEL_ATTENTION)
        spend(facts, KNEE_SPENT_WIDE_ATTENTION, ns);
}

static void add_span(const struct knee_rank_account *rank, const struct knee_span *span,
                     const struct name_kind *kind, enum knee_kernel_kind work, size_t *run,
                     struct knee_rank_facts *facts)
{
    int64_t ns = span->end_ns - span->start_ns;
    if (span->kind == KNEE_SPAN_COPY) {
        facts->copies[kind->copy].count++;
        facts->copies[kind->copy].total_ns = knee_add_ns(facts->copies[kind->copy].total_ns, ns);
        facts->copies[kind->copy].exposed_ns =
            knee_add_ns(facts->copies[kind->copy].exposed_ns, exposed_ns(rank, span, run));
    } else {
        facts->kernels[work].count++;
        facts->kernels[work].total_ns = knee_add_ns(facts->kernels[work].total_ns, ns);
        if (ns < KNEE_SHORT_KERNEL_NS)
            facts->kernels[work].short_ns += ns;
        else if (ns >= KNEE_STOPPED_NS)
            spend(facts, KNEE_SPENT_STOPPED, ns);
        add_kind(work, kind, ns, facts);
    }
}

/* Softmax, of kernels in complete steps. */
struct softmax {
    int64_t forward, backward, ns;
};

/* Attention that is not fused writes its scores to memory and masks, scales, drops and converts
 * them there: elementwise kernels that take about as long as softmax does, since activations are
 * smaller than scores. Softmax that is called once per step is a loss, and little of it a router.
 */
static void share_scores(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                         const struct name_kind *kinds, const struct softmax *softmax,
                         struct knee_rank_facts *facts)
{
    struct steps steps = steps_of(outcome);
    int64_t passes = steps.complete ? (int64_t)steps.complete : 1, all_ns = 0;
    for (int k = 0; k < KNEE_KERNEL_KINDS; k++)
        all_ns = knee_add_ns(all_ns, facts->kernels[k].total_ns);
    if (softmax->forward < 2 * passes || (double)softmax->ns < LEAST_SOFTMAX * (double)all_ns)
        return;
    int64_t least_ns = softmax->ns / SCORES_TAKE / (1 + softmax->forward + softmax->backward);
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        int64_t ns = span->end_ns - span->start_ns;
        if (span->kind == KNEE_SPAN_COMM || span->kind == KNEE_SPAN_COPY ||
            !in_complete(&steps, span->start_ns))
            continue;
        const struct name_kind *kind = &kinds[span->name];
        if (kind->softmax || (kind->work == KNEE_KERNEL_ELEMENTWISE && ns > least_ns))
            spend(facts, KNEE_SPENT_SCORES, ns);
    }
}

static bool share_work(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                       const struct knee_alloc *alloc, struct knee_rank_facts *facts)
{
    size_t size = (rank->trace->name_count + 1) * (sizeof(struct name_kind) + 1), run = 0;
    struct name_kind *kinds = knee_zeroed(alloc, size);
    struct steps steps = steps_of(outcome);
    struct softmax softmax = {0};
    struct chain chain = {0};
    struct knee_passes passes;
    struct knee_marks optimizers = {rank->trace->optimizers, rank->trace->optimizer_count};
    if (!kinds)
        return false;
    if (!knee_find_passes(rank, known_of(rank->trace, kinds), alloc, &passes)) {
        knee_resize(alloc, kinds, 0);
        return false;
    }
    facts->micro_batches = passes.micro_batches;
    for (size_t i = 0; i < rank->source->span_count; i++) {
        const struct knee_span *span = &rank->source->spans[i];
        if (span->kind == KNEE_SPAN_COMM || !in_complete(&steps, span->start_ns))
            continue;
        const struct name_kind *kind = kind_of(rank->trace, span->name, kinds);
        enum knee_kernel_kind work = work_of(optimizers, span, kind);
        add_span(rank, span, kind, work, &run, facts);
        if (passes.again && passes.again[i])
            spend(facts, KNEE_SPENT_AGAIN, span->end_ns - span->start_ns);
        if (span->kind != KNEE_SPAN_COPY)
            add_to_chain(&chain, work, span->end_ns - span->start_ns, facts);
        if (kind->softmax) {
            softmax.ns = knee_add_ns(softmax.ns, span->end_ns - span->start_ns);
            softmax.forward += kind->forward;
            softmax.backward += !kind->forward;
        }
    }
    end_chain(&chain, facts);
    share_scores(rank, outcome, kinds, &softmax, facts);
    knee_resize(alloc, passes.again, 0);
    knee_resize(alloc, kinds, 0);
    return true;
}

/* ---- Gaps ---- */

static void name_next(const struct knee_rank_account *rank, struct knee_rank_facts *facts)
{
    const struct knee_rank *source = rank->source;
    int64_t end_ns = facts->gap_start_ns + facts->gap_ns;
    size_t low;
    KNEE_BISECT(low, source->span_count, source->spans[low].start_ns < end_ns);
    if (facts->gap_ns > 0 && low < source->span_count)
        knee_format(facts->gap_next, sizeof facts->gap_next, "%.63s",
                    rank->trace->names[source->spans[low].name]);
}

/* A gap of so many times the usual one (by powers of two, so up to twice as many), or of 2 ms in
 * any case, is something else that the host does than a launch: sleep, read, compute, collect
 * garbage. The usual one is what this host takes with this profiler. */
#define MANY_LAUNCHES      4
#define LEAST_LONG_GAP_NS  200000
#define SURELY_LONG_GAP_NS 2000000

static int64_t longest_launch_ns(const struct knee_rank_account *rank)
{
    size_t counts[64] = {0}, gaps = 0, below = 0;
    int log = 0;
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t length = knee_run_end(rank, i) - rank->runs[i].start_ns;
        if (rank->runs[i].label != KNEE_HOST || length <= 0)
            continue;
        counts[63 - __builtin_clzll((unsigned long long)length)]++;
        gaps++;
    }
    for (log = 0; log < 62 && 2 * (below += counts[log]) < gaps;)
        log++;
    int64_t most = log < 30 ? MANY_LAUNCHES * (INT64_C(2) << log) : SURELY_LONG_GAP_NS;
    most = most > LEAST_LONG_GAP_NS ? most : LEAST_LONG_GAP_NS;
    return most < SURELY_LONG_GAP_NS ? most : SURELY_LONG_GAP_NS;
}

/* What the host spends of [from, to) in calls that neither launch, copy nor wait: it allocates,
 * frees, creates streams. *at moves on with time; of calls beside each other a few are looked at.
 */
static int64_t in_other_calls(const struct knee_trace *trace, size_t *at, int64_t from, int64_t to)
{
    enum { BESIDE = 64 };
    const struct knee_host_event *calls = trace->long_calls;
    int64_t sum = 0;
    while (*at < trace->long_call_count && calls[*at].end_ns <= from)
        ++*at;
    for (size_t i = *at; i < trace->long_call_count && i < *at + BESIDE; i++) {
        int64_t start = calls[i].start_ns > from ? calls[i].start_ns : from;
        int64_t end = calls[i].end_ns < to ? calls[i].end_ns : to;
        if (calls[i].kind == KNEE_HOST_CALL && end > start)
            sum = knee_add_ns(sum, end - start);
    }
    return sum < to - from ? sum : to - from;
}

/* Where the step that runs at `ns` ends, or the time before or after it; calls must go forward. */
static int64_t part_end(struct steps *steps, int64_t ns)
{
    if (!steps->complete)
        return INT64_MAX;
    in_complete(steps, ns);
    const struct knee_step_account *step = &steps->list[steps->at];
    if (ns < step->start_ns)
        return step->start_ns;
    if (ns - step->start_ns < step->ledger.window_ns)
        return step->start_ns + step->ledger.window_ns;
    return steps->at + 1 < steps->count ? step[1].start_ns : INT64_MAX;
}

/* A gap may begin in one step and end in the next: each has its part of it. */
static void find_gaps(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                      struct knee_rank_facts *facts)
{
    struct steps steps = steps_of(outcome);
    int64_t long_ns = longest_launch_ns(rank), to;
    size_t call = 0;
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t start = rank->runs[i].start_ns, end = knee_run_end(rank, i);
        for (int64_t from = start; rank->runs[i].label >= KNEE_STARVED && from < end; from = to) {
            to = part_end(&steps, from);
            to = to < end ? to : end;
            if (!in_complete(&steps, from))
                continue;
            if (rank->runs[i].label == KNEE_HOST && end - start >= KNEE_LONG_CALL_NS)
                spend(facts, KNEE_SPENT_LONG_HOST,
                      end - start > long_ns ? to - from
                                            : in_other_calls(rank->trace, &call, from, to));
            if (to - from <= facts->gap_ns)
                continue;
            facts->gap_start_ns = from;
            facts->gap_ns = to - from;
            facts->gap_label = rank->runs[i].label;
        }
    }
    name_next(rank, facts);
}

/* ---- A first step ---- */

/* A first step: one launch takes so much of the recording; or gaps of the host that are far longer
 * than a launch, one of them very long, make half of it. */
#define LAUNCH_SHARE 0.1
#define GAP_SHARE    0.5
#define LONG_GAP_NS  5000000
#define VERY_LONG_NS 50000000
#define CALL_SHARE   0.5 /* of a gap: the call that the host is in explains it */

/* How long a rank's GPU had nothing to do in [from, to). */
static int64_t empty_ns(const struct knee_rank_account *rank, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t start = rank->runs[i].start_ns, end = knee_run_end(rank, i);
        start = start > from ? start : from;
        end = end < to ? end : to;
        if (rank->runs[i].label >= KNEE_STARVED && end > start)
            sum += end - start;
    }
    return sum;
}

static int64_t window_ns(const struct knee_rank_account *rank)
{
    return rank->to_ns > rank->from_ns ? rank->to_ns - rank->from_ns : 1;
}

/* Has the kernel of the call that ended at `end_ns` run before? Then its code is loaded, and the
 * call waited for something else: a lock that another thread holds. */
static bool has_run(const struct knee_rank *rank, int64_t end_ns)
{
    size_t of = 0, before = 0;
    while (of < rank->span_count && rank->spans[of].launch_ns != end_ns)
        of++;
    while (before < of && of < rank->span_count && rank->spans[before].name != rank->spans[of].name)
        before++;
    return before < of && of < rank->span_count;
}

/* One launch that takes long while the GPU has nothing to do loads or compiles code; with a busy
 * GPU it only waits for room in the queue. The recording may begin with it: then the GPU's window
 * does not. */
static bool launch_loads(const struct knee_rank_account *rank, struct knee_rank_facts *facts)
{
    int64_t start = rank->trace->long_launch_start_ns, end = rank->trace->long_launch_end_ns;
    int64_t all =
        window_ns(rank) + (start < rank->from_ns && end > start ? rank->from_ns - start : 0);
    int64_t inside_from = start > rank->from_ns ? start : rank->from_ns;
    if (end <= start || (double)(end - start) < LAUNCH_SHARE * (double)all ||
        has_run(rank->source, end))
        return false;
    int64_t inside = end > inside_from ? end - inside_from : 0;
    if (inside > 0 && 2 * (inside - empty_ns(rank, inside_from, end)) > end - start)
        return false;
    facts->cold_ns = end - start;
    facts->cold_window_ns = all;
    return true;
}

/* Is the host for most of [from, to) in a call into the driver, which waits for something else? */
static bool waits_in_call(const struct knee_trace *trace, int64_t from, int64_t to)
{
    for (size_t i = 0; i < trace->long_call_count; i++) {
        const struct knee_host_event *e = &trace->long_calls[i];
        bool call = e->kind != KNEE_HOST_LAUNCH || strstr(trace->names[e->name], "emcpy");
        int64_t start = e->start_ns > from ? e->start_ns : from;
        int64_t end = e->end_ns < to ? e->end_ns : to;
        if (call && (double)(end - start) > CALL_SHARE * (double)(to - from))
            return true;
    }
    return false;
}

/* What the host takes long for on its own, in one step or in all of the recording. */
struct long_gaps {
    int64_t sum_ns, longest_ns, window_ns;
};

static struct long_gaps gaps_of(const struct knee_rank_account *rank,
                                const struct knee_step_account *step)
{
    int64_t from = step ? step->start_ns : rank->from_ns;
    int64_t to = step ? from + step->ledger.window_ns : rank->to_ns;
    struct long_gaps gaps = {.window_ns = to > from ? to - from : 1};
    for (size_t i = 0; i < rank->run_count; i++) {
        int64_t start = rank->runs[i].start_ns, end = knee_run_end(rank, i);
        start = start > from ? start : from;
        end = end < to ? end : to;
        if (rank->runs[i].label != KNEE_HOST || end - start < LONG_GAP_NS ||
            waits_in_call(rank->trace, start, end))
            continue;
        gaps.sum_ns += end - start;
        gaps.longest_ns = end - start > gaps.longest_ns ? end - start : gaps.longest_ns;
    }
    return gaps;
}

static bool is_long(const struct long_gaps *gaps)
{
    return gaps->longest_ns >= VERY_LONG_NS &&
           (double)gaps->sum_ns >= GAP_SHARE * (double)gaps->window_ns;
}

/* Or the host compiles: it is long on its own in the first step, and not in another. */
static void see_compiling(const struct knee_rank_account *rank, const struct knee_outcome *outcome,
                          struct knee_rank_facts *facts)
{
    size_t first = 0, count = outcome->step_count;
    while (first < count && outcome->steps[first].number < 0)
        first++;
    struct long_gaps gaps = gaps_of(rank, first < count ? &outcome->steps[first] : NULL);
    if (strcmp(rank->trace->format, "kineto") != 0 || !rank->source->launched || !is_long(&gaps))
        return;
    for (size_t i = first + 1; i < count; i++) {
        struct long_gaps other = gaps_of(rank, &outcome->steps[i]);
        if (outcome->steps[i].complete && 2 * other.sum_ns > gaps.sum_ns)
            return;
    }
    facts->cold_ns = gaps.sum_ns;
    facts->cold_window_ns = gaps.window_ns;
    facts->cold_compiles = true;
}

/* Or the recording begins with the only batch, for which the loader starts its processes. */
static void see_first_batch(const struct knee_rank_account *rank, struct knee_rank_facts *facts)
{
    const struct knee_mark *load = rank->trace->loads;
    if (rank->trace->load_count != 1 || load->end_ns > rank->from_ns)
        return;
    int64_t took = load->end_ns - load->start_ns;
    if (took < VERY_LONG_NS || took < window_ns(rank))
        return;
    facts->cold_ns = took;
    facts->cold_window_ns = rank->to_ns - load->start_ns;
    facts->cold_loads = true;
}

static bool loads_ahead(const struct knee_trace *trace)
{
    int64_t ahead = 0, all = 0;
    for (size_t i = 0; i < trace->load_count; i++) {
        int64_t took = trace->loads[i].end_ns - trace->loads[i].start_ns;
        all = knee_add_ns(all, took);
        ahead = knee_add_ns(ahead, trace->loads[i].number == 1 ? took : 0);
    }
    return ahead > all / 2;
}

bool knee_find_rank_facts(struct knee_rank_account *rank, const struct knee_outcome *outcome,
                          const struct knee_alloc *alloc)
{
    struct knee_rank_facts facts = {.gap_label = KNEE_IDLE};
    if (!share_work(rank, outcome, alloc, &facts))
        return false;
    if (rank->source == rank->trace->ranks && !read_names(rank->trace, alloc, &facts))
        return false; /* names are those of the file */
    if (!knee_find_contention(rank, outcome, alloc, &facts))
        return false;
    find_gaps(rank, outcome, &facts);
    facts.loads_ahead = loads_ahead(rank->trace);
    if (!launch_loads(rank, &facts))
        see_compiling(rank, outcome, &facts);
    if (facts.cold_ns == 0)
        see_first_batch(rank, &facts);
    rank->facts = facts;
    return true;
}
