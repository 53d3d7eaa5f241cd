/* SPDX-License-Identifier: MIT */
/* Constants of products from timed ones: a machine that is known is found again. */
#include "unit.h"

#include "base/keys.h"
#include "predict/calibrate/product_fit.h"
#include "read/log/product_table.h"

#define SHAPES 100

/* What this machine would be timed at, `noise` to either side. */
static void time_products(const struct knee_machine *machine, double noise,
                          struct knee_timed_product *out)
{
    static const double sides[] = {512, 2048, 4096, 8192, 16384};
    uint64_t dice = 11;
    for (size_t i = 0; i < SHAPES; i++) {
        out[i] = (struct knee_timed_product){KNEE_16BIT, 256 << 2 * (i / 25), sides[i / 5 % 5],
                                             sides[i % 5], 0};
        out[i].seconds =
            knee_timed_product_s(machine, &out[i]) * exp(noise * (2 * chance(&dice) - 1));
    }
}

TEST(a_known_machine_is_found)
{
    static const char *const gpus[] = {"a100", "h200", "b200", "v100"};
    struct knee_timed_product products[SHAPES];
    for (size_t g = 0; g < 4; g++)
        for (int noisy = 0; noisy < 2; noisy++) {
            struct knee_machine shipped = machine_of(gpus[g], NULL), truth = shipped;
            struct knee_products_fit fit;
            struct knee_err err;
            truth.rates.gemm = 1;
            truth.rates.gemm_16bit = 0.9 * shipped.rates.gemm_alone;
            truth.rates.gemm_depth_16bit *= 1.5;
            truth.rates.gemm_waves_16bit *= 0.7;
            truth.rates.gemm_start_s *= 1.3;
            truth.rates.gemm_memory *= 0.9;
            time_products(&truth, noisy ? 0.05 : 0, products);
            assert_ok(knee_products_fit(products, SHAPES, &shipped, &fit, &err));
            assert_relative(fit.machine.rates.gemm_16bit, truth.rates.gemm_16bit,
                            noisy ? 0.03 : 0.015);
            assert_true(fit.fitted < (noisy ? 0.03 : 0.004) && fit.fitted < fit.shipped);
            assert_true(fit.left_out < (noisy ? 0.035 : 0.005));
            assert_true(fit.speed < 0.97);
            /* in training it is as much slower as alone; what was not measured stays */
            assert_relative(fit.rates.gemm_16bit / shipped.rates.gemm_16bit,
                            fit.machine.rates.gemm_16bit / shipped.rates.gemm_alone, 1e-12);
            assert_true(isnan(fit.rates.gemm_8bit) && isnan(fit.rates.flash));
        }
}

/* Everything a tenth slower is a share a tenth lower, where starts and memory do not count. */
TEST(slower_products_are_slower_in_plans)
{
    struct knee_machine shipped = machine_of("h100", NULL), alone = shipped, mine = shipped;
    struct knee_timed_product products[SHAPES];
    struct knee_products_fit fit;
    struct knee_err err;
    alone.rates.gemm = 1;
    alone.rates.gemm_16bit = alone.rates.gemm_alone;
    time_products(&alone, 0, products);
    for (size_t i = 0; i < SHAPES; i++)
        products[i].seconds *= 1.1;
    assert_ok(knee_products_fit(products, SHAPES, &shipped, &fit, &err));
    assert_relative(fit.speed, 1 / 1.1, 1e-9);
    mine.rates.gemm_16bit = fit.rates.gemm_16bit;
    struct knee_timed_product large = {KNEE_16BIT, 16384, 16384, 16384, 0};
    assert_relative(knee_timed_product_s(&mine, &large),
                    1.1 * knee_timed_product_s(&shipped, &large), 0.02);
}

/* Where the share of training was itself taken from products timed alone, both are one. */
TEST(alone_and_training_differ_where_runs_told)
{
    static const struct {
        const char *gpu;
        double quicker; /* alone than in training */
    } cases[] = {{"l40s", 1},    {"mi300x", 1},  {"mi355x", 1},  {"gaudi3", 1}, {"v100", 1},
                 {"a100", 1.06}, {"h100", 1.23}, {"h200", 1.23}, {"b200", 1.52}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct knee_machine machine = machine_of(cases[i].gpu, NULL);
        assert_relative(machine.rates.gemm_alone / machine.rates.gemm_16bit, cases[i].quicker,
                        cases[i].quicker > 1 ? 0.05 : 1e-9);
    }
}

TEST(few_products_are_no_fit)
{
    struct knee_machine machine = machine_of("h100", NULL);
    struct knee_timed_product products[SHAPES];
    struct knee_products_fit fit;
    struct knee_err err;
    time_products(&machine, 0, products);
    assert_int_equal(knee_products_fit(products, 7, &machine, &fit, &err), KNEE_INPUT);
    assert_string_equal(err.what, "7 products are too few for a fit");
    assert_ok(knee_products_fit(products, 8, &machine, &fit, &err));
    assert_true(isnan(fit.left_out));
    products[0].dtype = KNEE_4BIT; /* which no H100 has */
    assert_int_equal(knee_products_fit(products, 8, &machine, &fit, &err), KNEE_INPUT);
    assert_ok(knee_products_fit(products, 9, &machine, &fit, &err));
    assert_true(fit.count == 8 && fit.of[KNEE_4BIT] == 0 && isfinite(fit.fitted));
}

TEST(tables_are_read)
{
    static const char table[] = "# a remark\ngpu,dtype,m,n,k,seconds\n"
                                "\"NVIDIA H200\",bf16,1,2,3,4e-6\nh200,fp8,1,2,3,-4\n"
                                "h200,sq,1,2,3,4\nh200,nvfp4,1,2,3,4\n";
    static const char other[] = "gemm_dtype,m,n,k,latency\nbfloat16,5,6,7,2\n";
    static const struct {
        const char *text, *said;
    } refused[] = {{"", "is empty"},
                   {"m,n,k,seconds\n1,2,3,4\n", "not a table of products"},
                   {"m,n,k,dtype\n", "not a table of products"}};
    struct knee_timed_products got;
    struct knee_err err;
    assert_ok(knee_timed_products_read("t", table, sizeof table - 1, NULL, &got, &err));
    assert_int_equal(got.count, 2);
    assert_string_equal(got.gpu, "NVIDIA H200");
    assert_true(got.rows[0].seconds == 4e-6 && got.rows[1].dtype == KNEE_4BIT);
    assert_true(got.damaged == 1 && got.first_line == 4);
    assert_true(got.others == 1 && strcmp(got.other, "sq") == 0);
    knee_timed_products_release(&got);
    assert_ok(knee_timed_products_read("t", other, sizeof other - 1, NULL, &got, &err));
    assert_true(got.count == 1 && got.rows[0].seconds == 2e-3 && !got.gpu[0]);
    knee_timed_products_release(&got);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(knee_timed_products_read("t", refused[i].text, strlen(refused[i].text),
                                                  NULL, &got, &err),
                         KNEE_INPUT);
        assert_string_equal(err.what, refused[i].said);
    }
    struct failing fails = {.fail_at = 1};
    struct knee_alloc alloc = {failing_resize, &fails};
    assert_int_equal(knee_timed_products_read("t", table, sizeof table - 1, &alloc, &got, &err),
                     KNEE_SYSTEM);
}
