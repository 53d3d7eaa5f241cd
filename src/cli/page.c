/* SPDX-License-Identifier: MIT */
/*
 * --html FILE: the page (web/, one file with the core inside) with an answer in it. The report is
 * {"view", "date", "command", "version", "answer", "trace"}: which command, when and how it was
 * asked, what its --json prints, and for traces the labelled ranks, packed, so that the page can
 * draw.
 */
#include "base/error.h"
#include "cli/cli.h"
#include "out/gzip_out.h"
#include "out/json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#if KNEE_HAVE_PAGE
/* The assembler takes the file in as it is. */
__asm__(".section .rodata\n"
        "knee_page: .incbin \"" KNEE_PAGE "\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char knee_page[];
#else
static const char knee_page[] = "";
#endif

static const char place[] = "/*REPORT*/", static_place[] = "<!--STATIC-->";

/* What was typed, as a shell would take it. */
static void add_word(const char *word, struct knee_text *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,:/%@";
    bool bare = *word && strspn(word, plain) == strlen(word);
    knee_text_puts(out, bare ? " " : " '");
    for (; *word; word++)
        if (*word == '\'')
            knee_text_puts(out, "'\\''");
        else
            knee_text_add(out, word, 1);
    if (!bare)
        knee_text_puts(out, "'");
}

/* When, in UTC: 2026-11-15T18:40Z. SOURCE_DATE_EPOCH stands for the clock where builds must agree.
 */
static void put_date(struct knee_json *json)
{
    const char *fixed = getenv("SOURCE_DATE_EPOCH");
    time_t now = fixed ? (time_t)strtoll(fixed, NULL, 10) : time(NULL);
    char date[32] = "";
    struct tm parts;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%MZ", &parts);
    knee_json_string(json, "date", date);
}

static void put_report(const struct cli_run *run, struct knee_text *out)
{
    struct knee_json json = {.text = out};
    struct knee_text command = {0};
    knee_text_puts(&command, "knee");
    for (char *const *word = run->typed + 1; *word; word++)
        add_word(*word, &command);
    knee_json_open_flat(&json, NULL, '{');
    knee_json_string(&json, "view", run->view ? run->view : run->command->name);
    put_date(&json);
    knee_json_words(&json, "command", &command);
    knee_json_string(&json, "version", KNEE_VERSION);
    knee_text_puts(out, ",\"answer\":");
    knee_text_add(out, run->answer.data, run->answer.length);
    if (run->trace.length) {
        knee_text_puts(out, ",\"trace\":\"");
        knee_put_base64(out, run->trace.data, run->trace.length);
        knee_text_puts(out, "\"");
    }
    knee_text_puts(out, "}");
}

/* "</" would end the script element that the report stands in. In JSON a "<" can only be in a
 * string, where it may be escaped. */
static void add_escaped(struct knee_text *out, const struct knee_text *json)
{
    for (size_t from = 0, at; from < json->length; from = at) {
        const char *found = memchr(json->data + from, '<', json->length - from);
        at = found ? (size_t)(found - json->data) : json->length;
        knee_text_add(out, json->data + from, at - from);
        if (found)
            knee_text_puts(out, "\\u003c"), at++;
    }
}

/* What the command printed, for whoever runs no script: a mail's preview, a printer, a viewer of
 * build results. The page's script takes its place. */
static void add_static(struct knee_text *out, const struct cli_run *run)
{
    static const char special[] = "<>&";
    static const char *const escapes[] = {"&lt;", "&gt;", "&amp;"};
    if (!run->text.length || cli_format(run) != KNEE_TEXT)
        return;
    knee_text_puts(out, "<pre id=\"static\">");
    for (const char *c = run->text.data; *c; c++) {
        const char *found = strchr(special, *c);
        if (found)
            knee_text_puts(out, escapes[found - special]);
        else if (*c == '\n' || (unsigned char)*c >= ' ') /* no colours of a terminal */
            knee_text_add(out, c, 1);
    }
    knee_text_puts(out, "</pre>");
}

knee_status cli_write_page(struct cli_run *run)
{
    if (!run->answer.length && run->command != &cli_report)
        return knee_fail(&run->err, KNEE_USAGE, "--html", "knee %s has no page",
                         run->command->name);
    const char *split = strstr(knee_page, place);
    if (!split) {
        knee_fail(&run->err, KNEE_SYSTEM, "--html", "this knee was built without the page");
        knee_hint(&run->err, "./try builds it where clang, lld, wasi-libc, node and npm are");
        return KNEE_SYSTEM;
    }
    struct knee_text report = {0}, page = {0};
    if (run->answer.length)
        put_report(run, &report);
    const char *before = strstr(knee_page, static_place);
    before = before && before < split ? before : split;
    knee_text_add(&page, knee_page, (size_t)(before - knee_page));
    add_static(&page, run);
    knee_text_add(&page, before, (size_t)(split - before));
    add_escaped(&page, &report);
    knee_text_puts(&page, split + sizeof place - 1);
    page.failed =
        page.failed || report.failed || run->answer.failed || run->trace.failed || run->text.failed;
    knee_status status = cli_write_file(run->common.html, &page, &run->err);
    knee_text_release(&report);
    knee_text_release(&page);
    return status;
}
