/* SPDX-License-Identifier: MIT */
/*
 * The one table of changes that knee can advise. A row holds the name of the change, what to do and
 * type, its effect on the numerics of training, and how its gain is computed: by a closed form on a
 * copy of the terms, by a row of the replay, or (both NULL) from what a recording shows
 * (trace_changes.c). predict, trace, replay and the page take their words from here. A closed form
 * that does not apply says so by returning false.
 */
#include "judge/judge.h"

#include "base/text.h"
#include "collective/collective.h"
#include "job/job.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A change being tried: the terms, the worker count, and how the change is called. */
struct trial {
    struct knee_terms terms;
    double workers;
    const struct knee_lever_facts *facts;
    const char *change;
};

static bool more_workers(struct trial *t)
{
    double limit = t->facts->limit_workers; /* one example each */
    t->workers *= 2;
    return t->workers <= (isnan(limit) ? KNEE_WORKERS_MAX : limit);
}

static bool fewer_workers(struct trial *t)
{
    double now = t->workers;
    t->workers = t->facts->knee_workers;
    return t->workers < now;
}

static void grow_batch(struct knee_terms *terms, double times)
{
    terms->compute_s *= times;
    terms->batch *= times;
    terms->work *= times;
}

/* More examples cost more input and copies; launches only when there are more micro-steps. */
static bool bigger_batch(struct trial *t)
{
    grow_batch(&t->terms, 2);
    t->terms.stall_s[KNEE_STARVED] *= 2;
    t->terms.stall_s[KNEE_COPY] *= 2;
    return true;
}

static bool accumulate(struct trial *t)
{
    grow_batch(&t->terms, 4);
    t->terms.accumulate *= 4;
    for (int label = KNEE_COPY; label < KNEE_LABELS; label++)
        t->terms.stall_s[label] *= 4;
    return true;
}

static bool overlap(struct trial *t)
{
    /* NaN: the software overlaps already, as every framework does. */
    bool more = t->terms.overlap < 1 || !isnan(t->terms.hidden);
    t->terms.overlap = 1;
    t->terms.hidden = NAN;
    return more;
}

/* Sends `bytes` per parameter. Encoding and decoding read or write the gradient, 4 bytes each,
 * `passes` times at the GPU's memory bandwidth: a model, not a measurement. */
static bool send_bytes(struct trial *t, double bytes, double passes)
{
    const struct knee_lever_facts *f = t->facts;
    double sent = t->terms.bytes * f->bytes_per_param / f->gradient_bytes;
    if (bytes >= 0.99 * sent)
        return false;
    t->terms.bytes = f->gradient_bytes / (f->bytes_per_param / bytes);
    t->terms.encode_s = isnan(f->params) ? 0 : passes * 4 * f->params / f->memory_bytes_per_s;
    return true;
}

static bool send_bf16(struct trial *t)
{
    return send_bytes(t, 2, 1.5);
}

static bool send_fp8(struct trial *t)
{
    return send_bytes(t, 1 + 4.0 / 128, 3); /* a 4-byte scale per 128 values */
}

static bool send_int8(struct trial *t)
{
    return send_bytes(t, 1 + 4.0 / 256, 3); /* a 4-byte scale per 256 values */
}

static bool send_low_rank(struct trial *t)
{
    double rank = 4, h = t->facts->width;
    return send_bytes(t, 4 * 2 * rank / h, 6); /* two factors of h x rank for each h x h */
}

static bool send_top_k(struct trial *t)
{
    t->terms.algorithm = &knee_sparse_gather;
    return send_bytes(t, 0.01 * (4 + 4), 8); /* value and index of 1 % */
}

static bool send_one_bit(struct trial *t)
{
    return send_bytes(t, 1.0 / 8 + 4.0 / 1024, 5); /* a sign each, a scale per 1024 */
}

static bool meet_every(struct trial *t, double steps)
{
    bool rarer = t->terms.local_steps < steps;
    t->terms.local_steps = steps;
    return rarer;
}

static bool local_sgd(struct trial *t)
{
    return meet_every(t, 8);
}

static bool diloco(struct trial *t)
{
    return meet_every(t, 100);
}

static bool faster_link(struct trial *t)
{
    struct knee_cluster *c = &t->terms.cluster;
    double node = t->facts->gpus_per_node;
    if (!t->facts->link_known)
        t->terms.comm_scale /= 2;
    else if (node > 1 && t->workers <= node)
        c->levels[0].bytes_per_s *= 2;
    else {
        c->levels[c->level_count > 1 ? 1 : 0].bytes_per_s *= 2;
        c->fitted = NULL; /* the curves are of another network */
    }
    return true;
}

static bool best_algorithm(struct trial *t)
{
    const struct knee_cluster *cluster = &t->terms.cluster;
    struct knee_group all = {t->workers, 1, true};
    double bytes = t->terms.bytes;
    const struct knee_algorithm *now = t->terms.algorithm, *best = now;
    if (!now && cluster->textbook)
        now = best = &knee_ring;
    if (!now || now->gathers || t->workers <= 1) /* the library picks its fastest */
        return false;
    double best_s = knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, all, bytes, now);
    for (size_t row = 0; knee_algorithm_at(row); row++) {
        const struct knee_algorithm *other = knee_algorithm_at(row);
        double other_s = knee_collective_s(cluster, KNEE_OP_ALL_REDUCE, all, bytes, other);
        if (other->gathers || !(other_s < 0.99 * best_s))
            continue;
        best = other;
        best_s = other_s;
    }
    t->terms.algorithm = best;
    t->change = best->name;
    return best != now;
}

/* Tensor parallel over the node: 1/n of the gradient each, but 4 all-reduces of the activations a
 * layer. Their time over compute is (n-1) (2/9) rate / (h B): 16 t h bytes against 72 t h^2 FLOPs.
 */
static bool another_axis(struct trial *t)
{
    const struct knee_lever_facts *f = t->facts;
    double n = f->gpus_per_node;
    if (!(n > 1) || t->workers < 2 * n || isnan(f->flops_per_s) || f->width < 1024)
        return false;
    t->terms.shard = n;
    t->terms.axis_tax = (n - 1) * 2 / 9 * f->flops_per_s / (f->width * f->node_bytes_per_s);
    return true;
}

static bool faster_loader(struct trial *t)
{
    bool loads = !isnan(t->terms.loader_rate_per_s) || t->terms.stall_s[KNEE_STARVED] > 0;
    t->terms.loader_rate_per_s *= 2;
    t->terms.stall_s[KNEE_STARVED] = 0;
    return loads;
}

static bool even_workers(struct trial *t)
{
    bool uneven = t->terms.jitter > 0 || t->terms.stall_s[KNEE_WAIT] > 0;
    t->terms.jitter = 0;
    t->terms.stall_s[KNEE_WAIT] = 0;
    return uneven;
}

static bool without(struct trial *t, enum knee_label label)
{
    bool had = t->terms.stall_s[label] > 0;
    t->terms.stall_s[label] = 0;
    return had;
}

static bool fewer_launches(struct trial *t)
{
    return without(t, KNEE_HOST);
}

static bool hidden_copies(struct trial *t)
{
    return without(t, KNEE_COPY);
}

#define SECONDS_PER_DAY 86400.0

/* `action` is what to do, as the start of a sentence in lower case; `how` what to type, or "".
 * `replay` is the row of the replay's standard table that runs the same change on a recorded
 * timeline; one that ends in a space is followed by a number. */
static const struct change {
    const char *name, *change, *action, *how, *risk;
    unsigned kind;
    enum knee_numerics numerics;
    bool (*apply)(struct trial *); /* closed form; NULL: only a recording can say */
    const char *replay, *replayed; /* and what the change is called there; NULL: not replayed */
    const char *words;             /* as a table says it */
} table[] = {
    {"more workers", "2x", "use twice the GPUs", "", "each pays less than the last",
     KNEE_LEVER_WORKERS, KNEE_NUMERICS_SAME, more_workers, NULL, NULL, "twice the GPUs"},
    {"fewer workers", "to the knee", "use fewer GPUs", "", "slower, but each GPU pays",
     KNEE_LEVER_FEWER, KNEE_NUMERICS_SAME, fewer_workers, NULL, NULL, "fewer GPUs"},
    {"bigger local batch", "2x", "double the local batch", "",
     "memory; global batch 2x, nearer to the critical batch", KNEE_LEVER_BATCH,
     KNEE_NUMERICS_TRAINING, bigger_batch, "batch 2x", "batch 2x", "2x batch per GPU"},
    {"accumulate", "4 micro-steps", "accumulate 4 micro-batches per step", "model.no_sync()",
     "no memory; global batch 4x, nearer to the critical batch", KNEE_LEVER_BATCH,
     KNEE_NUMERICS_TRAINING, accumulate, "accumulate 4", "accumulate 4",
     "accumulate 4 micro-batches"},
    {"overlap", "eta 1", "overlap communication with the backward pass",
     "DDP(bucket_cap_mb=25) or FSDP prefetch", "none for quality; the best that overlap can do",
     KNEE_LEVER_OVERLAP, KNEE_NUMERICS_SAME, overlap, "overlap", "overlap",
     "overlap with backward"},
    {"larger buckets", "100 MB", "use 100 MB gradient buckets", "DDP(bucket_cap_mb=100)",
     "memory; the last bucket is sent later", KNEE_LEVER_OVERLAP, KNEE_NUMERICS_SAME, NULL,
     "bucket 100 MB", "bucket 100 MB", "100 MB buckets"},
    {"keep parameters", "until backward", "keep gathered parameters until the backward pass",
     "fully_shard(reshard_after_forward=False)",
     "memory: all parameters stay between forward and backward",
     KNEE_LEVER_OVERLAP | KNEE_LEVER_NETWORK, KNEE_NUMERICS_SAME, NULL, "keep-params",
     "keep-params", "keep gathered parameters"},
    {"compress: bf16", "2 B/param", "send gradients as bf16",
     "register_comm_hook(None, default_hooks.bf16_compress_hook)", "small: rounding of the sum",
     KNEE_LEVER_COMPRESS, KNEE_NUMERICS_ROUNDING, send_bf16, "wire bf16", "wire bf16",
     "bf16 gradients"},
    {"compress: fp8", "1.03 B/param", "send gradients as fp8", "", "needs scaling; watch the loss",
     KNEE_LEVER_COMPRESS, KNEE_NUMERICS_TRAINING, send_fp8, "wire fp8", "wire fp8",
     "fp8 gradients"},
    {"compress: int8", "1.02 B/param", "send gradients as int8", "",
     "needs scales and error feedback", KNEE_LEVER_COMPRESS, KNEE_NUMERICS_TRAINING, send_int8,
     NULL, NULL, "int8 gradients"},
    {"compress: PowerSGD", "rank 4", "compress gradients with PowerSGD", "powerSGD_hook",
     "needs error feedback; loses a little accuracy at low rank", KNEE_LEVER_COMPRESS,
     KNEE_NUMERICS_TRAINING, send_low_rank, "wire powersgd:4", "wire powersgd:4",
     "PowerSGD rank 4"},
    {"compress: top-k", "1 %", "send the largest 1% of the gradients", "",
     "needs error feedback; all-gather grows with ranks", KNEE_LEVER_COMPRESS,
     KNEE_NUMERICS_TRAINING, send_top_k, NULL, NULL, "top 1% of gradients"},
    {"compress: 1-bit", "0.13 B/param", "send one bit per gradient", "",
     "needs error feedback and a warm-up", KNEE_LEVER_COMPRESS, KNEE_NUMERICS_TRAINING,
     send_one_bit, NULL, NULL, "1-bit gradients"},
    {"local SGD", "sync every 8", "synchronise every 8 steps", "",
     "ranks drift apart between synchronisations", KNEE_LEVER_SYNC, KNEE_NUMERICS_TRAINING,
     local_sgd, "sync-every 8", "sync-every 8", "sync every 8 steps"},
    {"DiLoCo", "sync every 100", "synchronise every 100 steps (DiLoCo)", "",
     "other optimizer (outer momentum); costs some loss per token", KNEE_LEVER_SYNC,
     KNEE_NUMERICS_TRAINING, diloco, NULL, NULL, "sync every 100 steps"},
    {"faster link", "2x", "use a link twice as fast", "", "money for hardware", KNEE_LEVER_HARDWARE,
     KNEE_NUMERICS_SAME, faster_link, "network 2x", "network 2x", "2x link speed"},
    {"expected link rate", "as fast as it should be", "fix the slow link",
     "NCCL_DEBUG=INFO, and look for NET/Socket", "none", KNEE_LEVER_NETWORK, KNEE_NUMERICS_SAME,
     NULL, NULL, NULL, "expected link rate"},
    {"another algorithm", "", "use another all-reduce algorithm", "NCCL_ALGO",
     "none for quality; set it in the library", KNEE_LEVER_NETWORK, KNEE_NUMERICS_SAME,
     best_algorithm, NULL, NULL, "another all-reduce algorithm"},
    {"another axis", "tensor parallel in the node", "add tensor parallelism inside the node", "",
     "code; see knee tax for what it pays", KNEE_LEVER_NETWORK, KNEE_NUMERICS_SAME, another_axis,
     NULL, NULL, "tensor parallel in the node"},
    {"faster loader", "keeps ahead", "load batches ahead of the step",
     "DataLoader(num_workers=8, prefetch_factor=4)", "CPU cores or storage", KNEE_LEVER_INPUT,
     KNEE_NUMERICS_SAME, faster_loader, "loader-ahead", "loader-ahead", "faster data loader"},
    {"even workers", "all on time", "even out the ranks", "", "find the slow rank; upper bound",
     KNEE_LEVER_STRAGGLER, KNEE_NUMERICS_SAME, even_workers, "even", "even", "even out the ranks"},
    {"fewer launches", "host keeps ahead", "capture the step as a CUDA graph",
     "torch.compile(model, mode=\"reduce-overhead\")", "CUDA graphs or compilation; fixed shapes",
     KNEE_LEVER_HOST, KNEE_NUMERICS_SAME, fewer_launches, "no-host-gaps", "no-host-gaps",
     "fewer launches (CUDA graphs)"},
    {"hidden copies", "pinned, asynchronous", "copy from pinned memory",
     "DataLoader(pin_memory=True), .to(device, non_blocking=True)", "none for quality",
     KNEE_LEVER_COPY, KNEE_NUMERICS_SAME, hidden_copies, "pinned", "pinned", "pinned host memory"},
    {"no device copies", "none", "remove device-to-device copies",
     "write into views or preallocated tensors (out=)", "code", KNEE_LEVER_COPY, KNEE_NUMERICS_SAME,
     NULL, NULL, NULL, "no device-to-device copies"},
    {"copies beside compute", "own stream", "copy on another stream",
     "copy the next batch in a torch.cuda.Stream()", "none for quality", KNEE_LEVER_COPY,
     KNEE_NUMERICS_SAME, NULL, NULL, NULL, "copies on another stream"},
    {"tensor cores", "TF32", "let 32-bit matrix products use tensor cores",
     "torch.set_float32_matmul_precision(\"high\")", "products round to 10 bits of mantissa",
     KNEE_LEVER_FUSE, KNEE_NUMERICS_ROUNDING, NULL, NULL, NULL, "TF32 matrix products"},
    {"fused attention", "one kernel", "use fused attention",
     "F.scaled_dot_product_attention in bf16, or attn_implementation=\"sdpa\"", "rounding",
     KNEE_LEVER_FUSE, KNEE_NUMERICS_ROUNDING, NULL, NULL, NULL, "fused attention"},
    {"16 bits", "bf16", "compute with 16-bit numbers", "torch.autocast(\"cuda\", torch.bfloat16)",
     "products round to 8 bits of mantissa", KNEE_LEVER_FUSE, KNEE_NUMERICS_ROUNDING, NULL, NULL,
     NULL, "bf16 matrix products"},
    {"fused optimizer", "one kernel", "use a fused optimizer",
     "AdamW(model.parameters(), fused=True)", "none", KNEE_LEVER_FUSE, KNEE_NUMERICS_SAME, NULL,
     NULL, NULL, "fused optimizer"},
    {"32 bits", "float32", "compute with 32-bit numbers",
     "model.float(), torch.set_float32_matmul_precision(\"high\")",
     "products round to 10 bits of mantissa", KNEE_LEVER_FUSE, KNEE_NUMERICS_ROUNDING, NULL, NULL,
     NULL, "32-bit numbers (TF32)"},
    {"less indexing", "sparse product", "gather and scatter less",
     "a CSR product (torch.sparse.mm) for index_select and index_add", "code", KNEE_LEVER_FUSE,
     KNEE_NUMERICS_ROUNDING, NULL, NULL, NULL, "less gathering and scattering"},
    {"no checkpointing", "off", "turn off activation checkpointing",
     "checkpoint fewer layers, or gradient_checkpointing_disable()",
     "memory: all activations stay until the backward pass", KNEE_LEVER_FUSE, KNEE_NUMERICS_SAME,
     NULL, NULL, NULL, "no checkpointing"},
    {"GPU alone", "no other process", "give the job its own GPU",
     "nvidia-smi lists the other processes; CUDA_VISIBLE_DEVICES", "none", KNEE_LEVER_FUSE,
     KNEE_NUMERICS_SAME, NULL, NULL, NULL, "GPU not shared"},
    {"one tensor", "allocated once", "allocate tensors that grow once",
     "cache[:, :, n:n + 1] = k instead of torch.cat([cache, k])", "code", KNEE_LEVER_FUSE,
     KNEE_NUMERICS_SAME, NULL, NULL, NULL, "no torch.cat of what grows"},
    {"channels last", "NHWC", "keep images as NHWC",
     "model and batch .to(memory_format=torch.channels_last)", "rounding", KNEE_LEVER_FUSE,
     KNEE_NUMERICS_ROUNDING, NULL, NULL, NULL, "channels_last"},
    {"fused kernels", "torch.compile", "fuse elementwise kernels", "torch.compile(model)",
     "compile time; rounding", KNEE_LEVER_FUSE, KNEE_NUMERICS_ROUNDING, NULL, NULL, NULL,
     "fused kernels (torch.compile)"},
};
#define TABLE (sizeof table / sizeof *table)
/* More and fewer GPUs are never offered for a recording; buckets and gathered parameters come from
 * a replay, which drops the rows of closed forms. Of the rows that only a recording shows at least
 * four do not hold of the same step: what grows has no backward pass, 64-bit products are not
 * 32-bit ones, and convolutions stand beside no attention that is not fused. */
_Static_assert(TABLE - 8 <= KNEE_LEVERS_MAX, "KNEE_LEVERS_MAX is too small");

const char *knee_numerics_name(enum knee_numerics numerics)
{
    static const char *const names[] = {"same", "rounding", "changes optimizer"};
    return names[numerics];
}

/* A row of the table as a change whose gain is not known yet. */
static struct knee_lever lever_of(const struct change *row)
{
    return (struct knee_lever){.name = row->name,
                               .change = row->change,
                               .words = row->words,
                               .action = row->action,
                               .how = row->how,
                               .risk = row->risk,
                               .kind = row->kind,
                               .numerics = row->numerics,
                               .low_s = NAN,
                               .high_s = NAN,
                               .quality_gain = NAN,
                               .knee_workers = NAN};
}

struct knee_lever knee_change_named(const char *name)
{
    size_t i = 0;
    while (i + 1 < TABLE && strcmp(table[i].name, name) != 0)
        i++;
    return lever_of(&table[i]);
}

bool knee_change_replayed(const char *row, struct knee_lever *out)
{
    for (size_t i = 0; i < TABLE; i++)
        if (table[i].replay && strcmp(table[i].replay, row) == 0) {
            *out = lever_of(&table[i]);
            out->change = table[i].replayed;
            return true;
        }
    return false;
}

/* Names for values that have no row in the table: "wire fp16" is "fp16 gradients". */
void knee_change_words(const char *row, struct knee_text *text)
{
    static const struct {
        const char *key, *words; /* %s: the value */
    } keys[] = {
        {"wire ", "%s gradients"},
        {"bucket ", "%s buckets"},
        {"accumulate ", "accumulate %s micro-batches"},
        {"batch ", "%s batch per GPU"},
        {"sync-every ", "sync every %s steps"},
        {"network ", "%s network"},
        {"workers ", "%s ranks"},
        {"prefetch ", "prefetch %s"},
        {"hsdp ", "shard over %s ranks (HSDP)"},
        {"without ", "without rank %s"},
        {"cluster ", "on %s"},
        {"algorithm ", "%s all-reduce"},
        {"scale ", "kernels %s"},
    };
    struct knee_lever lever;
    if (knee_change_replayed(row, &lever)) {
        knee_text_puts(text, lever.words);
        return;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        size_t length = strlen(keys[i].key), before = strcspn(keys[i].words, "%");
        if (strncmp(row, keys[i].key, length) != 0)
            continue;
        knee_text_add(text, keys[i].words, before);
        knee_text_printf(text, "%s%s", row + length, keys[i].words + before + 2);
        return;
    }
    knee_text_puts(text, row);
}

enum knee_numerics knee_change_numerics(const char *row, bool changes_training)
{
    struct knee_lever lever;
    if (changes_training)
        return KNEE_NUMERICS_TRAINING;
    if (knee_change_replayed(row, &lever))
        return lever.numerics;
    return strncmp(row, "wire ", 5) == 0 ? KNEE_NUMERICS_ROUNDING : KNEE_NUMERICS_SAME;
}

double knee_lever_gain(const struct knee_lever *lever)
{
    return isnan(lever->quality_gain) ? lever->gain : lever->quality_gain;
}

/* Insertion sort: there are few, and ties keep the table's order. */
void knee_levers_sort(struct knee_lever *levers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct knee_lever lever = levers[i];
        size_t j = i;
        for (; j > 0 && knee_lever_gain(&levers[j - 1]) < knee_lever_gain(&lever); j--)
            levers[j] = levers[j - 1];
        levers[j] = lever;
    }
}

double knee_lever_cost(const struct knee_lever *lever, double workers)
{
    return lever->row.workers / workers / (1 + lever->gain);
}

static void weigh(const struct trial *t, const struct knee_row *before, struct knee_lever *lever)
{
    knee_evaluate(&t->terms, t->workers, &lever->row);
    lever->knee_workers = knee_tolerance_workers(&t->terms, t->facts->tolerance);
    lever->gain = lever->row.throughput_per_s / before->throughput_per_s - 1;
    lever->quality_gain = before->time_to_quality_s / lever->row.time_to_quality_s - 1;
    lever->cost_ratio = knee_lever_cost(lever, before->workers);
    lever->saved_per_day =
        (1 - lever->cost_ratio) * before->workers * t->terms.price_per_s * SECONDS_PER_DAY;
}

/* Transformers keep layers near hidden/128 (Kaplan et al. 2020), so P = 12 L h^2 gives h. */
static double width_of(const struct knee_job *job)
{
    const struct knee_model *model = job->model >= 0 ? knee_model_at((size_t)job->model) : NULL;
    if (model && !isnan(model->shape.hidden))
        return model->shape.hidden;
    return isnan(job->params) ? 4096 : cbrt(job->params * 128 / 12);
}

struct knee_lever_facts knee_lever_facts_of(const struct knee_job *job,
                                            const struct knee_knee *knee)
{
    return (struct knee_lever_facts){
        .params = job->params,
        .bytes_per_param = job->bytes_per_param,
        .gradient_bytes = knee_job_bytes(job),
        .width = width_of(job),
        .flops_per_s = job->flops_per_s,
        .memory_bytes_per_s = job->hw.memory_bytes_per_s,
        .node_bytes_per_s = job->hw.node_bandwidth_bytes_per_s,
        .gpus_per_node = job->hw.gpus_per_node,
        .link_known = !isnan(job->hw.bandwidth_bytes_per_s),
        .tolerance = job->tolerance,
        .limit_workers = knee->limit_workers,
        .knee_workers = knee->tolerance_workers,
        .barred = 0,
    };
}

/* Row i of the table, where it is not barred and applies. */
static bool try_lever(size_t i, struct trial *t)
{
    if ((table[i].kind & t->facts->barred) || !table[i].apply || !table[i].apply(t))
        return false;
    knee_terms_settle(&t->terms);
    return true;
}

size_t knee_levers(const struct knee_terms *terms, const struct knee_lever_facts *facts,
                   const struct knee_row *at, struct knee_lever *levers)
{
    size_t count = 0;
    for (size_t i = 0; i < TABLE; i++) {
        struct trial trial = {*terms, at->workers, facts, table[i].change};
        if (!try_lever(i, &trial))
            continue;
        struct knee_lever *lever = &levers[count++];
        *lever = lever_of(&table[i]);
        lever->change = trial.change;
        weigh(&trial, at, lever);
    }
    knee_levers_sort(levers, count);
    return count;
}

double knee_levers_pull(const struct knee_prediction *before, const char *set,
                        struct knee_terms *terms)
{
    struct knee_lever_facts facts = knee_lever_facts_of(&before->job, &before->knee);
    double workers = before->at.workers;
    *terms = before->terms;
    for (; *set; set += *set == '+') {
        size_t length = strcspn(set, "+");
        for (size_t i = 0; i < TABLE; i++) {
            struct trial trial = {*terms, workers, &facts, table[i].change};
            bool meant = strncmp(table[i].name, set, length) == 0 && !table[i].name[length];
            if (!meant || !try_lever(i, &trial))
                continue;
            *terms = trial.terms;
            workers = trial.workers;
        }
        set += length;
    }
    return workers;
}

/* What the first advice may be, best kind first: what leaves the result as it is (or rounds it as
 * bf16 does) and needs no other hardware; then hardware; then what changes training. */
static int tier_of(const struct knee_lever *lever)
{
    if (lever->numerics == KNEE_NUMERICS_TRAINING)
        return 2;
    return lever->kind & KNEE_LEVER_HARDWARE ? 1 : 0;
}

size_t knee_levers_best(const struct knee_lever *levers, size_t count, unsigned barred,
                        double least)
{
    for (int tier = 0; tier <= 2; tier++)
        for (size_t i = 0; i < count; i++)
            if (tier_of(&levers[i]) == tier && !(levers[i].kind & barred) &&
                knee_lever_gain(&levers[i]) >= least)
                return i;
    return SIZE_MAX;
}
