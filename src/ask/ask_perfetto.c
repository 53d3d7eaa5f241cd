/* SPDX-License-Identifier: MIT */
#include "ask/ask.h"
#include "base/text.h"

static bool add_bytes(void *ctx, const char *data, size_t size)
{
    knee_text_add(ctx, data, size);
    return !((struct knee_text *)ctx)->failed;
}

knee_status knee_ask_perfetto(struct knee_ask *ask, const char *name,
                              const struct knee_account *account, struct knee_err *err)
{
    const struct knee_ask_files *files = knee_ask_files_of(ask);
    if (files->write_perfetto)
        return files->write_perfetto(files->ctx, name, account, err);
    struct knee_text *text = knee_ask_pulled(ask, name);
    if (!text ||
        !knee_write_perfetto(account, (struct knee_sink){add_bytes, text}, knee_ask_alloc(ask)))
        return knee_fail(err, KNEE_SYSTEM, name, "out of memory for the output");
    return KNEE_OK;
}
