/* SPDX-License-Identifier: MIT */
/* Read: jobs, shapes and plans from files. What knee.h says of every call holds here;
 * these structs may change with the minor version. */
#ifndef KNEE_READ_H
#define KNEE_READ_H

#include "knee_job.h"
#include "knee_plan.h"

/* ---- Importers: shapes and plans from files that exist already ----------------------------- */

struct knee_plan;

/* A Hugging Face config.json (Llama, Mistral, Qwen, Mixtral, DeepSeek, GPT-2, Gemma, gpt-oss and
 * what names its fields like them). Keys given by a flag are kept. On failure *shape is
 * untouched. */
knee_status knee_hf_read(const char *json, size_t length, const char *name,
                         struct knee_shape *shape, struct knee_err *err);

/* A DeepSpeed configuration: ZeRO stage, batch sizes, precision, offload. */
knee_status knee_deepspeed_read(const char *json, size_t length, const char *name,
                                struct knee_plan *plan, struct knee_err *err);

/* Megatron arguments: a launch script, or a log with its block of arguments; both the shape and
 * the plan. `step_s` (may be NULL) gets the median time per iteration when it is a log, else NaN.
 */
knee_status knee_megatron_read(struct knee_named_text from, struct knee_shape *shape,
                               struct knee_plan *plan, double *step_s, struct knee_err *err);

/* The same from NeMo: Megatron-Bridge's configuration as YAML, or overrides
 * (model.hidden_size=4096) on a command line. */
knee_status knee_nemo_read(const char *text, size_t length, const char *name,
                           struct knee_shape *shape, struct knee_plan *plan, struct knee_err *err);

/* A torchtitan configuration: TOML, or overrides on a command line. It names its model only;
 * `layers` (NaN: not known) tells how many pieces a stage has. */
knee_status knee_torchtitan_read(const char *text, size_t length, const char *name, double layers,
                                 struct knee_plan *plan, struct knee_err *err);

/* ---- Read --------------------------------------------------------------------------------- */

/* A cluster from the text of a file: knee's YAML, `nvidia-smi topo -m` or NCCL's topology XML, told
 * apart by content. The last two describe one node; any number of them is taken to be there. What a
 * fit left in it goes into *record, which out->fitted then points to. */
knee_status knee_cluster_read(const char *text, size_t length, const char *name,
                              struct knee_cluster *out, struct knee_fitted *record,
                              struct knee_err *err);

/* Sets the keys of `object` from YAML (or JSON) text. Keys that
 * were already set from a flag are kept. Words are not allowed in files. Nothing is changed on
 * failure. The object must be `object_size` bytes. */
knee_status knee_yaml_read(struct knee_named_text from, const struct knee_keys *keys, void *object,
                           size_t object_size, struct knee_err *err);

/* ---- Files that knee writes ---------------------------------------------------------------- */

struct knee_text;
/* YAML that knee_cluster_read() reads back. */
void knee_write_cluster(const struct knee_cluster *cluster, struct knee_text *text);
/* Every constant that is not NaN, as YAML for --rates; and the same with what it was fitted for. */
void knee_write_constants(const struct knee_rates *rates, struct knee_text *text);
void knee_write_rates(const struct knee_rates *rates, const struct knee_platform *platform,
                      struct knee_text *text);

#endif
