/* SPDX-License-Identifier: MIT */
/* What static libraries built for glibc call and musl does not have: copies whose room is checked,
 * and a name of fcntl(). */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room);
void *__memset_chk(void *to, int byte, size_t size, size_t room);
int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...);
int fcntl64(int file, int command, ...);

void *__memcpy_chk(void *to, const void *from, size_t size, size_t room)
{
    if (size > room)
        abort();
    return memcpy(to, from, size);
}

void *__memset_chk(void *to, int byte, size_t size, size_t room)
{
    if (size > room)
        abort();
    return memset(to, byte, size);
}

int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
{
    (void)flag;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(to, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= room)
        abort();
    return length;
}

/* Offsets have 64 bits here as there; every third argument is a pointer or fits into one. */
int fcntl64(int file, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return fcntl(file, command, argument);
}
