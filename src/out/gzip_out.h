/* SPDX-License-Identifier: MIT */
/* Bytes made small (gzip) and printable (base64), for pages that carry data. */
#ifndef KNEE_OUT_GZIP_OUT_H
#define KNEE_OUT_GZIP_OUT_H

#include "base/text.h"

/* Appends to `out` as gzip what is added, bit by bit; as it is where there is neither ISA-L nor
 * zlib (the first two bytes tell). NULL: out of memory. Failure sticks in out->failed. */
struct knee_packer *knee_pack_begin(struct knee_text *out);
bool knee_pack_add(struct knee_packer *packer, const char *data, size_t length);
void knee_pack_end(struct knee_packer *packer); /* frees it; may be NULL */

/* RFC 4648. */
void knee_put_base64(struct knee_text *out, const char *data, size_t length);

#endif
