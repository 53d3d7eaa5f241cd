/* SPDX-License-Identifier: MIT */
/* The forecast of knee plan for data parallelism, as the closed forms need it. */
#ifndef KNEE_PREDICT_CLOSED_FORECAST_H
#define KNEE_PREDICT_CLOSED_FORECAST_H

#include "knee_predict.h"

/* One step without what the user adds to it. */
struct knee_forecast_step {
    double compute_s, wait_s;
    double wire_s, shown_s; /* the exchange of gradients; what of it shows */
};

/* False (and *out unknown) where the plan cannot be priced. `job` must be completed. */
bool knee_forecast_init(const struct knee_job *job, struct knee_forecast *out);
/* The same for a shape on a machine. */
bool knee_forecast_of(const struct knee_shape *shape, const struct knee_machine *machine,
                      double gradient_bytes, struct knee_forecast *out);
/* The fastest size of micro-batches for so many examples on a GPU. */
const struct knee_micro_size *knee_forecast_size(const struct knee_forecast *f, double examples);
/* Examples in a micro-batch on so many GPUs; NaN without a forecast. */
double knee_forecast_micro_batch(const struct knee_terms *terms, double workers);
/* `wire_s` is what the exchange takes by other means; NaN: as the software does it. */
void knee_forecast_at(const struct knee_terms *terms, double workers, double wire_s,
                      struct knee_forecast_step *out);

#endif
