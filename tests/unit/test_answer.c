/* SPDX-License-Identifier: MIT */
/* Answers as data: a field is one row, and every format has it. */
#include "out/answer.h"
#include "say/numbers.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

/* ---- A toy answer: a kennel of dogs ---- */

struct dog {
    const char *name;
    double weight_kg, low, high, meal_s;
    int64_t nap_ns;
    bool barks;
    size_t legs;
};

struct kennel {
    struct dog *dogs;
    size_t dog_count;
    double rent;
    char town[16];
};

static void mark(const struct knee_at *at, struct knee_value *out)
{
    knee_value_text(out, ((const struct dog *)at->row)->barks ? "<- loud" : "");
}

static const struct knee_field sleep_fields[] = {
    KNEE_NS(struct dog, nap_ns, "nap_s", "nap", KNEE_AS_SECONDS, KNEE_TIER_FULL, "one nap"),
};
static const struct knee_field dog_fields[] = {
    KNEE_FIELD(struct dog, name, "name", "dog", KNEE_AS_TEXT, KNEE_TIER_SCREEN, "its name",
               .label = true),
    KNEE_FIELD(struct dog, weight_kg, "weight_kg", "weight", KNEE_AS_NUMBER, KNEE_TIER_SCREEN,
               "on the scale", .interval = true, .interval_offset = offsetof(struct dog, low),
               .metric = "dog_weight_kg"),
    KNEE_FIELD(struct dog, meal_s, "meal_s", "meal", KNEE_AS_SECONDS, KNEE_TIER_SCREEN, "one meal"),
    KNEE_FIELD(struct dog, legs, "legs", "legs", KNEE_AS_COUNT, KNEE_TIER_SCREEN, "of four"),
    KNEE_FIELD(struct dog, barks, "barks", NULL, KNEE_AS_YES_NO, KNEE_TIER_DATA, "at all"),
    KNEE_GROUP("sleep", sleep_fields, "how it sleeps"),
    KNEE_GET(mark, "mark", "", KNEE_AS_TEXT, KNEE_TIER_SCREEN, "the loud one"),
};
static const struct knee_field kennel_fields[] = {
    KNEE_SENTENCE,
    KNEE_FIELD(struct kennel, rent, "rent", NULL, KNEE_AS_DOLLARS, KNEE_TIER_DATA, "a month",
               .metric = "kennel_rent_dollars"),
    KNEE_FIELD(struct kennel, town, "town", NULL, KNEE_AS_TEXT, KNEE_TIER_DATA, "where it is"),
    KNEE_ROWS(struct kennel, dogs, dog_count, "dogs", dog_fields, "one row per dog"),
};
static const struct knee_view kennel_views[] = {{.list = "dogs", .title = "Dogs"}};

static size_t bar(const void *result, struct knee_bar_part *parts)
{
    (void)result;
    parts[0] = (struct knee_bar_part){.name = "awake", .share = 0.25};
    parts[1] = (struct knee_bar_part){.name = "asleep", .share = 0.75};
    return 2;
}
static const struct knee_picture pictures[] = {{.bar = bar}};

static void say(const void *result, struct knee_said *said)
{
    const struct kennel *kennel = result;
    knee_text_printf(&said->title, "%s in %s", knee_say_count((double)kennel->dog_count, "dog").s,
                     kennel->town);
    knee_text_puts(&said->headline, "Feed the dogs.");
    knee_text_puts(&said->reason, "They are hungry.");
    knee_text_printf(&said->effect, "It costs %s.", SAY_DOLLARS(kennel->rent));
    knee_text_puts(&said->assumed, "four legs");
    knee_text_puts(&said->next, "knee feed");
    knee_text_puts(&said->notes, "One note.\nAnother note.\n");
}

static const struct knee_answer_type kennel_answer = {.schema = "knee.kennel/1",
                                                      KNEE_FIELDS(kennel_fields),
                                                      KNEE_VIEWS(kennel_views),
                                                      .pictures = pictures,
                                                      .picture_count = 1,
                                                      .say = say};

static struct dog few[] = {
    {"Rex", 31.4, 30, 33, 0.354, 1500000001, true, 4},
    {"Pip, \"the small\"", 4, NAN, NAN, 61.23, 0, false, 4},
};
static const struct kennel kennel = {few, 2, 1234567, "Delft"};

static char *shown(const struct kennel *of, enum knee_format format, enum knee_tier tier)
{
    struct knee_text text = {0};
    knee_answer_write(&kennel_answer, of, format, &(struct knee_style){.ascii = true, .tier = tier},
                      &text);
    assert_false(text.failed);
    return text.data;
}

static size_t lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/* ---- One row, all formats ---- */

TEST(test_text)
{
    char *text = shown(&kennel, KNEE_TEXT, KNEE_TIER_SCREEN);
    assert_string_equal(
        text, "2 dogs in Delft\n"
              "\n"
              "Feed the dogs.\n"
              "They are hungry.\n"
              "It costs $1.2M.\n"
              "\n"
              "  ##################======================================================\n"
              "  # awake 25%  = asleep 75%\n"
              "\n"
              "  dog                     weight    meal  legs\n"
              "  Rex               31.4 (30-33)  354 ms     4  <- loud\n"
              "  Pip, \"the small\"             4  61.2 s     4\n"
              "Assumed: four legs\n"
              "Next: knee feed\n");
    free(text);
}

TEST(test_brief_is_three_lines)
{
    char *text = shown(&kennel, KNEE_TEXT, KNEE_TIER_BRIEF);
    assert_string_equal(text, "Feed the dogs.\nThey are hungry.\nIt costs $1.2M.\n");
    free(text);
}

TEST(test_full_has_more)
{
    char *text = shown(&kennel, KNEE_TEXT, KNEE_TIER_FULL);
    assert_non_null(strstr(text, "nap"));
    assert_non_null(strstr(text, "Note: Another note.\n"));
    free(text);
}

TEST(test_json_has_every_field_exactly)
{
    char *text = shown(&kennel, KNEE_JSON, KNEE_TIER_SCREEN);
    assert_non_null(strstr(text, "\"schema\": \"knee.kennel/1\""));
    assert_non_null(
        strstr(text, "\"sentence\": \"Feed the dogs. They are hungry. It costs $1.2M.\""));
    assert_non_null(strstr(text, "\"headline\": \"Feed the dogs.\""));
    assert_non_null(
        strstr(text, "{\"name\": \"Rex\", \"weight_kg\": 31.4, \"low_weight_kg\": 30, "
                     "\"high_weight_kg\": 33, \"meal_s\": 0.354, \"legs\": 4, \"barks\": true, "
                     "\"sleep\": {\"nap_s\": 1.500000001}, \"mark\": \"<- loud\"}"));
    assert_non_null(strstr(text, "\"low_weight_kg\": null"));
    free(text);
}

TEST(test_csv)
{
    char *text = shown(&kennel, KNEE_CSV, KNEE_TIER_SCREEN);
    assert_string_equal(
        text, "name,weight_kg,low_weight_kg,high_weight_kg,meal_s,legs,barks,sleep_nap_s,mark\n"
              "Rex,31.4,30,33,0.354,4,true,1.500000001,<- loud\n"
              "\"Pip, \"\"the small\"\"\",4,,,61.23,4,false,0.0,\n");
    free(text);
}

TEST(test_markdown)
{
    char *text = shown(&kennel, KNEE_MARKDOWN, KNEE_TIER_SCREEN);
    assert_non_null(strstr(text, "### 2 dogs in Delft\n"));
    assert_non_null(strstr(text, "**Feed the dogs.**\n"));
    assert_non_null(strstr(text, "| Rex | 31.4 (30-33) | 354 ms | 4 | <- loud |\n"));
    free(text);
}

TEST(test_prometheus)
{
    OWNED(knee_text) text = {0};
    struct dog odd[] = {{"a\"b", NAN, 0, 0, 0, 0, false, 0}, {"c", 2, 0, 0, 0, 0, false, 0}};
    struct kennel one = {odd, 2, INFINITY, ""};
    knee_answer_prometheus(&kennel_answer, &kennel, &text);
    assert_non_null(strstr(text.data,
                           "# TYPE dog_weight_kg gauge\ndog_weight_kg{name=\"Rex\"} 31.4\n"
                           "dog_weight_kg{name=\"Pip, \\\"the small\\\"\"} 4\n"));
    assert_non_null(strstr(text.data, "kennel_rent_dollars 1234567\n"));
    knee_text_release(&text);
    knee_answer_prometheus(&kennel_answer, &one, &text);
    assert_null(strstr(text.data, "rent_dollars i")); /* what is not finite has no line */
    assert_null(strstr(text.data, "a\\\"b"));
    assert_non_null(strstr(text.data, "{name=\"c\"} 2\n"));
}

TEST(test_schema_and_document_have_every_key)
{
    OWNED(knee_text) schema = {0}, document = {0};
    knee_answer_schema(&kennel_answer, &schema);
    knee_answer_document(&kennel_answer, &document);
    assert_non_null(strstr(schema.data, "\"key\": \"weight_kg\""));
    assert_non_null(strstr(document.data, "| `dogs[].weight_kg` | number | on the scale"));
    assert_non_null(strstr(document.data, "| `dogs[].sleep.nap_s` | seconds | one nap |"));
}

/* ---- A screen stays a screen ---- */

TEST(test_a_screen_has_24_lines)
{
    struct dog many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = (struct dog){"Spot", (double)i, NAN, NAN, 1, 1, false, 4};
    struct kennel large = {many, 200, 1, "Delft"};
    char *text = shown(&large, KNEE_TEXT, KNEE_TIER_SCREEN);
    assert_true(lines(text) <= KNEE_SCREEN_LINES);
    assert_non_null(strstr(text, "192 more rows with -v"));
    assert_null(strstr(text, "\n  Spot         8")); /* the ninth */
    free(text);
    text = shown(&large, KNEE_TEXT, KNEE_TIER_FULL);
    assert_true(lines(text) > 200);
    free(text);
}

TEST(test_a_column_without_a_value_is_not_shown)
{
    struct dog light[] = {{"A", NAN, NAN, NAN, 1, 1, false, 4},
                          {"B", NAN, NAN, NAN, 2, 1, false, 4}};
    struct kennel of = {light, 2, 1, "Delft"};
    char *text = shown(&of, KNEE_TEXT, KNEE_TIER_SCREEN);
    assert_null(strstr(text, "weight"));
    free(text);
}

TEST(test_an_empty_list_has_no_table)
{
    struct kennel none = {NULL, 0, 1, "Delft"};
    char *text = shown(&none, KNEE_TEXT, KNEE_TIER_SCREEN);
    assert_null(strstr(text, "meal"));
    free(text);
    text = shown(&none, KNEE_CSV, KNEE_TIER_SCREEN);
    assert_int_equal(lines(text), 1);
    free(text);
}

/* ---- Numbers ---- */

TEST(test_numbers)
{
    static const struct {
        double value;
        enum knee_kind kind;
        const char *words;
    } cases[] = {
        {0.354, KNEE_AS_SECONDS, "354 ms"},
        {6.94, KNEE_AS_SECONDS, "6.94 s"},
        {118.6, KNEE_AS_SECONDS, "119 s"},
        {599, KNEE_AS_SECONDS, "599 s"},
        {900, KNEE_AS_SECONDS, "15 min"},
        {56520, KNEE_AS_SECONDS, "15.7 h"},
        {864000, KNEE_AS_SECONDS, "10 days"},
        {2.5e-6, KNEE_AS_SECONDS, "2.5 us"},
        {0.99996, KNEE_AS_SECONDS, "1 s"},
        {0, KNEE_AS_SECONDS, "0 s"},
        {62e9, KNEE_AS_BYTES, "62 GB"},
        {128.5e9, KNEE_AS_BYTES, "128 GB"},
        {33554432, KNEE_AS_MESSAGE, "32 MiB"},
        {34e6, KNEE_AS_MESSAGE, "34 MB"},
        {1.47e9, KNEE_AS_RATE, "1.47 GB/s"},
        {0.491, KNEE_AS_SHARE, "49%"},
        {0.08, KNEE_AS_SHARE, "8%"},
        {0.083, KNEE_AS_SHARE, "8.3%"},
        {0.996, KNEE_AS_SHARE, "99.6%"},
        {1, KNEE_AS_SHARE, "100%"},
        {0.0003, KNEE_AS_SHARE, "0%"},
        {0.12, KNEE_AS_CHANGE, "+12%"},
        {-0.034, KNEE_AS_CHANGE, "-3.4%"},
        {1.4528, KNEE_AS_TIMES, "1.45x"},
        {1234567, KNEE_AS_DOLLARS, "$1.2M"},
        {57600, KNEE_AS_DOLLARS, "$57,600"},
        {140, KNEE_AS_DOLLARS, "$140"},
        {2.5, KNEE_AS_DOLLARS, "$2.50"},
        {0.672, KNEE_AS_DOLLARS, "$0.67"},
        {-4600, KNEE_AS_DOLLARS, "-$4,600"},
        {604812, KNEE_AS_LARGE, "605k"},
        {4680, KNEE_AS_COUNT, "4,680"},
        {-3e40, KNEE_AS_COUNT, "-3e+40"},
        {512, KNEE_AS_COUNT, "512"},
        {0.0385, KNEE_AS_MS, "38.5"},
        {5.464, KNEE_AS_NUMBER, "5.46"},
        {790e12, KNEE_AS_FLOPS, "790 TFLOP/s"},
        {690, KNEE_AS_WATTS, "690 W"},
        {5200, KNEE_AS_JOULES, "5.2 kJ"},
        {NAN, KNEE_AS_SECONDS, "-"},
        {INFINITY, KNEE_AS_COUNT, "unlimited"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(knee_say_number(cases[i].value, cases[i].kind).s, cases[i].words);
}

TEST(test_intervals)
{
    assert_string_equal(knee_say_interval(6.94, 6.05, 8.3, KNEE_AS_SECONDS).s, "6.94 s (6.05-8.3)");
    assert_string_equal(knee_say_interval(0.95, 0.9, 1.1, KNEE_AS_SECONDS).s, "950 ms (900-1,100)");
    assert_string_equal(knee_say_interval(0.83, 0.752, 0.912, KNEE_AS_SHARE).s, "83% (75-91)");
    assert_string_equal(knee_say_interval(3, 3, 3, KNEE_AS_SECONDS).s, "3 s");
    assert_string_equal(knee_say_interval(3, NAN, NAN, KNEE_AS_SECONDS).s, "3 s");
    assert_true(knee_rough(0.6, 4.4));
    assert_false(knee_rough(6, 8));
    assert_string_equal(knee_say_count(1, "rank").s, "1 rank");
    assert_string_equal(knee_say_count(4096, "rank").s, "4,096 ranks");
}

/* A template takes each value by its type and leaves out a clause without one. */
TEST(test_sentences)
{
    struct knee_text text = {.alloc = NULL};
    size_t ranks = 1;
    int64_t step = 12345;
    PUT(&text, "{ranks}, {} at {}[, p95 {time}][, {large} tokens/s].", ranks, "now", step, NAN,
        605e3);
    PUT(&text, " {GPUs}: {time}[, {share} MFU][[{.3}]]", 8, SPAN(6.94, 6.05, 8.3), 0.49, "h100-x");
    PUT(&text, "[ {files} lost][ on {}][ of {count}] {}", 0, "", (unsigned long long)4680);
    assert_string_equal(text.data,
                        "1 rank, now at 12345, 605k tokens/s. 8 GPUs: 6.94 s (6.05-8.3), "
                        "49% MFU[h10] of 4,680 ?");
    knee_text_release(&text);
}

/* ---- Memory runs out at every allocation in turn ---- */

TEST(test_out_of_memory_is_noticed)
{
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++) {
        FOR_EACH_FAILURE(failing) {
            OWNED(knee_text) text = {.alloc = &failing.alloc};
            knee_answer_write(&kennel_answer, &kennel, (enum knee_format)format,
                              &(struct knee_style){0}, &text);
            bool failed = failing_met(&failing);
            assert_int_equal(text.failed, failed);
        }
    }
}
