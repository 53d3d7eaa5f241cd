/* SPDX-License-Identifier: MIT */
#include "knee.h"

const char *knee_version(void)
{
    return KNEE_VERSION;
}
