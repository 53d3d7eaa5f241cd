/* SPDX-License-Identifier: MIT */
/*
 * The canvas is a grid of character cells; a braille cell holds 2 x 4 dots, an ASCII cell 1 x 1.
 * The x axis is logarithmic: worker counts double.
 */
#include "out/plot.h"

#include "base/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 64, HEIGHT = 10, LEFT = 7 };

struct canvas {
    bool ascii;
    int x_dots, y_dots;                /* per cell */
    unsigned char dots[HEIGHT][WIDTH]; /* braille bits, or 1 */
    char over[HEIGHT][WIDTH];          /* drawn over the dots: '|', '-', 'o' */
};

static void set_dot(struct canvas *c, int x, int y)
{
    /* Unicode numbers the dots of a cell down the columns, the lowest row last. */
    static const unsigned char bit[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    int column = x / c->x_dots, row = y / c->y_dots;
    if (column < 0 || column >= WIDTH || row < 0 || row >= HEIGHT)
        return;
    c->dots[row][column] |= c->ascii ? 1 : bit[y % 4][x % 2];
}

struct scale {
    const struct knee_plot *plot;
    double low, high; /* log2 x */
    int x_max, y_max; /* last dot */
};

static int to_x(const struct scale *s, double x)
{
    double share = (log2(x) - s->low) / (s->high - s->low);
    return (int)lrint(fmin(fmax(share, 0), 1) * s->x_max);
}

static int to_y(const struct scale *s, double y)
{
    double share = fmin(fmax(y / s->plot->y_max, 0), 1);
    return (int)lrint((1 - share) * s->y_max);
}

static void draw_curve(struct canvas *c, const struct scale *s)
{
    const struct knee_plot *p = s->plot;
    for (size_t i = 0; i + 1 < p->count; i++) {
        int x0 = to_x(s, p->x[i]), x1 = to_x(s, p->x[i + 1]);
        int y0 = to_y(s, p->y[i]), y1 = to_y(s, p->y[i + 1]);
        int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
        for (int t = 0; t <= steps; t++) {
            double share = steps ? (double)t / steps : 0;
            set_dot(c, (int)lrint(x0 + share * (x1 - x0)), (int)lrint(y0 + share * (y1 - y0)));
        }
    }
    for (size_t i = 0; i < p->count && p->count <= WIDTH / 3; i++)
        c->over[to_y(s, p->y[i]) / c->y_dots][to_x(s, p->x[i]) / c->x_dots] = 'o';
}

static void draw_lines(struct canvas *c, const struct scale *s)
{
    const struct knee_plot *p = s->plot;
    if (!isnan(p->level)) {
        int row = to_y(s, p->level) / c->y_dots;
        for (int column = 0; column < WIDTH; column++)
            c->over[row][column] = '-';
    }
    if (!isnan(p->mark) && p->mark >= p->x[0] && p->mark <= p->x[p->count - 1]) {
        int column = to_x(s, p->mark) / c->x_dots;
        for (int row = 0; row < HEIGHT; row++)
            c->over[row][column] = '|';
    }
}

static void write_cell(const struct canvas *c, int row, int column, struct knee_text *text)
{
    static const struct {
        char over;
        const char *ascii, *unicode;
    } marks[] = {{'o', "o", "●"}, {'|', "|", "│"}, {'-', "-", "┄"}};
    char over = c->over[row][column];
    unsigned char dots = c->dots[row][column];
    if (dots && over != 'o')
        over = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (over == marks[i].over) {
            knee_text_puts(text, c->ascii ? marks[i].ascii : marks[i].unicode);
            return;
        }
    if (c->ascii || !dots) {
        knee_text_puts(text, dots ? "*" : " ");
        return;
    }
    char braille[4] = {(char)0xe2, (char)(0xa0 + (dots >> 6)), (char)(0x80 + (dots & 0x3f)), 0};
    knee_text_puts(text, braille); /* U+2800 + dots */
}

static void write_axis(const struct scale *s, const struct canvas *c, struct knee_text *text)
{
    char labels[WIDTH + 32];
    int end = 0;
    memset(labels, ' ', sizeof labels);
    for (size_t i = 0; i < s->plot->count; i++) {
        char label[24];
        if (s->plot->x_label)
            s->plot->x_label(s->plot->x[i], label, sizeof label);
        else
            knee_format(label, sizeof label, "%.0f", s->plot->x[i]);
        int length = (int)strlen(label);
        int start = to_x(s, s->plot->x[i]) / c->x_dots;
        if ((end > 0 && start < end + 1) || start + length > WIDTH + 24)
            continue;
        memcpy(labels + start, label, (size_t)length);
        end = start + length;
    }
    labels[end] = '\0';
    knee_text_printf(text, "%*s%s", LEFT + 1, "", c->ascii ? "+" : "└");
    knee_text_repeat(text, c->ascii ? "-" : "─", WIDTH);
    knee_text_printf(text, "\n%*s%s  %s\n", LEFT + 2, "", labels, s->plot->x_name);
}

void knee_plot_write(const struct knee_plot *plot, const struct knee_style *style,
                     struct knee_text *text)
{
    struct canvas canvas = {
        .ascii = style->ascii, .x_dots = style->ascii ? 1 : 2, .y_dots = style->ascii ? 1 : 4};
    if (plot->count < 2)
        return;
    struct scale scale = {.plot = plot,
                          .low = log2(plot->x[0]),
                          .high = log2(plot->x[plot->count - 1]),
                          .x_max = WIDTH * canvas.x_dots - 1,
                          .y_max = HEIGHT * canvas.y_dots - 1};
    draw_lines(&canvas, &scale);
    draw_curve(&canvas, &scale);
    knee_text_printf(text, "  %s", plot->title);
    if (!isnan(plot->mark))
        knee_text_printf(text, "   %s %s", style->ascii ? "|" : "│", plot->mark_name);
    if (!isnan(plot->level))
        knee_text_printf(text, "   %s %s", style->ascii ? "-" : "┄", plot->level_name);
    knee_text_puts(text, "\n");
    for (int row = 0; row < HEIGHT; row++) {
        double value = plot->y_max * (1 - (double)row / (HEIGHT - 1));
        if (row % 3 == 0)
            knee_text_printf(text, "%*.0f%% %s", LEFT - 1, 100 * value, style->ascii ? "|" : "│");
        else
            knee_text_printf(text, "%*s %s", LEFT, "", style->ascii ? "|" : "│");
        size_t start = text->length;
        for (int column = 0; column < WIDTH; column++)
            write_cell(&canvas, row, column, text);
        while (!text->failed && text->length > start && text->data[text->length - 1] == ' ')
            text->data[--text->length] = '\0';
        knee_text_puts(text, "\n");
    }
    write_axis(&scale, &canvas, text);
}
