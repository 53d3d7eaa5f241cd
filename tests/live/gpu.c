/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for CUDA's driver and for NVML: a GPU that takes 500 W, at 1980 MHz and 61 degrees.
 * Built twice, the second time as older ones are: the names of two calls differ, and it has no
 * name. STAND_IN_GPU_SAYS=NAME=N  the call whose name ends so says N
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN int cuCtxGetDevice(int *ordinal);
SHOWN int nvmlInit_v2(void), nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
SHOWN int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
SHOWN int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz);
SHOWN int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
SHOWN int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
#ifdef OLDER
#define UUID    cuDeviceGetUuid
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define UUID    cuDeviceGetUuid_v2
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
SHOWN int cuDeviceGetName(char *name, int size, int ordinal);
#endif
SHOWN int UUID(unsigned char *bytes, int ordinal);
SHOWN int REASONS(void *device, unsigned long long *reasons);

static int says(const char *name)
{
    const char *text = getenv("STAND_IN_GPU_SAYS");
    size_t length = strlen(name);
    return text && strncmp(text, name, length) == 0 && text[length] == '='
               ? (int)strtol(text + length + 1, NULL, 10)
               : 0;
}

int cuCtxGetDevice(int *ordinal)
{
    *ordinal = 3;
    return says("Device");
}

int UUID(unsigned char *bytes, int ordinal)
{
    for (int i = 0; i < 16; i++)
        bytes[i] = (unsigned char)(16 * ordinal + i);
    return says("Uuid");
}

#ifndef OLDER
int cuDeviceGetName(char *name, int size, int ordinal)
{
    snprintf(name, (size_t)size, "Stand-in \"%d\"", ordinal);
    return says("Name");
}
#endif

int nvmlInit_v2(void)
{
    return says("Init");
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int there;
    *device = &there;
    return strcmp(uuid, "GPU-30313233-3435-3637-3839-3a3b3c3d3e3f") != 0 || says("Handle");
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    struct timespec now;
    (void)device;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *mj = 500ull *
          ((unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000);
    return says("Energy");
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1980 : 1;
    return says("Clock");
}

int REASONS(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = 4;
    return says("Reasons");
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device;
    *celsius = sensor == 0 ? 61 : 1;
    return says("Temperature");
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    (void)device;
    *mw = 500000;
    return says("Power");
}
