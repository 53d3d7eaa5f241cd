#include "measure/lab_hunt.h"
knee_status lab_hunt(struct knee_runtime *runtime, const struct lab_setup *base, size_t seeds,
                     struct knee_lab *lab, struct knee_err *err)
{
    (void)runtime, (void)base, (void)seeds, (void)lab, (void)err;
    return KNEE_OK;
}
knee_status lab_push_levers(struct knee_runtime *runtime, const struct lab_setup *base,
                            const struct lab_sweep *sweep, struct knee_lab *lab,
                            struct knee_err *err)
{
    (void)runtime, (void)base, (void)sweep, (void)lab, (void)err;
    return KNEE_OK;
}
