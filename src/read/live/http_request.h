/* SPDX-License-Identifier: MIT */
/* The head of an HTTP request: as much of it as a server of one text has to understand. */
#ifndef KNEE_READ_LIVE_HTTP_REQUEST_H
#define KNEE_READ_LIVE_HTTP_REQUEST_H

#include "base/slice.h"

enum { KNEE_HTTP_HEAD = 16384 }; /* the longest head that is read: browsers send cookies */

struct knee_http_request {
    bool get, head;         /* neither: another method */
    struct knee_slice path; /* without what follows '?' */
    struct knee_slice host; /* without a port; empty: not said */
};

/* False: the empty line that ends a head has not come yet. */
bool knee_http_read(struct knee_slice text, struct knee_http_request *out);

/* True if the Host header names this machine by a name that no other machine can have. This rejects
 * web pages that resolve their own name to 127.0.0.1 (DNS rebinding). */
bool knee_http_host_is_local(const struct knee_http_request *request);

#endif
