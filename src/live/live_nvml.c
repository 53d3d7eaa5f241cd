/* SPDX-License-Identifier: MIT */
/* What the GPU's management library counts: energy, clocks, reasons for low clocks. The library is
 * loaded if it is there; which GPU is ours, the driver says on a thread of the job. */
#include "live/live_agent.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { CLOCK_SM = 1, SENSOR_GPU = 0 };

static int (*get_energy)(void *device, unsigned long long *mj);
static int (*get_clock)(void *device, int which, unsigned *mhz);
static int (*get_reasons)(void *device, unsigned long long *reasons);
static int (*get_temperature)(void *device, int sensor, unsigned *celsius);
static int (*get_power)(void *device, unsigned *mw);
static void *device;
static bool tried;

static void find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static void open_device(const char *uuid)
{
    const char *given = live_config()->nvml_library;
    void *library = dlopen(*given ? given : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = NULL, (*by_uuid)(const char *, void **) = NULL;
    void *found = NULL;
    if (!library)
        return;
    find(library, "nvmlInit_v2", &init);
    find(library, "nvmlDeviceGetHandleByUUID", &by_uuid);
    find(library, "nvmlDeviceGetTotalEnergyConsumption", &get_energy);
    find(library, "nvmlDeviceGetClockInfo", &get_clock);
    find(library, "nvmlDeviceGetCurrentClocksEventReasons", &get_reasons);
    if (!get_reasons)
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &get_reasons);
    find(library, "nvmlDeviceGetTemperature", &get_temperature);
    find(library, "nvmlDeviceGetPowerUsage", &get_power);
    if (init && by_uuid && init() == 0 && by_uuid(uuid, &found) == 0)
        device = found;
}

void live_nvml_read(struct live_gpu *out)
{
    static unsigned long long last_mj;
    static int64_t last_ns;
    struct live_about about = live_about();
    unsigned long long mj = 0, reasons = 0;
    unsigned mhz = 0, celsius = 0, mw = 0;
    if (!tried && about.gpu_uuid[0]) {
        tried = true;
        open_device(about.gpu_uuid);
    }
    if (!device)
        return;
    int64_t now_ns = live_now_ns();
    bool energy = get_energy && get_energy(device, &mj) == 0;
    out->interval_s = last_ns ? (double)(now_ns - last_ns) / 1e9 : 0;
    out->energy_j = energy && last_ns && mj >= last_mj ? (double)(mj - last_mj) / 1e3 : -1;
    out->sm_mhz = get_clock && get_clock(device, CLOCK_SM, &mhz) == 0 ? (int)mhz : -1;
    out->throttle = get_reasons && get_reasons(device, &reasons) == 0 ? reasons : 0;
    out->temp_c =
        get_temperature && get_temperature(device, SENSOR_GPU, &celsius) == 0 ? (int)celsius : -1;
    out->power_w = get_power && get_power(device, &mw) == 0 ? (double)mw / 1e3 : -1;
    out->fresh = last_ns != 0;
    last_mj = mj;
    last_ns = now_ns;
}

/* On the thread that makes a communicator its GPU is current. */
void live_gpu_here(void)
{
    int (*context_device)(int *) = NULL, (*name_of)(char *, int, int) = NULL, ordinal = 0;
    int (*uuid_of)(unsigned char *, int) = NULL;
    char name[96] = "", uuid[48];
    unsigned char b[16] = {0};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        return;
    find(driver, "cuCtxGetDevice", &context_device);
    find(driver, "cuDeviceGetName", &name_of);
    find(driver, "cuDeviceGetUuid_v2", &uuid_of);
    if (!uuid_of)
        find(driver, "cuDeviceGetUuid", &uuid_of);
    if (!context_device || !uuid_of || context_device(&ordinal) != 0 || uuid_of(b, ordinal) != 0)
        return;
    if (!name_of || name_of(name, sizeof name, ordinal) != 0)
        name[0] = '\0';
    snprintf(uuid, sizeof uuid,
             "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    live_about_gpu(name, uuid);
}
