/* SPDX-License-Identifier: MIT */
#include "read/live/kineto_request.h"

#include <string.h>

/* Where the number of pids and the first of them stand in a request. */
enum { COUNT_AT = 4, PID_AT = 16, LEAST = 20 };

struct knee_kineto_request knee_kineto_read(const void *datagram, size_t length)
{
    struct knee_kineto_request out = {KNEE_KINETO_NONE, 0};
    struct knee_kineto_head head;
    const char *payload = (const char *)datagram + sizeof head;
    int32_t count = 0;
    if (length < sizeof head)
        return out;
    memcpy(&head, datagram, sizeof head);
    if (head.size > length - sizeof head || !memchr(head.type, '\0', sizeof head.type))
        return out;
    if (strcmp(head.type, "ctxt") == 0)
        out.kind = KNEE_KINETO_CONTEXT;
    if (strcmp(head.type, "req") == 0)
        out.kind = KNEE_KINETO_REQUEST;
    if (out.kind == KNEE_KINETO_REQUEST && head.size >= LEAST) {
        memcpy(&count, payload + COUNT_AT, sizeof count);
        memcpy(&out.pid, payload + PID_AT, sizeof out.pid);
        out.pid = count >= 1 && out.pid > 0 ? out.pid : 0;
    }
    return out;
}
