/* SPDX-License-Identifier: MIT */
#include "read/live/http_request.h"
#include "base/fold.h"

#include <string.h>

/* What follows "name:" in a line, names in any case; false: the line is another one. */
static bool header(struct knee_slice line, const char *name, struct knee_slice *value)
{
    size_t length = strlen(name);
    if (line.length <= length || line.at[length] != ':')
        return false;
    for (size_t i = 0; i < length; i++)
        if (knee_lower(line.at[i]) != name[i])
            return false;
    *value = knee_slice_trim(knee_slice_from(line, length + 1));
    return true;
}

/* "host:9757", "[::1]:9757" without the port. */
static struct knee_slice without_port(struct knee_slice host)
{
    struct knee_slice inside;
    if (host.length && host.at[0] == '[') {
        host = knee_slice_from(host, 1);
        knee_slice_until(&host, ']', &inside);
    } else {
        knee_slice_until(&host, ':', &inside);
    }
    return inside;
}

static void first_line(struct knee_slice line, struct knee_http_request *out)
{
    struct knee_slice method, target;
    knee_slice_word(&line, &method);
    knee_slice_word(&line, &target);
    out->get = knee_slice_is(method, "GET");
    out->head = knee_slice_is(method, "HEAD");
    knee_slice_until(&target, '?', &out->path);
}

bool knee_http_read(struct knee_slice text, struct knee_http_request *out)
{
    struct knee_slice line, value;
    bool first = true;
    *out = (struct knee_http_request){.path = {text.at, 0}, .host = {text.at, 0}};
    while (knee_slice_has(text, "\n") && knee_slice_line(&text, &line)) {
        if (!first && line.length == 0)
            return true;
        if (first)
            first_line(line, out);
        else if (header(line, "host", &value))
            out->host = without_port(value);
        first = false;
    }
    return false;
}

bool knee_http_host_is_local(const struct knee_http_request *request)
{
    return request->host.length == 0 || knee_slice_is(request->host, "localhost") ||
           knee_slice_is(request->host, "::1") || knee_slice_starts(request->host, "127.");
}
