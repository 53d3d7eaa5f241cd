/* SPDX-License-Identifier: MIT */
/* Outputs: JSON is read back with libyaml (JSON is YAML) and compared with the structs. */
#include "knee_read.h"
#include "say/answers.h"
#include "shown.h"

#include "out/json.h"
#include "out/plot.h"
#include "out/table.h"
#include "out/words.h"

#if KNEE_HAVE_YAML
#include <yaml.h>

/* JSON as "path=value" lines: rows.3.step_s=0.14 */
struct paths {
    char *lines[20000];
    size_t count;
};

static void add_path(struct paths *paths, const char *path, const char *value)
{
    size_t size = strlen(path) + strlen(value) + 2;
    char *line = malloc(size);
    assert_non_null(line);
    snprintf(line, size, "%s=%s", path, value);
    assert_true(paths->count < 20000);
    paths->lines[paths->count++] = line;
}

static void walk(yaml_parser_t *parser, yaml_event_t *event, const char *path, struct paths *paths)
{
    yaml_event_t next;
    char inner[256];
    if (event->type == YAML_SCALAR_EVENT) {
        add_path(paths, path, (const char *)event->data.scalar.value);
        return;
    }
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    assert_true(mapping || event->type == YAML_SEQUENCE_START_EVENT);
    for (size_t i = 0;; i++) {
        assert_true(yaml_parser_parse(parser, &next));
        if (next.type == YAML_MAPPING_END_EVENT || next.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&next);
            return;
        }
        if (mapping) {
            snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "",
                     (const char *)next.data.scalar.value);
            yaml_event_delete(&next);
            assert_true(yaml_parser_parse(parser, &next));
        } else {
            snprintf(inner, sizeof inner, "%s.%zu", path, i);
        }
        walk(parser, &next, inner, paths);
        yaml_event_delete(&next);
    }
}

static struct paths *parse_json(const char *json)
{
    struct paths *paths = calloc(1, sizeof *paths);
    yaml_parser_t parser;
    yaml_event_t event;
    assert_non_null(paths);
    assert_true(yaml_parser_initialize(&parser));
    yaml_parser_set_input_string(&parser, (const unsigned char *)json, strlen(json));
    for (bool done = false; !done; yaml_event_delete(&event)) {
        if (!yaml_parser_parse(&parser, &event))
            fail_msg("not JSON: %s at line %zu", parser.problem, parser.problem_mark.line);
        if (event.type == YAML_MAPPING_START_EVENT)
            walk(&parser, &event, "", paths);
        done = event.type == YAML_STREAM_END_EVENT;
    }
    yaml_parser_delete(&parser);
    return paths;
}

static const char *at(const struct paths *paths, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < paths->count; i++)
        if (strncmp(paths->lines[i], path, length) == 0 && paths->lines[i][length] == '=')
            return paths->lines[i] + length + 1;
    fail_msg("there is no %s", path);
    return "";
}

static void free_paths(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->lines[i]);
    free(paths);
}

TEST(json_reads_back_exactly)
{
    OWNED(knee_prediction) p =
        predict("params 1e9 flops 60TFLOP/s bandwidth 25GB/s loader-rate 12000 "
                "overlap 0.3 global-batch 8192 workers 1..256x2 price 2");
    OWNED(knee_text) text = {0};
    struct knee_style style = {0};
    knee_answer_write(&knee_predict_answer, &p, KNEE_JSON, &style, &text);
    assert_false(text.failed);
    struct paths *json = parse_json(text.data);
    assert_string_equal(at(json, "schema"), "knee.predict/1");
    for (size_t i = 0; i < p.row_count; i++) {
        static const char *const keys[] = {"workers", "local_batch",    "compute_s",      "comm_s",
                                           "load_s",  "exposed_comm_s", "exposed_load_s", "step_s",
                                           "speedup", "efficiency",     "ratio",          "gamma"};
        const struct knee_row *row = &p.rows[i];
        const double values[] = {
            row->workers,        row->local_batch, row->step.label_s[KNEE_COMPUTE],
            row->step.comm_s,    row->load_s,      knee_step_exposed_s(&row->step),
            row->exposed_load_s, row->step.wall_s, row->speedup,
            row->efficiency,     row->ratio,       row->gamma};
        char path[64];
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            snprintf(path, sizeof path, "rows.%zu.%s", i, keys[k]);
            assert_true(strtod(at(json, path), NULL) == values[k]);
        }
        snprintf(path, sizeof path, "rows.%zu.bottleneck", i);
        assert_string_equal(at(json, path), knee_binding_name(row->binding));
    }
    assert_true(strtod(at(json, "knee.gamma_one_workers"), NULL) == p.knee.gamma_one_workers);
    assert_true(strtod(at(json, "knee.tolerance_workers"), NULL) == p.knee.tolerance_workers);
    at(json, "knee.peak_throughput_workers");
    assert_string_equal(at(json, "levers.0.name"), p.levers[0].name);
    assert_true(strtod(at(json, "levers.0.gain"), NULL) == p.levers[0].gain);
    at(json, "levers.0.ratio"), at(json, "levers.0.efficiency"), at(json, "levers.0.step_s");
    assert_string_equal(at(json, "verdict.suspect"), knee_suspect_name(p.verdict.suspect));
    assert_true(strlen(at(json, "verdict.sentence")) > 80);
    assert_true(strtod(at(json, "cost.step"), NULL) == p.at.cost);
    free_paths(json);
}

TEST(json_strings_are_escaped)
{
    OWNED(knee_text) text = {0};
    struct knee_json json = {.text = &text};
    knee_json_open(&json, NULL, '{');
    knee_json_string(&json, "k", "a\"b\\c\x01\n<é>");
    knee_json_number(&json, "n", INFINITY);
    knee_json_string(&json, "none", NULL);
    knee_json_close(&json, '}');
    struct paths *back = parse_json(text.data);
    assert_string_equal(at(back, "k"), "a\"b\\c\x01\n<é>");
    assert_string_equal(at(back, "n"), "null");
    free_paths(back);
}
#endif

/* What holds for everything that is written (shown.h); the plot has its marks in ASCII too. */
TEST(predictions_are_shown)
{
    OWNED(knee_prediction) p =
        predict("gpu h100 model llama2-7b jitter 1% critical-batch 5000 min-steps 9k");
    assert_shown(&knee_predict_answer, &p, SAYS("GPUs"));
    for (int ascii = 0; ascii < 2; ascii++) {
        OWNED(knee_text) text = {0};
        struct knee_style style = {.ascii = ascii, .tier = KNEE_TIER_FULL};
        knee_answer_write(&knee_predict_answer, &p, KNEE_TEXT, &style, &text);
        assert_non_null(strstr(text.data, ascii ? "| knee" : "●"));
    }
}

TEST(csv_and_markdown_escape)
{
    OWNED(knee_table) table;
    OWNED(knee_text) text = {0};
    struct knee_style style = {0};
    knee_table_init(&table, "ll", NULL);
    knee_table_cell(&table, "a,b");
    knee_table_cell(&table, "say \"x\"|y");
    knee_table_write(&table, KNEE_CSV, &style, &text);
    assert_string_equal(text.data, "\"a,b\",\"say \"\"x\"\"|y\"\n");
    knee_text_release(&text);
    knee_table_write(&table, KNEE_MARKDOWN, &style, &text);
    assert_string_equal(text.data, "| a,b | say \"x\"\\|y |\n|---|---|\n");
}

TEST(sentences_wrap_at_the_width)
{
    OWNED(knee_text) text = {0};
    knee_wrap("one two three four five six", 11, "", &text);
    assert_string_equal(text.data, "one two\nthree four\nfive six\n");
}

/* Long cells stay whole: two paths that differ at their ends are two files. */
TEST(cells_are_not_cut)
{
    char path[5000];
    struct knee_table table;
    struct knee_style style = {0};
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    for (int format = KNEE_TEXT; format <= KNEE_MARKDOWN; format++) {
        struct knee_text text = {0};
        if (format == KNEE_JSON)
            continue;
        knee_table_init(&table, "l", NULL);
        knee_table_cell(&table, "%s/1.json", path);
        knee_table_cell(&table, "%s/2.json", path);
        knee_table_write(&table, (enum knee_format)format, &style, &text);
        assert_non_null(strstr(text.data, "x/1.json"));
        assert_non_null(strstr(text.data, "x/2.json"));
        knee_text_release(&text);
        knee_table_release(&table);
    }
}
