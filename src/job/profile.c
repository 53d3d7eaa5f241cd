/* SPDX-License-Identifier: MIT */
/* Profiles: resolving constants, and picking one for a run that is described in words. */
#include "job/profile.h"

#include "base/decimal.h"
#include "base/fold.h"
#include "base/keys.h"

#include <math.h>
#include <string.h>

/* ---- The constants, one row each ---- */

#define RATE(key_name, field, unit, low, high, heading, absent, words)                             \
    KNEE_NUMBER(struct knee_rates, key_name, field, unit, low, high, heading, absent,              \
                KNEE_OFF_PAGE(words))
#define SHARE(key_name, field, heading, words)                                                     \
    RATE(key_name, field, KNEE_UNIT_FRACTION, 1e-4, 4, heading, "from the profile", words)
#define FACTOR(key_name, field, heading, words)                                                    \
    RATE(key_name, field, KNEE_UNIT_FACTOR, 0, 1e6, heading, "from the profile", words)
/* What times are divided by: never 0. */
#define SPEED(key_name, field, heading, words)                                                     \
    RATE(key_name, field, KNEE_UNIT_FACTOR, 1e-4, 1e6, heading, "from the profile", words)
#define TIME(key_name, field, heading, words)                                                      \
    RATE(key_name, field, KNEE_UNIT_SECONDS, 0, 1e3, heading, "from the profile", words)
#define BYTES(key_name, field, heading, words)                                                     \
    RATE(key_name, field, KNEE_UNIT_BYTES, 0, 1e15, heading, "from the profile", words)
#define HARD "Hardware"
#define SOFT "Software"
#define ROOM "Memory"

static const struct knee_key rows[] = {
    SHARE("gemm-16bit", gemm_16bit, HARD, "share of the peak of large 16-bit products"),
    SHARE("gemm-8bit", gemm_8bit, HARD, "the same, 8 bits"),
    SHARE("gemm-4bit", gemm_4bit, HARD, "the same, 4 bits"),
    FACTOR("gemm-depth-16bit", gemm_depth_16bit, HARD, "inner length at which half is reached"),
    FACTOR("gemm-depth-8bit", gemm_depth_8bit, HARD, "the same, 8 bits"),
    FACTOR("gemm-depth-4bit", gemm_depth_4bit, HARD, "the same, 4 bits"),
    FACTOR("gemm-waves-16bit", gemm_waves_16bit, HARD,
           "waves of 128 x 128 tiles at which half is reached"),
    FACTOR("gemm-waves-8bit", gemm_waves_8bit, HARD, "the same, 8 bits"),
    FACTOR("gemm-waves-4bit", gemm_waves_4bit, HARD, "the same, 4 bits"),
    TIME("gemm-start", gemm_start_s, HARD, "start of a product"),
    SHARE("gemm-memory", gemm_memory, HARD, "share of the memory rate that a product reaches"),
    SHARE("gemm-alone", gemm_alone, HARD,
          "share of the peak of large 16-bit products timed alone; for knee bench --gemm"),
    SPEED("clock", clock, HARD, "sustained clock against the peak rate's, over its relatives"),
    SPEED("processors", processors, HARD, "multiprocessors of the GPU"),
    SHARE("memory", memory, HARD, "share of the memory rate that streaming operations reach"),
    SHARE("flash-forward", flash_forward, HARD, "share of the 16-bit peak, fused attention"),
    SHARE("flash-backward", flash_backward, HARD, "the same, backward"),
    FACTOR("flash-length", flash_length, HARD, "sequence length at which half of it is reached"),
    SHARE("flash-small-head", flash_small_head, HARD,
          "of that rate which heads of 64 values or fewer reach"),
    RATE("host-rate", host_bytes_per_s, KNEE_UNIT_BYTES_PER_S, 1, KNEE_HUGE, HARD,
         "from the profile", "between GPU and host memory"),

    SPEED("gemm", gemm, SOFT, "speed of products against the hardware's"),
    SPEED("weight-gradient", weight_gradient, SOFT, "speed of weight gradients against others"),
    SPEED("flash", flash, SOFT, "speed of fused attention against the hardware's"),
    SPEED("flash-8bit", flash_8bit, HARD, "speed of attention in 8 bits against 16"),
    SPEED(
        "flash-portable", flash_portable, HARD,
        "speed of attention kernels not written for this architecture (FlashAttention 2, Triton)"),
    FACTOR("portable-attention", portable_attention, SOFT, "1: attention is such a kernel"),
    FACTOR("fused-attention", fused_attention, SOFT, "1: fused, 0: scores go through memory"),
    BYTES("scores-forward-bytes", scores_forward_bytes, SOFT, "moved per score, not fused"),
    BYTES("scores-backward-bytes", scores_backward_bytes, SOFT, "the same, backward"),
    FACTOR("elementwise", elementwise, SOFT, "bytes of norms and activations against the fewest"),
    FACTOR("loss", loss, SOFT, "bytes of the loss against the usual"),
    FACTOR("cast", cast, SOFT, "bytes of 8-bit casts against the fewest"),
    SPEED("fp8-block", fp8_block, SOFT, "speed of block-scaled products against plain ones"),
    SPEED("fp8-row", fp8_row, SOFT, "speed of row-scaled products against plain ones"),
    FACTOR("recompute-op", recompute_op, SOFT, "share of the forward pass computed twice"),
    TIME("launch", launch_s, SOFT, "host time to launch a layer's forward pass"),
    TIME("tp-launch", tp_launch_s, SOFT, "the same for its tensor-parallel calls"),
    TIME("tp-wait", tp_wait_s, SOFT,
         "least time of a pass through a layer with tensor-parallel calls, stages on other nodes"),
    TIME("tp-wait-rank", tp_wait_rank_s, SOFT, "and for each of those ranks"),
    TIME("tp-hop", tp_hop_s, SOFT,
         "per pass, layer and rank when tensor-parallel ranks lie on several nodes"),
    TIME("gap", gap_s, SOFT, "idle time per layer and pass"),
    TIME("per-micro-batch", micro_batch_s, SOFT, "fixed time per micro-batch"),
    TIME("stall", stall_s, SOFT, "lost per micro-batch between stages on jobs of stall-gpus"),
    FACTOR("stall-gpus", stall_gpus, SOFT, "GPUs from which on stages stall; 0: never"),
    TIME("per-step", step_s, SOFT, "fixed time per step"),
    FACTOR("optimizer", optimizer, SOFT, "bytes of the optimizer against the usual"),
    FACTOR("jitter", jitter, SOFT, "how much ranks differ, as a share of the step"),
    FACTOR("tp-exposed", tp_exposed, SOFT, "tensor-parallel traffic that is not hidden"),
    FACTOR("cp-exposed", cp_exposed, SOFT, "the same for context-parallel traffic"),
    FACTOR("pp-exposed", pp_exposed, SOFT, "the same for traffic between stages"),
    FACTOR("dp-exposed", dp_exposed, SOFT, "least share of the gradient exchange that shows"),
    FACTOR("balanced-stages", balanced_stages, SOFT,
           "1: stages with embedding or head get fewer layers"),
    RATE("bucket-bytes", bucket_bytes, KNEE_UNIT_BYTES, 1, 1e15, SOFT, "from the profile",
         "gradients exchanged in one call"),
    FACTOR("bucket-per-rank", bucket_per_rank, SOFT,
           "Megatron-Core's rule: a bucket has so many parameters for each rank; 0: bucket-bytes"),
    SPEED("shard-rate", shard_rate, SOFT, "rate of parameter gathers against the link's"),
    FACTOR("shard-exposed", shard_exposed, SOFT, "least share of the gathers that shows"),
    TIME("shard-latency", shard_latency_s, SOFT, "per gather"),
    FACTOR("slowdown", slowdown, SOFT, "of compute while communication runs beside it"),
    FACTOR("shard-group", shard_group, SOFT, "GPUs that share one copy by default; 0: all"),
    SPEED("expert-gemm", expert_gemm, SOFT, "speed of grouped products against others"),
    TIME("expert-sync", expert_sync_s, SOFT,
         "per exchange of tokens: ranks meet, counts are exchanged, buffers set up"),
    FACTOR("expert-slowdown", expert_slowdown, SOFT,
           "of compute while an expert exchange runs beside it (processors it takes)"),
    FACTOR("expert-copies", expert_copies, SOFT, "bytes of permutations against the fewest"),
    FACTOR("expert-bias", expert_bias, SOFT, "bytes of adding experts' biases; 0: in the product"),
    FACTOR("expert-dedup", expert_dedup, SOFT, "1: a token goes to a rank, and a node, once"),
    TIME("expert-launch", expert_launch_s, SOFT, "host time per local expert"),
    TIME("moe-launch", moe_launch_s, SOFT, "host time per layer with experts"),

    BYTES("gradient-bytes", gradient_bytes, ROOM, "per parameter, kept and on the wire"),
    BYTES("state-bytes", state_bytes, ROOM, "optimizer and master weights per parameter"),
    FACTOR("activation-memory", activation_memory, ROOM, "against what the shapes add up to"),
    BYTES("base-memory", base_memory_bytes, ROOM, "context, libraries, workspaces"),
    FACTOR("gradients-stay", gradients_stay, ROOM, "1: allocated all the time"),
    FACTOR("gathered-share", gathered_share, ROOM, "of a layer, gathered at a time by zero3"),
    FACTOR("fragmentation", fragmentation, ROOM, "wasted share of activations and buffers"),
    FACTOR("memory-spread", memory_spread, ROOM,
           "standard deviation of the logarithm of actual over predicted"),
    BYTES("logits-bytes", logits_bytes, ROOM, "per logit, with loss and gradient"),
};

const struct knee_keys knee_rates_keys = KNEE_KEY_TABLE(rows, struct knee_rates);

/* ---- Look-ups ---- */

static size_t profile_count(void)
{
    return knee_profiles_count;
}

static const char *profile_name(size_t row)
{
    return row < knee_profiles_count ? knee_profiles[row].name : NULL;
}

const struct knee_choices knee_profile_names = {
    .what = "software profile", .count = profile_count, .name = profile_name};

const struct knee_profile *knee_profile_at(size_t row)
{
    return row < knee_profiles_count ? &knee_profiles[row] : NULL;
}

int knee_profile_row(const char *name)
{
    for (size_t row = 0; row < knee_profiles_count; row++)
        if (strcmp(knee_profiles[row].name, name) == 0)
            return (int)row;
    return -1;
}

const struct knee_architecture *knee_architecture_row(const char *gpu)
{
    for (size_t i = 0; i < knee_architectures_count; i++)
        if (strcmp(knee_architectures[i].gpu, gpu) == 0)
            return &knee_architectures[i];
    return NULL;
}

const char *knee_architecture_of(const char *gpu)
{
    const struct knee_architecture *row = knee_architecture_row(gpu);
    return row ? row->architecture : "";
}

enum knee_band_class knee_band_class_of(const struct knee_shape *shape, enum knee_basis basis)
{
    /* no measured run says how long a scan takes, and one benchmark has all runs with adapters */
    bool unseen = shape->linear_layers > 0 || shape->lora_rank > 0;
    if (basis >= KNEE_BASIS_UNNAMED)
        return shape->experts > 1            ? KNEE_BAND_UNNAMED_EXPERTS
               : basis == KNEE_BASIS_UNNAMED ? KNEE_BAND_UNNAMED
                                             : KNEE_BAND_UNNAMED_OTHER;
    return shape->experts > 1                      ? KNEE_BAND_EXPERTS
           : basis == KNEE_BASIS_ASSUMED || unseen ? KNEE_BAND_ASSUMED
                                                   : KNEE_BAND_KNOWN;
}

/* ---- Resolving ---- */

#define LINE_MAX 8 /* longest line of bases */

struct scope {
    const char *kind, *owner;
};

/* What holds for a GPU under a profile, from the general to the special. */
static size_t list_scopes(const char *gpu, int profile, struct scope *out)
{
    const char *line[LINE_MAX];
    size_t count = 0, bases = 0;
    for (; profile >= 0 && bases < LINE_MAX; bases++) {
        line[bases] = knee_profiles[profile].name;
        profile = knee_profile_row(knee_profiles[profile].base);
    }
    out[count++] = (struct scope){"all", ""};
    out[count++] = (struct scope){"architecture", knee_architecture_of(gpu)};
    out[count++] = (struct scope){"gpu", gpu};
    while (bases > 0)
        out[count++] = (struct scope){"profile", line[--bases]};
    return count;
}

/* Years from the beginning of 2025 to the version (24.07) of a profile or of the first of its bases
 * that has one; 0: none has. */
static double years_of(int profile)
{
    for (int bases = 0; profile >= 0 && bases < LINE_MAX; bases++) {
        double version = knee_profiles[profile].version, year = floor(version);
        if (!isnan(version))
            return year - 25 + floor(100 * (version - year) + 1e-6) / 12;
        profile = knee_profile_row(knee_profiles[profile].base);
    }
    return 0;
}

static void add_step(size_t constant, double years, struct knee_recipe *out)
{
    char op = knee_constants[constant].op[0];
    size_t row = knee_keys_find(&knee_rates_keys, knee_constants[constant].constant);
    if (row == knee_rates_keys.count || out->count == KNEE_RECIPE_MAX)
        return;
    out->step[out->count].constant = (unsigned short)constant;
    out->step[out->count].offset = (unsigned short)rows[row].offset;
    out->step[out->count].times = op != '=';
    out->step[out->count].power = op == '^' ? years : 1;
    out->count++;
}

void knee_recipe_init(const char *gpu, int profile, struct knee_recipe *out)
{
    struct scope scopes[3 + LINE_MAX];
    size_t count = list_scopes(gpu, profile, scopes);
    out->count = 0;
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < knee_constants_count; i++)
            if (strcmp(knee_constants[i].owner, scopes[s].owner) == 0 &&
                strcmp(knee_constants[i].scope, scopes[s].kind) == 0)
                add_step(i, years_of(profile), out);
}

void knee_rates_resolve(const struct knee_recipe *recipe, const double *values,
                        struct knee_rates *out)
{
    struct knee_rates rates;
    memset(&rates, 0, sizeof rates);
    knee_keys_clear(&knee_rates_keys, &rates);
    for (size_t i = 0; i < recipe->count; i++) {
        size_t constant = recipe->step[i].constant;
        double value = values ? values[constant] : knee_constants[constant].value;
        double *field = (double *)(void *)((char *)&rates + recipe->step[i].offset);
        if (recipe->step[i].power != 1)
            value = pow(value, recipe->step[i].power);
        *field = recipe->step[i].times ? *field * value : value;
    }
    *out = rates;
}

/* ---- Picking one by description ---- */

/* Every word of a list "a+b+c" (all = true), or any of them, stands in the text. */
static bool mentions(const char *text, const char *words, bool all)
{
    char word[64];
    while (*words) {
        size_t length = strcspn(words, "+");
        if (length >= sizeof word)
            return false;
        memcpy(word, words, length);
        word[length] = '\0';
        bool there = strstr(text, word) != NULL;
        if (there != all)
            return !all;
        words += length + (words[length] == '+');
    }
    return all;
}

/* A version like 24.07 or 26.02.01 that starts here, as 24.07 or 26.0201; NaN: none does. */
static double version_at(const char *at)
{
    if (!knee_is_digit(at[0]) || !knee_is_digit(at[1]) || at[2] != '.' || !knee_is_digit(at[3]) ||
        !knee_is_digit(at[4]) || knee_is_digit(at[5]))
        return NAN;
    double year = 10 * (at[0] - '0') + (at[1] - '0');
    double month = 10 * (at[3] - '0') + (at[4] - '0');
    if (year < 20 || year > 29 || month < 1 || month > 12)
        return NAN;
    double patch = at[5] == '.' && knee_is_digit(at[6]) ? knee_decimal_parse(at + 6, NULL) : 0;
    return year + month / 100 + fmin(patch, 99) / 10000;
}

/* The version that the text names: one that stands after the word for it, else the newest. */
static double version_in(const char *text)
{
    static const char *const words[] = {"container ", "nemo "};
    double newest = NAN;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = text; (at = strstr(at, words[i]));) {
            at += strlen(words[i]);
            if (!isnan(version_at(at)))
                return version_at(at);
        }
    for (const char *at = text; *at; at++) {
        bool inside = at > text && (knee_is_digit(at[-1]) || at[-1] == '.');
        double version = inside ? NAN : version_at(at);
        newest = newest >= version || isnan(version) ? newest : version;
    }
    return newest;
}

/* Within the family of a profile: the newest that is not after `version`, else the oldest. */
static int of_version(int profile, double version)
{
    const char *family = knee_profiles[profile].family;
    int best = -1, oldest = -1;
    if (isnan(version) || !*family)
        return profile;
    for (size_t row = 0; row < knee_profiles_count; row++) {
        const struct knee_profile *p = &knee_profiles[row];
        if (strcmp(p->family, family) != 0 || isnan(p->version))
            continue;
        if (p->version <= version + 1e-9 && (best < 0 || p->version > knee_profiles[best].version))
            best = (int)row;
        if (oldest < 0 || p->version < knee_profiles[oldest].version)
            oldest = (int)row;
    }
    return best >= 0 ? best : oldest >= 0 ? oldest : profile;
}

int knee_profile_pick(const char *description, const char *gpu, const char *precision)
{
    const char *architecture = knee_architecture_of(gpu);
    double version = version_in(description);
    for (size_t i = 0; i < knee_profile_rules_count; i++) {
        const struct knee_profile_rule *rule = &knee_profile_rules[i];
        if (!mentions(description, rule->words, true) ||
            (*rule->without && mentions(description, rule->without, false)) ||
            (*rule->architecture && strcmp(rule->architecture, architecture) != 0) ||
            (*rule->precision && !strstr(precision, rule->precision)) ||
            (!isnan(rule->from_version) && !(version >= rule->from_version - 1e-9)))
            continue;
        int row = knee_profile_row(rule->profile);
        return row < 0 ? row : of_version(row, version);
    }
    return knee_profile_row("generic");
}
