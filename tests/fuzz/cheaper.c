/* SPDX-License-Identifier: MIT */
/*
 * AddressSanitizer's settings for many short runs. Freed memory is kept aside for a while to catch
 * its use: the usual 256 MB are new pages for each run, 8 MB come again from the cache. Eight
 * frames are enough to see who allocated.
 */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:thread_local_quarantine_size_kb=64:malloc_context_size=8:"
           "max_malloc_fill_size=0";
}
