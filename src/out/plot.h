/* SPDX-License-Identifier: MIT */
/* A curve in the terminal: braille dots, or plain ASCII. */
#ifndef KNEE_OUT_PLOT_H
#define KNEE_OUT_PLOT_H

#include "base/text.h"
#include "knee_out.h"

struct knee_plot {
    const double *x, *y; /* `count` points, x ascending */
    size_t count;
    double y_max; /* the axis runs from 0 to here */
    double level; /* horizontal line; NaN: none */
    double mark;  /* vertical line; NaN: none */
    const char *title, *level_name, *mark_name;
    const char *x_name;
    /* How a place on the x axis is written; NULL: as a whole number. */
    void (*x_label)(double x, char *out, size_t size);
};

/* Nothing is written for fewer than two points. */
void knee_plot_write(const struct knee_plot *plot, const struct knee_style *style,
                     struct knee_text *text);

#endif
