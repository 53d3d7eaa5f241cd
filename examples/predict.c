/* SPDX-License-Identifier: MIT */
/*
 * Where does the next H100 stop paying for a 7B model? Against the library, once it is installed:
 *   cc examples/predict.c $(pkg-config --cflags --libs knee) -o predict && ./predict
 */
#include "knee.h"

#include <stdio.h>

int main(void)
{
    static const char question[] = "params = 7B\n"
                                   "gpu = h100\n"
                                   "global-batch = 4M\n"
                                   "workers = 64..4096x4\n";
    struct knee_text answer = {0};
    struct knee_err err = {0};
    knee_status status = knee_ask(NULL, "predict", question, KNEE_TEXT, &answer, &err);
    if (status)
        fprintf(stderr, "%s: %s; %s\n", err.where, err.what, err.hint);
    else
        fputs(answer.data, stdout);
    knee_text_release(&answer);
    return (int)status;
}
