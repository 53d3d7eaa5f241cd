/* SPDX-License-Identifier: MIT */
/* What arrives over sockets: an HTTP request as it comes in, byte by byte, and a datagram of
 * Kineto's. A request that is whole stays what it is when more follows. */
#include "read/live/http_request.h"
#include "read/live/kineto_request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct knee_http_request request, first;
    bool whole = false;
    const char *text = (const char *)data;
    for (size_t length = 0; length <= size && length <= KNEE_HTTP_HEAD; length++) {
        bool now = knee_http_read((struct knee_slice){text, length}, &request);
        if (whole &&
            (!now || request.get != first.get || request.head != first.head ||
             request.path.length != first.path.length || request.host.length != first.host.length))
            abort();
        if (now && !whole)
            first = request;
        whole = whole || now;
        if (now)
            (void)knee_http_host_is_local(&request);
    }
    struct knee_kineto_request datagram = knee_kineto_read(data, size);
    if (datagram.pid && (datagram.kind != KNEE_KINETO_REQUEST || datagram.pid < 0))
        abort();
    return 0;
}
