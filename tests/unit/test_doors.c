/* SPDX-License-Identifier: MIT */
/* What others send or wrote: requests, names, files. And what knee leaves behind. */
#include "base/error.h"
#include "base/hash.h"
#include "base/printable.h"
#include "reach/child.h"
#include "reach/files.h"
#include "reach/start.h"
#include "read/live/http_request.h"
#include "read/live/kineto_request.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Requests ---- */

static struct knee_http_request http(const char *text, bool whole)
{
    struct knee_http_request request;
    assert_int_equal(knee_http_read(knee_slice_of(text), &request), whole);
    return request;
}

TEST(a_request_is_read_at_its_empty_line)
{
    struct knee_http_request r = http("GET /metrics?a=b HTTP/1.1\r\nhOsT: [::1]:97\r\n\r\n", true);
    assert_true(r.get && !r.head && knee_slice_is(r.path, "/metrics"));
    assert_true(knee_slice_is(r.host, "::1") && knee_http_host_is_local(&r));
    r = http("HEAD /x HTTP/1.0\nHost: evil.example:80\n\n", true);
    assert_true(r.head && !r.get && knee_slice_is(r.host, "evil.example"));
    assert_false(knee_http_host_is_local(&r));
    http("GET /metrics HTTP/1.1\r\nHost: a\r\n", false);
    http("", false);
    http("GET /metrics", false);
}

static struct knee_kineto_request kineto(uint64_t size, const char *type, const void *payload,
                                         size_t length)
{
    char datagram[256] = {0};
    struct knee_kineto_head head = {.size = size};
    memcpy(head.type, type, strlen(type));
    memcpy(datagram, &head, sizeof head);
    if (length)
        memcpy(datagram + sizeof head, payload, length);
    return knee_kineto_read(datagram, sizeof head + length);
}

TEST(a_datagram_holds_together_or_is_none)
{
    int32_t ask[] = {3, 1, 0, 0, 4100};
    assert_int_equal(kineto(20, "req", ask, 20).pid, 4100);
    assert_int_equal(kineto(20, "req", ask, 20).kind, KNEE_KINETO_REQUEST);
    assert_int_equal(kineto(19, "req", ask, 19).pid, 0);
    assert_int_equal(kineto(4000, "req", ask, 20).kind, KNEE_KINETO_NONE);
    assert_int_equal(kineto(UINT64_MAX, "req", ask, 20).kind, KNEE_KINETO_NONE);
    assert_int_equal(kineto(20, "ctxt", ask, 20).kind, KNEE_KINETO_CONTEXT);
    assert_int_equal(kineto(20, "what", ask, 20).kind, KNEE_KINETO_NONE);
    assert_int_equal(knee_kineto_read("short", 5).kind, KNEE_KINETO_NONE);
    ask[1] = 0;
    assert_int_equal(kineto(20, "req", ask, 20).pid, 0);
    ask[1] = 1, ask[4] = -1;
    assert_int_equal(kineto(20, "req", ask, 20).pid, 0);
}

/* ---- Names ---- */

static void shown(const char *text, const char *expected)
{
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text);
    knee_printable(copy, strlen(copy));
    assert_string_equal(copy, expected);
}

/* Only whole colour codes pass; anything else that begins with ESC is shown as text. */
TEST(colour_codes_are_whole_or_text)
{
    static const char *const cases[][2] = {
        {"\033[1m", "\033[1m"}, {"\033[1;31m", "\033[1;31m"},
        {"\033[m", "\033[m"},   {"\033[1K", "?[1K"},
        {"\033[1", "?[1"},      {"\033]0m", "?]0m"},
        {"\033", "?"},          {"\033[", "?["},
        {"\033[?1m", "?[?1m"},  {"\033[:m", "?[:m"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        knee_printable_answer(text, strlen(text), true);
        assert_string_equal(text, cases[i][1]);
    }
}

TEST(names_are_text)
{
    shown("gemm", "gemm");
    shown("g\303\251mm \342\202\254 \360\237\230\200", "g\303\251mm \342\202\254 \360\237\230\200");
    shown("a\033[31mb\177c", "a?[31mb?c");
    shown("a\302\233b\302\205c", "a??b??c");             /* C1 controls */
    shown("a\342\200\256b\342\201\246c", "a???b???c");   /* turned direction */
    shown("a\233b\300\257c\355\240\200d", "a?b??c???d"); /* no UTF-8, too long, half a pair */
    shown("end\342\202", "end??");
    char colors[] = "\033[1;31mred\033[0m \033[2J\n\tx";
    knee_printable_answer(colors, strlen(colors), true);
    assert_string_equal(colors, "\033[1;31mred\033[0m ?[2J\n\tx");
    knee_printable_answer(colors, strlen(colors), false);
    assert_string_equal(colors, "?[1;31mred?[0m ?[2J\n\tx");
}

/* Names that met in one slot of the hashes before, whatever their seed: flips of bit 63 in pairs of
 * words. Under SipHash they spread as any names do. */
TEST(names_made_to_meet_do_not)
{
    enum { PAIRS = 12, NAMES = 1 << PAIRS, SLOTS = 2 * NAMES };
    static unsigned char used[SLOTS];
    struct knee_hash_key key = {1, 2};
    size_t met = 0;
    memset(used, 0, sizeof used);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[16 * PAIRS];
        memset(name, 'a', sizeof name);
        for (unsigned k = 0; k < PAIRS; k++)
            if (i >> k & 1) {
                name[16 * k + 7] = (char)(name[16 * k + 7] ^ 0x80);
                name[16 * k + 11] = (char)(name[16 * k + 11] ^ 0x80);
                name[16 * k + 15] = (char)(name[16 * k + 15] ^ 0x80);
            }
        size_t slot = knee_keyed(key, name, sizeof name) & (SLOTS - 1);
        met += used[slot] > 0;
        used[slot] = 1;
    }
    assert_true(met < NAMES / 3); /* about a fifth by chance */
    assert_true(knee_keyed(key, "ab", 2) != knee_keyed((struct knee_hash_key){1, 3}, "ab", 2));
    assert_true(knee_keyed(key, "a", 1) != knee_keyed(key, "a\0", 2));
}

/* ---- Files ---- */

static void write_mine(const char *name, const char *words)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    fputs(words, file);
    fclose(file);
}

TEST(what_comes_in_is_a_file)
{
    char dir[] = "/tmp/knee-doors-XXXXXX", buffer[8];
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    write_mine("file", "words");
    assert_int_equal(symlink("file", "link") | symlink("/dev/zero", "zero") | mkfifo("pipe", 0600),
                     0);
    int fd = knee_open_input(AT_FDCWD, "file", KNEE_INPUT_INSIDE);
    assert_true(fd >= 0);
    assert_int_equal(knee_input_read(fd, buffer, sizeof buffer), 5);
    close(fd);
    assert_int_equal(knee_open_input(AT_FDCWD, "link", KNEE_INPUT_INSIDE), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(knee_open_input(AT_FDCWD, "zero", KNEE_INPUT_LISTED), -1);
    assert_int_equal(knee_open_input(AT_FDCWD, "pipe", KNEE_INPUT_LISTED), -1); /* and at once */
    assert_int_equal(errno, ENOTSUP);
    assert_int_equal(knee_open_input(AT_FDCWD, ".", KNEE_INPUT_NAMED), -1);
    assert_int_equal(errno, EISDIR);
    fd = knee_open_input(AT_FDCWD, "pipe", KNEE_INPUT_NAMED);
    assert_true(fd >= 0);
    close(fd);
    unlink("file"), unlink("link"), unlink("zero"), unlink("pipe");
    assert_int_equal(chdir("/") | rmdir(dir), 0);
}

TEST(what_goes_out_is_whole_and_removed_only_when_ours)
{
    char dir[] = "/tmp/knee-doors-XXXXXX", data[] = "new";
    struct knee_text text = {.data = data, .length = 3};
    struct knee_err err;
    struct stat info;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    write_mine("theirs", "old");
    knee_output_remove("theirs");
    assert_int_equal(stat("theirs", &info), 0);
    assert_ok(knee_output_write("ours", 0600, &text, &err));
    assert_int_equal(stat("ours", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    close(knee_open_input(AT_FDCWD, "theirs", KNEE_INPUT_NAMED));
    assert_int_equal(knee_output_write("theirs", 0600, &text, &err), KNEE_USAGE);
    knee_forget_inputs();
    assert_ok(knee_output_write("theirs", 0600, &text, &err));
    knee_output_remove("theirs");
    knee_output_remove("ours");
    assert_int_equal(stat("ours", &info), -1);
    assert_int_equal(chdir("/") | rmdir(dir), 0); /* nothing is left beside */
}

TEST(a_child_is_killed_with_its_group)
{
    const char *argv[] = {"/bin/sh", "-c", "sleep 100 & sleep 100", NULL};
    struct knee_child child;
    int status = 0;
    assert_true(knee_child_start(&child, argv, false));
    double began = knee_clock_s();
    assert_false(knee_child_ended(&child, &status));
    assert_true(knee_child_kill(&child));
    assert_true(knee_clock_s() - began < 60); /* not the 100 s of sleep */
    argv[2] = "exit 3";
    assert_true(knee_child_start(&child, argv, true));
    while (!knee_child_ended(&child, &status))
        usleep(1000);
    assert_int_equal(status, 3);
    knee_child_kill(&child);
}
