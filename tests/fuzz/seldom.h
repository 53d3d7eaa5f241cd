/* SPDX-License-Identifier: MIT */
/*
 * What is expensive is done for some inputs only, chosen by their bytes, so that a target tries
 * hundreds of inputs a second and a finding still comes again with the same input. KNEE_FUZZ_ALL
 * does all of it: the corpus is replayed so.
 */
#ifndef KNEE_FUZZ_SELDOM_H
#define KNEE_FUZZ_SELDOM_H

#include "base/hash.h"

#include <stdbool.h>

static inline bool seldom(const uint8_t *data, size_t size, unsigned one_in)
{
#ifdef KNEE_FUZZ_ALL
    (void)data, (void)size, (void)one_in;
    return true;
#else
    return (knee_hash(data, size) >> 7) % one_in == 0;
#endif
}

#endif
