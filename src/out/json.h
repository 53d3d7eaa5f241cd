/* SPDX-License-Identifier: MIT */
/* Writing JSON. Numbers read back as the same double; what is not finite becomes null. */
#ifndef KNEE_OUT_JSON_H
#define KNEE_OUT_JSON_H

#include "base/text.h"
#include "knee_job.h"

/* {&text} to begin with. `key` is NULL inside arrays. Nothing nests deeper than 16. */
struct knee_json {
    struct knee_text *text;
    int depth;
    bool filled[16]; /* something stands at this depth already */
    bool flat[16];   /* this depth is written on one line */
};

void knee_json_begin(struct knee_json *json, const char *key, char bracket, bool flat);
void knee_json_open(struct knee_json *json, const char *key, char bracket);
void knee_json_open_flat(struct knee_json *json, const char *key, char bracket);
void knee_json_close(struct knee_json *json, char bracket);
void knee_json_number(struct knee_json *json, const char *key, double value);
/* A prediction: KEY, low_KEY and high_KEY; step_s, low_s and high_s. */
void knee_json_sure(struct knee_json *json, const char *key, double value, struct knee_sure sure);
void knee_json_whole(struct knee_json *json, const char *key, int64_t value);
/* Nanoseconds as seconds, every digit of them; null when `known` is false. */
void knee_json_ns(struct knee_json *json, const char *key, int64_t ns, bool known);

void knee_json_string(struct knee_json *json, const char *key, const char *value);
/* A string that was put together elsewhere; releases it. */
void knee_json_words(struct knee_json *json, const char *key, struct knee_text *words);
void knee_json_bool(struct knee_json *json, const char *key, bool value);

#endif
