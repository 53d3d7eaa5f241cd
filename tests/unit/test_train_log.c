/* SPDX-License-Identifier: MIT */
/*
 * Training logs: a few lines in the words of every framework, and what they must give; then damage,
 * prefixes, restarts, several writers, pieces of any size, too many rows, too little memory. Real
 * logs are read by tests/shared/scale.
 */
#include "knee_read.h"
#include "knee_scale.h"
#include "unit.h"

static knee_status read_in(const char *text, size_t length, size_t piece,
                           const struct knee_alloc *alloc, struct knee_train_log *out,
                           struct knee_err *err)
{
    struct knee_train_reader *reader = knee_train_begin("test.log", alloc);
    if (!reader)
        return KNEE_SYSTEM;
    for (size_t at = 0; at < length; at += piece)
        knee_train_push(reader, text + at, length - at < piece ? length - at : piece);
    return knee_train_end(reader, out, err);
}

static struct knee_train_log log_of(const char *text)
{
    struct knee_train_log log;
    struct knee_err err;
    if (read_in(text, strlen(text), 4096, NULL, &log, &err))
        fail_msg("%s: %s", err.what, text);
    return log;
}

/* ---- Every format ---- */

/* Seeds of the fuzz target train_log. */
static const struct {
    const char *seed, *format;
    double median_s;
    enum knee_train_timing timing;
} formats[] = {
    {"01_megatron_lm", "Megatron-LM", 1.45, KNEE_TIMED_PRINTED},
    {"02_megatron_lm", "Megatron-LM", 0.1625, KNEE_TIMED_PRINTED}, /* GPT-NeoX */
    {"03_nemo", "NeMo", 46.86, KNEE_TIMED_PRINTED},
    {"04_nanotron", "nanotron", 1.25, KNEE_TIMED_PRINTED},
    {"32_megatron_bridge", "Megatron-Bridge", 1.23, KNEE_TIMED_PRINTED},
    {"05_deepspeed_pipeline", "DeepSpeed pipeline", 145.206, KNEE_TIMED_PRINTED},
    {"06_deepspeed_chat", "DeepSpeed-Chat", 3.73, KNEE_TIMED_PRINTED},
    {"07_torchtitan", "torchtitan", 0.4, KNEE_TIMED_STAMP},
    {"08_maxtext", "MaxText", 5.668, KNEE_TIMED_PRINTED},
    {"09_paddlenlp_trainer", "PaddleNLP trainer", 2, KNEE_TIMED_RATE},
    {"10_paddlenlp", "key-value lines", 0.14414, KNEE_TIMED_PRINTED},
    {"11_paddlenlp_words", "PaddleNLP words", 0.2169, KNEE_TIMED_PRINTED},
    {"12_dllogger", "DLLogger", 10, KNEE_TIMED_STAMP},
    {"13_fairseq_nvidia", "fairseq (NVIDIA)", 0.1728, KNEE_TIMED_ELAPSED},
    {"14_mlperf", "MLPerf", 19.5, KNEE_TIMED_PRINTED},
    {"15_mlperf", "MLPerf", 2, KNEE_TIMED_BLOCK}, /* blocks of tokens only */
    {"16_modded_nanogpt", "modded-nanogpt", 0.214, KNEE_TIMED_ELAPSED},
    {"17_internlm", "InternLM", 3.847, KNEE_TIMED_STAMP},
    {"18_litgpt", "LitGPT", 1.36903, KNEE_TIMED_PRINTED},
    {"19_nanochat", "nanochat", 0.99681, KNEE_TIMED_PRINTED},
    {"20_llm_c", "llm.c", 0.04457, KNEE_TIMED_PRINTED},
    {"21_nanogpt", "key-value lines", 0.25012, KNEE_TIMED_PRINTED},
    {"22_composer", "Composer", 4, KNEE_TIMED_RATE},
    {"23_deepspeed", "DeepSpeed", 0.75, KNEE_TIMED_STAMP},
    {"24_llama_factory", "LLaMA-Factory", 393.6, KNEE_TIMED_ELAPSED},
    {"25_json_lines", "JSON lines", 2, KNEE_TIMED_RATE}, /* NeMo Automodel */
    /* ---- Other vintages and frameworks: after the format strings of their sources and logs ----
     */
    {"v01_modded_nanogpt", "modded-nanogpt", 1.25,
     KNEE_TIMED_PRINTED}, /* seconds, and the step's own time */
    {"v02_modded_nanogpt", "modded-nanogpt", 1.5, KNEE_TIMED_ELAPSED},
    {"v03_megatron_lm", "Megatron-LM", 5.852,
     KNEE_TIMED_PRINTED}, /* Primus: now / average, as read through its colours */
    {"v04_megatron_lm", "Megatron-LM", 18.893,
     KNEE_TIMED_PRINTED},                                     /* Argonne's Megatron-DeepSpeed */
    {"v05_paddlenlp", "PaddleNLP", 0.15625, KNEE_TIMED_RATE}, /* 2021 */
    {"v06_megatron_lm", "Megatron-LM", 0.613, KNEE_TIMED_PRINTED}, /* 2019 */
    {"v07_nemo", "NeMo", 2.389, KNEE_TIMED_PRINTED},
    {"v08_hugging_face_trainer", "Hugging Face Trainer", 30,
     KNEE_TIMED_ELAPSED}, /* NeMo 1, Lightning: epochs begin again */
    {"v09_hugging_face_trainer", "Hugging Face Trainer", 4, KNEE_TIMED_ELAPSED}, /* no total */
    {"v10_hugging_face_trainer", "Hugging Face Trainer", 2.5, KNEE_TIMED_ELAPSED},
    {"v11_hugging_face_trainer", "Hugging Face Trainer", 2, KNEE_TIMED_ELAPSED}, /* torchtune */
    {"v12_lightning", "Lightning", 2.59, KNEE_TIMED_PRINTED},
    {"v13_nanotron", "nanotron", 11.5,
     KNEE_TIMED_PRINTED}, /* 2024: sequences, not tokens, in the batch */
    {"v14_torchtitan", "torchtitan", 1, KNEE_TIMED_STAMP},          /* 2024 */
    {"v15_torchtitan", "torchtitan", 2.380844, KNEE_TIMED_PRINTED}, /* as its metrics are named */
    {"v16_deepspeed", "DeepSpeed", 0.3,
     KNEE_TIMED_STAMP}, /* 2020: the steps stand before the rate */
    {"v17_deepspeed", "DeepSpeed", 0.1, KNEE_TIMED_STAMP},
    {"v18_paddlenlp_trainer", "PaddleNLP trainer", 80.81,
     KNEE_TIMED_PRINTED}, /* three digits of the rate are too few */
    {"v19_dllogger", "DLLogger", 24.64, KNEE_TIMED_PRINTED},
    {"v20_dllogger_json", "DLLogger JSON", 0.3, KNEE_TIMED_STAMP},
    {"v21_fairseq", "fairseq", 2.1,
     KNEE_TIMED_RATE}, /* tokens over their rate: steps per second have one digit */
    {"v22_fairseq", "fairseq", 2.1, KNEE_TIMED_RATE},
    {"v23_fairseq", "fairseq", 2.1, KNEE_TIMED_RATE},
    {"v24_mlperf", "MLPerf", 0.931,
     KNEE_TIMED_PRINTED}, /* gpt3 of 2023: evaluation has a time too; the throughput is in tokens */
    {"v25_mlperf", "MLPerf", 1, KNEE_TIMED_RATE},          /* tokens per second only */
    {"v26_mlperf", "MLPerf", 0.5, KNEE_TIMED_BLOCK},       /* blocks of epochs */
    {"v27_litgpt", "LitGPT", 1.36903, KNEE_TIMED_PRINTED}, /* 2023 */
    {"v28_nanogpt", "key-value lines", 0.25012, KNEE_TIMED_PRINTED},
    {"v29_llm_c", "llm.c", 0.1284, KNEE_TIMED_PRINTED},
    {"v30_llm_c", "llm.c", 0.10025, KNEE_TIMED_PRINTED},
    {"v31_olmo", "OLMo", 12.5, KNEE_TIMED_RATE},
    {"v32_fms_fsdp", "fms-fsdp", 3.41, KNEE_TIMED_PRINTED},
    {"v33_nemo_rl", "NeMo-RL", 12.34, KNEE_TIMED_PRINTED},
    {"v34_verl", "verl", 45.3, KNEE_TIMED_PRINTED},
    {"v35_fsdp_example", "key-value lines", 0.5,
     KNEE_TIMED_STAMP}, /* whole seconds: from the first to the last */
    {"v36_automodel", "Automodel", 3, KNEE_TIMED_STAMP},
    {"v37_bar", "bar", 4, KNEE_TIMED_ELAPSED},
    {"v38_picotron", "picotron", 32.77 / 16.39, KNEE_TIMED_RATE},
    {"v39_litgpt", "LitGPT", 0.38311, KNEE_TIMED_PRINTED}, /* a benchmark that marks no steps */
    {"v40_openclip", "OpenCLIP", 0.456, KNEE_TIMED_PRINTED},
    {"v41_tensorflow", "TensorFlow", 16.926, KNEE_TIMED_PRINTED},
    {"v42_tensorflow", "TensorFlow", 0.25, KNEE_TIMED_RATE},
    {"v43_hugging_face_metrics", "Hugging Face metrics", 10000.0 / 30,
     KNEE_TIMED_WHOLE_RUN}, /* strings, as of version 5; the steps make up for the digits */
    {"v44_hugging_face_metrics", "Hugging Face metrics", 4,
     KNEE_TIMED_WHOLE_RUN}, /* train_results.json */
    {"v45_json_lines", "JSON lines", 1.25,
     KNEE_TIMED_PRINTED}, /* Megatron's golden values of 2023: lists */
    {"26_table", "table", 0.51, KNEE_TIMED_PRINTED},
    {"27_table", "table", 0.6, KNEE_TIMED_PRINTED}, /* wandb */
    {"28_hugging_face_trainer", "Hugging Face Trainer", 61, KNEE_TIMED_ELAPSED},
    {"29_hugging_face_metrics", "Hugging Face metrics", 4, KNEE_TIMED_WHOLE_RUN},
    {"30_hugging_face_metrics", "Hugging Face metrics", 2.5, KNEE_TIMED_WHOLE_RUN},
    {"31_json_lines", "JSON lines", 1.25, KNEE_TIMED_PRINTED}, /* Megatron's golden values */
};

/* Lines of frameworks that have no row of their own: counters, times, means, bars, stamps. */
static const struct {
    const char *what, *text;
    double median_s, data_s;
    enum knee_train_timing timing;
} mechanisms[] = {
    {"OpenMMLab 2",
     "2022-03-17 11:56:00,123 - mmdet - INFO - Epoch [1][250/7674]    lr: 9.970e-03, eta: "
     "10:43:36, "
     "time: 0.441, data_time: 0.089, memory: 5023, loss: 0.5\n"
     "2022-03-17 11:56:21,294 - mmdet - INFO - Epoch [1][300/7674]    lr: 1.197e-02, eta: "
     "10:44:01, "
     "time: 0.424, data_time: 0.059, memory: 5210, loss: 0.4\n",
     0.4325, 0.074, KNEE_TIMED_PRINTED},
    {"mmengine",
     "2024/01/24 02:50:32 - mmengine - INFO - Epoch(train)  [83][ 350/2693]  lr: 3.9620e-04  eta: "
     "8:51:35  time: 0.5674  data_time: 0.0034  memory: 11750  loss: 1913.7995\n",
     0.5674, 0.0034, KNEE_TIMED_PRINTED},
    {"detectron2",
     "[06/06 22:50:20] d2.utils.events INFO:  eta: 6:22:05  iter: 99  total_loss: 0.9931    time: "
     "0.2535  last_time: 0.2326  data_time: 0.0599  last_data_time: 0.0033   lr: 0.000999\n",
     0.2535, 0.0599, KNEE_TIMED_PRINTED},
    {"MetricLogger",
     "Epoch: [0/100]  [2250/2502]  eta: 0:02:38  loss: 5.450140 (7.536839)  lr: 0.000090 "
     "(0.000045) "
     " time: 0.612473  data: 0.000167  max mem: 13871\n",
     0.612473, 0.000167, KNEE_TIMED_PRINTED},
    {"AverageMeter",
     "Epoch: [34][10/53]      Time 0.410 (0.784)      Loss 1.1066 (1.0946)    Acc@1 73.478 "
     "(73.752)   Data 0.034 (0.310)\n",
     0.41, 0.034, KNEE_TIMED_PRINTED},
    {"AverageMeter whose stamps say otherwise",
     "[2021-11-22 22:33:16,000 INFO] Epoch: [1/120][180/3368] Data 0.002 (0.574) Batch 0.818 "
     "(3.887) Remain 436:08:39 Loss 11.8\n"
     "[2021-11-22 22:33:56,000 INFO] Epoch: [1/120][190/3368] Data 0.001 (0.555) Batch 0.720 "
     "(3.896) Remain 437:11:12 Loss 12.8\n"
     "[2021-11-22 22:34:36,000 INFO] Epoch: [1/120][200/3368] Data 0.001 (0.554) Batch 0.622 "
     "(3.915) Remain 439:19:47 Loss 10.0\n",
     4, 0.555, KNEE_TIMED_STAMP},
    {"PaddleDetection",
     "[05/13 10:00:01] ppdet.engine.callbacks INFO: Epoch: [0] [2087/7312] learning_rate: 0.01 "
     "loss: "
     "2.5 eta: 1 day, 2:00:00 batch_cost: 0.1664 data_cost: 0.0034 ips: 96.1758 images/s\n",
     0.1664, 0.0034, KNEE_TIMED_PRINTED},
    {"Keras", "1000/1000 [====] - 115s 115ms/step - loss: 66.3670 - accuracy: 0.0\n", 0.115, NAN,
     KNEE_TIMED_PRINTED},
    {"MindSpore", "Train epoch time: 4353877.791 ms, per step time: 10830.542 ms\n", 10.830542, NAN,
     KNEE_TIMED_PRINTED},
    {"Caffe",
     "I0914 09:36:00.000000  6584 solver.cpp:228] Iteration 1853400, loss = 0.667568\n"
     "I0914 09:36:06.500000  6584 solver.cpp:228] Iteration 1853500, loss = 0.609652\n"
     "I0914 09:36:13.000000  6584 solver.cpp:228] Iteration 1853600, loss = 0.749501\n",
     0.065, NAN, KNEE_TIMED_STAMP},
    {"icefall",
     "2023-05-01 10:00:00,000 INFO [train.py:1011] (0/3) Epoch 0, batch 0, loss[loss=7.9, over "
     "5000 "
     "frames.], batch size: 48, lr: 1e-3\n"
     "2023-05-01 10:00:20,000 INFO [train.py:1011] (0/3) Epoch 0, batch 50, loss[loss=6.9, over "
     "5000 frames.], batch size: 48, lr: 1e-3\n",
     0.4, NAN, KNEE_TIMED_STAMP},
    {"RETURNN", "Trained 904 steps, 0:10:02 elapsed (92.1% computing time)\n", 602. / 904, NAN,
     KNEE_TIMED_PRINTED},
    {"DeepSpeed timers",
     "[2023-06-03 00:10:23,345] [INFO] [Rank 0] rank=0 time (ms) | forward_microstep: 1330.05 | "
     "backward_microstep: 4766.88 | backward_inner_microstep: 4410.89 | "
     "backward_allreduce_microstep: 355.95 | step_microstep: 0.05\n",
     6.09698, NAN, KNEE_TIMED_PRINTED},
    {"tinygrad", "   4 4.32 s run, 11.8750 loss, 0.000042 LR\n", 4.32, NAN, KNEE_TIMED_PRINTED},
    {"mlx-lm",
     "Iter 2: Train loss 3.729, Learning Rate 1.000e-05, It/sec 0.576, Tokens/sec 98.498\n",
     1 / 0.576, NAN, KNEE_TIMED_RATE},
    {"fairseq 0.5", "| epoch 010  2000 / 8223 loss=1.27 (1.50), wps=962, wpb=908, bsz=32\n",
     908. / 962, NAN, KNEE_TIMED_RATE},
    {"a bar behind a logger",
     "07/02/2025 22:49:32 - INFO - __main__ - Steps:   0%|  | 1/3000 [04:26<221:54:49, 266.39s/it, "
     "loss=0.1]\n",
     266.39, NAN, KNEE_TIMED_MEAN},
    {"a bar behind numbers",
     "d: 1.0220; g: 2.3909; r1: 0.0001; :   0%|  | 4/40000 [19:27<9:00:00, 1124.30s/it]\n", 1124.3,
     NAN, KNEE_TIMED_MEAN},
    {"a bar that says how far it is",
     "Training Progress:   0%|   | 1/540 [11:50<106:20:42, 710.28s/it]\n", 710.28, NAN,
     KNEE_TIMED_MEAN},
    {"ms-swift",
     "{'loss': 0.4, 'train_speed(iter/s)': 0.19, 'global_step/max_steps': '295/4491', "
     "'elapsed_time': '25m 15s'}\n"
     "{'loss': 0.4, 'train_speed(iter/s)': 0.19, 'global_step/max_steps': '300/4491', "
     "'elapsed_time': '25m 40s'}\n",
     5, NAN, KNEE_TIMED_ELAPSED},
    {"preparing data before the training",
     "498383it [00:12, 59276.95it/s]\n  0%|  | 0/20 [00:00<?, ?it/s]\r 50%|## | 10/20 "
     "[00:01<00:01, 9.0it/s]\r100%|####| 20/20 [00:02<00:00, 9.0it/s]\n"
     " 10%|#  | 10/97 [01:00<08:42, 6.0s/it]\n{'loss': 2.1, 'epoch': 0.1}\n"
     " 20%|#  | 20/97 [02:00<07:42, 6.0s/it]\n{'loss': 2.0, 'epoch': 0.2}\n",
     6, NAN, KNEE_TIMED_ELAPSED},
    {"a list whose last but one number counts",
     "2023-12-07 17:29:50,000\tModel\tINFO\t[6.10, 1.58, 198.7, 0, 0.0002]\n"
     "2023-12-07 17:35:30,000\tModel\tINFO\t[2.79, 1.55, 1.8, 200, 0.00019]\n"
     "2023-12-07 17:41:10,000\tModel\tINFO\t[2.26, 1.73, 1.6, 400, 0.00019]\n",
     1.7, NAN, KNEE_TIMED_STAMP},
    {"a counter of each epoch, times since the start, names of two words",
     "Epoch 1, Step 25, total used time 10.0 (s), avg loss so far is 0.5\n"
     "Epoch 1, Step 50, total used time 20.0 (s), avg loss so far is 0.4\n"
     "Epoch 1, val loss is 0.5\n"
     "Epoch 2, Step 25, total used time 95.0 (s), avg loss so far is 0.4\n"
     "Epoch 2, Step 50, total used time 105.0 (s), avg loss so far is 0.3\n",
     0.4, NAN, KNEE_TIMED_ELAPSED},
    {"a counter with a name and its total, of each epoch",
     "2021-09-03 20:35:29.300 - epoch: 1/300, iter: 10/25, iter_time: 0.086s, data_time: 0.001s\n"
     "2021-09-03 20:35:30.200 - epoch: 1/300, iter: 20/25, iter_time: 0.088s, data_time: 0.001s\n"
     "2021-09-03 20:35:32.000 - epoch: 2/300, iter: 10/25, iter_time: 0.087s, data_time: 0.001s\n",
     0.087, 0.001, KNEE_TIMED_PRINTED},
    {"steps of an epoch, and the epoch summed up",
     "2022-05-06 11:00:00,000 Epoch[001/100], Step[0000/0196], Avg Loss: 0.27\n"
     "2022-05-06 11:01:30,000 Epoch[001/100], Step[0100/0196], Avg Loss: 0.40\n"
     "2022-05-06 11:02:56,400 ----- Epoch[001/100], Train Loss: 0.4016, time: 176.4\n"
     "2022-05-06 11:02:56,400 Epoch[002/100], Step[0000/0196], Avg Loss: 0.32\n",
     0.9, NAN, KNEE_TIMED_STAMP},
    {"MXNet: a range in brackets and a rate without the batch",
     "2018-10-11 09:16:49,000 INFO - Epoch[5] Batch [0-20]\tSpeed: 25.77 samples/sec\tAcc=0.99\n"
     "2018-10-11 09:17:01,000 INFO - Epoch[5] Batch [20-40]\tSpeed: 25.69 samples/sec\tAcc=0.99\n"
     "2018-10-11 09:17:13,000 INFO - Epoch[5] Batch [40-60]\tSpeed: 25.64 samples/sec\tAcc=0.99\n",
     0.6, NAN, KNEE_TIMED_STAMP},
    {"a bar of epochs around a bar of steps",
     "Epoch:   0%|  | 0/3 [00:00<?, ?it/s]\rIteration:  50%|## | 200/400 [03:20<03:20, 1.00s/it]\r"
     "Iteration: 100%|## | 400/400 [06:40<00:00, 1.00s/it]\r"
     "Epoch:  33%|# | 1/3 [06:40<13:20, 400.0s/it]\r"
     "Iteration:  50%|## | 200/400 [03:20<03:20, 1.00s/it]\r"
     "Iteration: 100%|## | 400/400 [06:40<00:00, 1.00s/it]\r"
     "Epoch:  67%|# | 2/3 [13:20<06:40, 400.0s/it]\n",
     1, NAN, KNEE_TIMED_ELAPSED},
    {"columns without names, beside an evaluation with a time",
     "2021-01-28 14:44:00 [INFO]:    Epoch       Batch       box      time\n"
     "2021-01-28 14:44:40 [INFO]:     1/29       0/165    0.0126      8.75\n"
     "2021-01-28 14:46:00 [INFO]:     1/29      40/165    0.0119      -1.5\n"
     "2021-01-28 14:47:20 [INFO]:     1/29      80/165     0.012       1.6\n"
     "2021-01-28 14:48:40 [INFO]:     1/29     120/165    0.0119       1.5\n"
     "2021-01-28 14:50:00 [INFO]:     1/29     160/165    0.0121       1.5\n"
     "2021-01-28 14:50:10 [INFO]:     2/29       0/165    0.0119      10.5\n"
     "Extracting 0/438, # of instances 106, time 0.78 sec.\n"
     "Extracting 30/438, # of instances 106, time 0.58 sec.\n",
     2, NAN, KNEE_TIMED_STAMP},
    {"both losses in one line are of the training",
     "[200/300] Train loss: 4.71737, Valid loss: 4.31139, Elapsed_time: 400.0\n"
     "[250/300] Train loss: 3.56731, Valid loss: 3.24884, Elapsed_time: 500.0\n",
     2, NAN, KNEE_TIMED_ELAPSED},
    {"a short year first, no name of a loss",
     "23-05-05 21:26:52.000 - INFO: [epoch:  0, iter:     100, lr:(2.000e-04,)] l_pix: 2.9e+05\n"
     "23-05-05 21:28:02.000 - INFO: [epoch:  0, iter:     200, lr:(2.000e-04,)] l_pix: 1.1e+05\n"
     "23-05-05 21:29:12.000 - INFO: [epoch:  0, iter:     300, lr:(2.000e-04,)] l_pix: 6.1e+04\n"
     "[                              ] 0/117, elapsed: 0s, ETA:\n"
     "[>>>>>>>-----------------------] 31/117, 2.2 task/s, elapsed: 14s, ETA:    39s\n",
     0.7, NAN, KNEE_TIMED_STAMP},
    {"a date without a year, and something else where it would be",
     "Dec 31 23:59:10 [100/900] loss: 4.5\nJan 01 00:00:00 [200/900] loss: 4.1\n"
     "Jan 01 00:00:50 [300/900] loss: 4.0\nJan 01 00:01:40 [400/900] loss: 3.9\n",
     0.5, NAN, KNEE_TIMED_STAMP},
    {"a time without a date, past midnight",
     "23:59:40 [I] Step 100: loss=0.5\n23:59:55 [I] Step 110: loss=0.4\n"
     "00:00:10 [I] Step 120: loss=0.4\n",
     1.5, NAN, KNEE_TIMED_STAMP},
    {"single steps now and then, where most wait: the stamps",
     "[12/25 14:00:00] epoch:[  1/25 ] train step:0    loss: 4.9 batch_cost: 7.4 sec\n"
     "[12/25 14:01:40] epoch:[  1/25 ] train step:100  loss: 4.0 batch_cost: 0.2 sec\n"
     "[12/25 14:03:20] epoch:[  1/25 ] train step:200  loss: 3.9 batch_cost: 6.4 sec\n"
     "[12/25 14:05:00] epoch:[  1/25 ] train step:300  loss: 3.6 batch_cost: 0.2 sec\n"
     "[12/25 14:06:40] epoch:[  1/25 ] train step:400  loss: 3.6 batch_cost: 3.2 sec\n",
     1, NAN, KNEE_TIMED_STAMP},
    {"a time that grows with the steps is the time since the start",
     "step 10 time: 20.0 loss: 3\nstep 20 time: 40.0 loss: 3\nstep 30 time: 60.0 loss: 3\n"
     "step 40 time: 80.0 loss: 3\nstep 50 time: 100.0 loss: 3\nstep 60 time: 120.0 loss: 3\n"
     "step 70 time: 140.0 loss: 3\nstep 80 time: 160.0 loss: 3\nstep 90 time: 180.0 loss: 3\n",
     2, NAN, KNEE_TIMED_ELAPSED},
    {"a time since the line before, by the stamps",
     "2024-01-01 00:00:00 step 100 time: 50.0 loss: 3\n"
     "2024-01-01 00:00:50 step 200 time: 50.0 loss: 3\n"
     "2024-01-01 00:01:40 step 300 time: 50.0 loss: 3\n",
     0.5, NAN, KNEE_TIMED_STAMP},
    {"the time since the start, beside the time that is left",
     "2023-10-17 08:50:40 INFO: Iters: 10/200 || Task Loss: 2.5 || Cost Time: 0:00:09 || Estimated "
     "Time: 4:55:31\n"
     "2023-10-17 08:52:20 INFO: Iters: 20/200 || Task Loss: 2.3 || Cost Time: 0:01:49 || Estimated "
     "Time: 4:42:52\n"
     "2023-10-17 08:54:00 INFO: Iters: 30/200 || Task Loss: 2.6 || Cost Time: 0:03:29 || Estimated "
     "Time: 4:18:13\n",
     10, NAN, KNEE_TIMED_ELAPSED},
    {"the loss of the validation after that of the training",
     "iter 10: loss 4.2, val loss 4.5, time 300ms\niter 20: loss 4.1, val loss 4.4, time 300ms\n",
     0.3, NAN, KNEE_TIMED_PRINTED},
    {"Keras without a bar",
     "Epoch 1/3\n1000/1000 - 115s - loss: 2.1 - val_loss: 2.0\nEpoch 2/3\n1000/1000 - 110s - loss: "
     "2.0 - val_loss: 1.9\n",
     0.1125, NAN, KNEE_TIMED_PRINTED},
    {"a time on another line than the counter",
     "Timer: 0.60\nepoch:17 || iter:10 || Loss:5.2\nTimer: 0.62\nepoch:17 || iter:20 || Loss:5.1\n"
     "Timer: 0.64\nepoch:17 || iter:30 || Loss:5.1\n",
     0.62, NAN, KNEE_TIMED_PRINTED},
    {"a clock that begins again with each line",
     "[epoch:1/1200] [loss:0.2] [total time:0:02:28]\n[epoch:2/1200] [loss:0.1] [total "
     "time:0:02:26]\n[epoch:3/1200] [loss:0.1] [total time:0:02:26]\n[epoch:4/1200] [loss:0.1] "
     "[total time:0:02:26]\n",
     146, NAN, KNEE_TIMED_PRINTED},
    {"a table with dates",
     "loss,global_step,epoch,created_at\n2.0,10,1,2024-01-01T00:00:00\n"
     "1.9,20,1,2024-01-01T00:00:50\n1.8,30,1,2024-01-01T00:01:40\n",
     5, NAN, KNEE_TIMED_STAMP},
    {"the same, and a thousand steps that are not in it",
     "loss,global_step,epoch,created_at\n2.0,10,1,2024-01-01T00:00:00\n"
     "1.9,20,1,2024-01-01T00:00:50\n1.8,30,1,2024-01-01T00:01:40\n1.7,1030,1,2024-01-01T00:02:00\n"
     "1.6,1040,1,2024-01-01T00:02:50\n",
     5, NAN, KNEE_TIMED_STAMP},
    {"seconds since the start, in as few lines as show it",
     "step 100 loss 2.0 time: 50.0\nstep 200 loss 2.0 time: 100.0\nstep 300 loss 2.0 time: 150.0\n"
     "step 400 loss 2.0 time: 200.0\nstep 500 loss 2.0 time: 250.0\nstep 600 loss 2.0 time: 300.0\n"
     "step 700 loss 2.0 time: 350.0\nstep 800 loss 2.0 time: 400.0\n",
     0.5, NAN, KNEE_TIMED_ELAPSED},
};

TEST(lines_of_any_framework)
{
    for (size_t i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++) {
        OWNED(knee_train_log) log = log_of(mechanisms[i].text);
        bool data = isnan(mechanisms[i].data_s)
                        ? isnan(log.data_s)
                        : fabs(log.data_s / mechanisms[i].data_s - 1) < 1e-6;
        if (log.timing != mechanisms[i].timing || !data ||
            !(fabs(log.median_s / mechanisms[i].median_s - 1) < 1e-6))
            fail_msg("%s: %s, %s %.9g instead of %.9g, data %g", mechanisms[i].what, log.format,
                     knee_train_timing_name(log.timing), log.median_s, mechanisms[i].median_s,
                     log.data_s);
    }
}

TEST(every_format)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char name[64];
        snprintf(name, sizeof name, "train_log/%s", formats[i].seed);
        OWNED(knee_train_log) log = log_of(seed_of(name));
        if (strcmp(log.format, formats[i].format) != 0 || log.timing != formats[i].timing ||
            !(fabs(log.median_s / formats[i].median_s - 1) < 1e-6))
            fail_msg("%s: %s %s %.9g instead of %.9g", formats[i].seed, log.format,
                     knee_train_timing_name(log.timing), log.median_s, formats[i].median_s);
    }
}

TEST(prefixes_and_line_ends_change_nothing)
{
    static const char prefixes[] =
        "[1,0]<stdout>:|Thu Jun  9 09:15:17 2022[1,0]<stdout>:|0: |[default0]:|[rank0]:|"
        "(main, pid=77) |2024-01-01T00:00:00.000000Z stdout F |\x1b[32m";
    for (struct pieces p = {.rest = prefixes}; next_piece(&p);)
        for (int ending = 0; ending < 2; ending++) {
            char text[2048] = "";
            for (int i = 1; i <= 4; i++) {
                size_t used = strlen(text);
                snprintf(text + used, sizeof text - used,
                         "%s iteration %d/ 10 | elapsed time per iteration (ms): 25%d.0 | global "
                         "batch size: 8 |%s",
                         p.text, i, i, ending ? "\r\n" : "\n");
            }
            OWNED(knee_train_log) log = log_of(text);
            assert_near(log.median_s, 0.2525, 1e-9);
            assert_int_equal(log.counts.runs, 1);
            assert_int_equal(log.counts.used, 4);
            assert_near(log.batch, 8, 0);
        }
}

/* ---- Laws over one longer log ---- */

static char *megatron_log(size_t steps, double seconds, size_t *length)
{
    char *text = malloc(steps * 160 + 64);
    size_t used = 0;
    for (size_t i = 1; i <= steps; i++)
        used += (size_t)sprintf(text + used,
                                " iteration %zu/ %zu | elapsed time per iteration (ms): %.1f | "
                                "global batch size: 16 | lm loss: 3.0E+00 |\n",
                                i, steps, 1e3 * seconds + (double)(i % 5));
    *length = used;
    return text;
}

TEST(pieces_of_any_size)
{
    size_t length;
    char *text = megatron_log(200, 0.5, &length);
    const size_t pieces[] = {1, 7, 64, 1000, 100000};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        OWNED(knee_train_log) log;
        struct knee_err err;
        assert_ok(read_in(text, length, pieces[i], NULL, &log, &err));
        assert_near(log.median_s, 0.502, 1e-9);
        assert_int_equal(log.row_count, 200);
        assert_int_equal(log.counts.lines, 200);
    }
    free(text);
}

/* Cut anywhere, the log is still read, and never says another step. */
TEST(damage_loses_no_more_than_it_must)
{
    size_t length;
    char *text = megatron_log(60, 0.5, &length);
    uint64_t seed = 7;
    for (int round = 0; round < 300; round++) {
        size_t from = (size_t)(chance(&seed) * (double)length), span = 1 + (size_t)round % 90;
        char *copy = malloc(length);
        struct knee_train_log log;
        struct knee_err err;
        memcpy(copy, text, length);
        for (size_t i = from; i < length && i < from + span; i++)
            copy[i] = (char)(unsigned char)(256 * chance(&seed));
        assert_ok(read_in(copy, length, 333, NULL, &log, &err));
        assert_relative(log.median_s, 0.502, 0.02);
        assert_true(log.row_count >= 55);
        knee_train_log_release(&log);
        free(copy);
    }
    free(text);
}

TEST(too_many_rows_are_thinned_and_counted)
{
    size_t length, steps = 300000;
    char *text = megatron_log(steps, 0.25, &length);
    struct knee_train_log log;
    struct knee_err err;
    assert_ok(read_in(text, length, 65536, NULL, &log, &err));
    assert_near(log.median_s, 0.252, 0.002);
    assert_int_equal(log.counts.used, steps);
    assert_true(log.counts.thinned + log.row_count == steps);
    knee_train_log_release(&log);
    free(text);
}

/* ---- Runs, ranks, writers ---- */

#define LINE(step, ms)                                                                             \
    " iteration " step "/ 99 | elapsed time per iteration (ms): " ms " | global batch size: 4 |\n"

TEST(restarts_are_one_job)
{
    OWNED(knee_train_log) log = log_of(LINE("1", "100.0") LINE("2", "101.0") LINE("3", "99.0") LINE(
        "2", "100.0") LINE("3", "100.0") LINE("4", "100.0"));
    assert_int_equal(log.counts.runs, 2);
    assert_int_equal(log.counts.left_out, 0);
    assert_near(log.median_s, 0.1, 1e-9);
}

TEST(another_job_in_the_file_is_left_out)
{
    OWNED(knee_train_log) log = log_of(LINE("1", "100.0") LINE("2", "100.0") LINE("3", "100.0")
                                           LINE("1", "9000.0") LINE("2", "9000.0"));
    assert_int_equal(log.counts.runs, 2);
    assert_int_equal(log.counts.left_out, 2);
    assert_near(log.median_s, 0.1, 1e-9);
}

TEST(other_ranks_and_second_writers)
{
    OWNED(knee_train_log) log = log_of("[rank0]:" LINE("1", "100.0") "[rank1]:" LINE(
        "1", "100.0") "[rank0]:" LINE("2", "100.0") "[rank1]:" LINE("2", "100.0"));
    assert_int_equal(log.row_count, 2);
    assert_int_equal(log.counts.other_ranks, 2);
    knee_train_log_release(&log);
    log = log_of(LINE("1", "100.0") LINE("1", "100.0") LINE("2", "100.0") LINE("2", "100.0"));
    assert_int_equal(log.row_count, 2);
    assert_int_equal(log.counts.duplicates, 2);
}

TEST(one_step_in_two_formats_counts_once)
{
    OWNED(knee_train_log) log =
        log_of("steps: 2 loss: 12.8004 iter time (s): 145.206 samples/sec: 7.052\n"
               " iteration 2/ 9 | elapsed time per iteration (ms): 145207.0 |\n");
    assert_int_equal(log.row_count, 1);
    assert_near(log.median_s, 145.207, 1e-9);
}

TEST(warm_up_and_rhythm)
{
    char text[16384] = "";
    for (int i = 1; i <= 100; i++) {
        size_t used = strlen(text);
        double ms = i == 1 ? 9000 : i % 20 == 0 ? 500 : 100;
        snprintf(text + used, sizeof text - used,
                 " iteration %d/ 100 | elapsed time per iteration (ms): %.1f |\n", i, ms);
    }
    OWNED(knee_train_log) log = log_of(text);
    assert_int_equal(log.counts.warm_up, 1);
    assert_int_equal(log.counts.outliers, 5);
    assert_near(log.outlier_every, 20, 0);
    assert_near(log.outlier_s, 0.4, 1e-9);
    assert_near(log.median_s, 0.1, 1e-9);
}

/* Odd steps 30 ms, even ones 40 ms: the job takes 35 ms a step. */
TEST(long_and_short_steps_in_turn)
{
    char text[16384] = "";
    double now_ms = 1000;
    for (int i = 1; i <= 200; i++) {
        size_t used = strlen(text);
        now_ms += i % 2 ? 30 : 40;
        snprintf(text + used, sizeof text - used, "step:%d/1300 train_time:%.0fms step_avg:1ms\n",
                 i, now_ms);
    }
    OWNED(knee_train_log) log = log_of(text);
    assert_true(log.alternates || log.median_s == 0.035);
    assert_near(log.median_s, 0.035, 1e-9);
    knee_train_log_release(&log);
    text[0] = '\0';
    for (int i = 1; i <= 100; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 " iteration %d/ 100 | elapsed time per iteration (ms): %d.0 |\n", i,
                 i % 2 ? 300 + i % 3 : 400 + i % 3);
    }
    log = log_of(text);
    assert_true(log.alternates);
    assert_near(log.median_s, 0.351, 1e-9);
}

/* modded-nanogpt writes its own source before its steps. */
TEST(a_listing_before_the_log_says_nothing)
{
    OWNED(knee_train_log) log = log_of(
        "import os\nwith open(sys.argv[0]) as f:\n    code = f.read()\n"
        "    print0(f\"step:{step}/{train_steps} val_loss:{val_loss:.4f} "
        "train_time:{training_time_ms:.0f}ms step_avg:{training_time_ms/max(step, 1):.2f}ms\")\n"
        "    print0(f\"step:{step+1}/{train_steps} train_time:{approx_time:.0f}ms\")\n"
        "    print(f\"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms\")\n"
        "====\nstep:0/100 val_loss:10.8 train_time:0ms step_avg:nanms\n"
        "step:1/100 train_time:250ms step_avg:nanms\nstep:2/100 train_time:500ms\n");
    assert_near(log.median_s, 0.25, 1e-9);
    assert_int_equal(log.row_count, 3);
    assert_near(log.rows[0].eval_loss, 10.8, 1e-9);
}

TEST(validation_of_torchtitan)
{
    OWNED(knee_train_log) log = log_of(
        "[titan] 2025-07-21 15:57:40,000 - root - INFO - step: 10  loss:  4.9  tps: 30,768\n"
        "[titan] 2025-07-21 15:57:45,000 - root - INFO - validate step: 10  loss:  5.5  "
        "memory:  0.50GiB(0.50%)  tps: 90,768\n"
        "[titan] 2025-07-21 15:57:50,000 - root - INFO - step: 20  loss:  4.8  tps: 30,768\n");
    assert_int_equal(log.row_count, 3);
    assert_near(log.rows[1].eval_loss, 5.5, 1e-9);
    assert_true(isnan(log.rows[1].loss));
    assert_near(log.rows[2].loss, 4.8, 1e-9);
}

/* Lines that have a word of some format and are none of it. */
TEST(look_alikes_are_no_steps)
{
    static const char *const texts[] = {
        "498383it [00:12, 40276.95it/s]\n",
        "Running tokenizer on dataset: 50%|##  | 20/40 [00:10<00:10,  2.0it/s]\n",
        "Epoch(val)  [1][50/500]    eta: 0:00:20  time: 0.0505  data_time: 0.0023\n",
        "Test:  [ 0/79]  eta: 0:02:10  loss: 6.9 (6.9)  time: 1.6  data: 0.9\n",
        "backup finished, time: 350 s\n",
        "Validation DataLoader 0: 100%|####| 20/20 [00:10<00:00,  2.0it/s]\n",
        "Loading checkpoint shards: 100%|####| 20/20 [00:10<00:00,  2.0s/it]\n",
        "Fetching 8 files: 100%|####| 8/8 [00:09<00:00,  1.33s/it]\n",
        "generated 512 tokens (35.2 tok/s)\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct knee_train_log log;
        struct knee_err err;
        if (!read_in(texts[i], strlen(texts[i]), 4096, NULL, &log, &err))
            fail_msg("%s: taken for %s", texts[i], log.format);
    }
}

/* ---- What is not there ---- */

TEST(losses_without_times_are_said_to_be_that)
{
    OWNED(knee_train_log) log =
        log_of("s:0 tel:11.0092\ns:0 trl:11.0091 lr:0.000001 norm:15.37\ns:1 trl:10.9598 lr:0.0\n");
    assert_int_equal(log.timing, KNEE_TIMED_NOT);
    assert_true(isnan(log.median_s));
}

TEST(no_log_is_refused)
{
    static const char *const texts[] = {"", "\n", "hello\nworld\n", "{\n}\n", "a,b\n1,2\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct knee_train_log log = {.median_s = -1};
        struct knee_err err = {0};
        assert_int_equal(read_in(texts[i], strlen(texts[i]), 4096, NULL, &log, &err), KNEE_INPUT);
        assert_true(err.hint[0]);
        assert_true(log.median_s == -1);
    }
}

/* ---- TensorBoard: records made here, byte by byte ---- */

static size_t put_record(char *out, const char *message, size_t length)
{
    memset(out, 0, 16 + length); /* checksums are left out */
    for (size_t i = 0; i < 8; i++)
        out[i] = (char)(length >> (8 * i) & 255);
    memcpy(out + 12, message, length);
    return 16 + length;
}

/* Event {wall_time, step, summary {value {tag, simple_value}}} */
static size_t put_scalar(char *out, double wall, int step, const char *tag, float value)
{
    char message[256];
    size_t tag_length = strlen(tag), inner = 2 + tag_length + 5, used = 0;
    message[used++] = 1 << 3 | 1;
    memcpy(message + used, &wall, 8), used += 8;
    message[used++] = 2 << 3;
    message[used++] = (char)(step | 128); /* two bytes: the low seven bits first */
    message[used++] = (char)(step >> 7);
    message[used++] = 5 << 3 | 2;
    message[used++] = (char)(2 + inner);
    message[used++] = 1 << 3 | 2;
    message[used++] = (char)inner;
    message[used++] = 1 << 3 | 2;
    message[used++] = (char)tag_length;
    memcpy(message + used, tag, tag_length), used += tag_length;
    message[used++] = 2 << 3 | 5;
    memcpy(message + used, &value, 4), used += 4;
    return put_record(out, message, used);
}

TEST(tensorboard_scalars)
{
    static const char version[] = "\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d"
                                  "brain.Event:2";
    char file[8192];
    struct knee_err err;
    struct knee_train_log log;
    size_t used = put_record(file, version, sizeof version - 1), whole;
    for (int step = 1001; step <= 1020; step++) {
        used += put_scalar(file + used, 1000 + 0.5 * step, step, "lm loss", 3.5F);
        used += put_scalar(file + used, 1000 + 0.5 * step, step, "iteration-time", 0.25F);
        used += put_scalar(file + used, 1000 + 0.5 * step, step, "gradients/layer 1", 7);
    }
    whole = used;
    for (size_t piece = 1; piece < 10000; piece *= 9) {
        assert_ok(read_in(file, whole, piece, NULL, &log, &err));
        assert_string_equal(log.format, "TensorBoard");
        assert_int_equal(log.row_count, 20);
        assert_near(log.median_s, 0.25, 1e-9);
        assert_near(log.rows[3].loss, 3.5, 1e-9);
        assert_int_equal(log.rows[3].step, 1004);
        knee_train_log_release(&log);
    }
    for (size_t cut = whole; cut > 60; cut -= 7) { /* cut anywhere: what is whole is read */
        if (read_in(file, cut, 512, NULL, &log, &err))
            break;
        assert_true(log.row_count <= 20);
        knee_train_log_release(&log);
    }
}

/* ---- Configuration ---- */

static const char dump[] = "------------------------ arguments ------------------------\n"
                           "  bf16 ............................................ True\n"
                           "  ffn_hidden_size ................................. 16384\n"
                           "  global_batch_size ............................... 256\n"
                           "  hidden_size ..................................... 4096\n"
                           "  micro_batch_size ................................ 2\n"
                           "  num_attention_heads ............................. 32\n"
                           "  num_layers ...................................... 24\n"
                           "  pipeline_model_parallel_size .................... 2\n"
                           "  seq_length ...................................... 2048\n"
                           "  tensor_model_parallel_size ...................... 4\n"
                           "  use_distributed_optimizer ....................... True\n"
                           "  world_size ...................................... 64\n"
                           "-------------------- end of arguments ---------------------\n";

/* The plan is the one that the importer makes of the arguments alone. */
TEST(argument_dump_is_the_importers)
{
    struct knee_shape shape;
    struct knee_plan plan;
    struct knee_err err;
    char text[4096];
    knee_shape_init(&shape);
    knee_plan_init(&plan);
    assert_ok(knee_megatron_read((struct knee_named_text){dump, strlen(dump), ""}, &shape, &plan,
                                 NULL, &err));
    snprintf(text, sizeof text, "noise\n%s%s", dump, LINE("1", "100.0"));
    OWNED(knee_train_log) log = log_of(text);
    assert_memory_equal(&log.shape, &shape, sizeof shape);
    assert_memory_equal(&log.plan, &plan, sizeof plan);
    assert_near(log.workers, 64, 0);
    assert_string_equal(log.workers_from, "argument dump");
}

/* One argument of a job as a launch script has it ("--num-layers 24", "--swiglu") and as the log's
 * dump prints it ("num_layers .... 24", "swiglu ... True"). */
struct both {
    char script[4096], dump[8192];
};

static void add_argument(struct both *b, const char *prefix, const char *name, const char *value)
{
    char dashed[64];
    size_t used = strlen(b->script), length = strlen(b->dump), i = 0;
    for (; name[i]; i++)
        dashed[i] = (char)(name[i] == '_' ? '-' : name[i]);
    dashed[i] = '\0';
    if (strcmp(value, "False") != 0)
        snprintf(b->script + used, sizeof b->script - used, " \\\n    --%s %s", dashed,
                 strcmp(value, "True") == 0 ? "" : value);
    snprintf(b->dump + length, sizeof b->dump - length, "%s  %s %.*s %s\n", prefix, name,
             (int)(48 - i), "................................................", value);
}

/* Job number `i`: models, degrees and switches in changing company. */
static void make_job(size_t i, const char *prefix, struct both *b)
{
    static const char *const layers[] = {"12", "24", "32", "40", "80"};
    static const char *const widths[] = {"1024", "2048", "4096", "8192"};
    static const char *const degrees[] = {"1", "2", "4", "8"};
    static const char *const recomputes[] = {"full", "selective"};
    char world[16];
    snprintf(b->script, sizeof b->script, "torchrun pretrain_gpt.py");
    snprintf(b->dump, sizeof b->dump, "%s------------------------ arguments ----------------\n",
             prefix);
    snprintf(world, sizeof world, "%zu", (size_t)64 << i % 4);
    add_argument(b, prefix, "num_layers", layers[i % 5]);
    add_argument(b, prefix, "hidden_size", widths[i % 4]);
    add_argument(b, prefix, "num_attention_heads", "32");
    add_argument(b, prefix, "seq_length", i % 3 ? "4096" : "2048");
    add_argument(b, prefix, "max_position_embeddings", "4096");
    add_argument(b, prefix, "padded_vocab_size", "50304");
    add_argument(b, prefix, "micro_batch_size", degrees[i % 3]);
    add_argument(b, prefix, "global_batch_size", i % 2 ? "512" : "1024");
    add_argument(b, prefix, "tensor_model_parallel_size", degrees[i / 2 % 4]);
    add_argument(b, prefix, "pipeline_model_parallel_size", degrees[i / 3 % 3]);
    add_argument(b, prefix, "context_parallel_size", degrees[i / 5 % 2]);
    add_argument(b, prefix, "world_size", world);
    add_argument(b, prefix, "bf16", "True");
    add_argument(b, prefix, "swiglu", i % 2 ? "True" : "False");
    add_argument(b, prefix, "sequence_parallel", i % 4 == 1 ? "True" : "False");
    add_argument(b, prefix, "use_distributed_optimizer", i % 3 ? "True" : "False");
    add_argument(b, prefix, "overlap_grad_reduce", i % 5 ? "True" : "False");
    add_argument(b, prefix, "untie_embeddings_and_output_weights", i % 2 ? "True" : "False");
    add_argument(b, prefix, "disable_bias_linear", i % 2 ? "True" : "False");
    if (i % 3 == 2)
        add_argument(b, prefix, "ffn_hidden_size", "11008");
    if (i % 4 == 3) {
        add_argument(b, prefix, "group_query_attention", "True");
        add_argument(b, prefix, "num_query_groups", "8");
    }
    if (i % 7 > 2)
        add_argument(b, prefix, "recompute_granularity", recomputes[i % 2]);
    if (i % 6 == 5) {
        add_argument(b, prefix, "num_experts", "8");
        add_argument(b, prefix, "moe_router_topk", "2");
        add_argument(b, prefix, "expert_model_parallel_size", "4");
    }
    size_t length = strlen(b->dump);
    snprintf(b->dump + length, sizeof b->dump - length,
             "%s-------------------- end of arguments ---------------------\n", prefix);
}

/* Values of a table, not where they came from. */
static void assert_same_values(const struct knee_keys *keys, const void *a, const void *b, size_t i)
{
    for (size_t row = 0; row < keys->count; row++) {
        const struct knee_key *key = &keys->rows[row];
        bool same = true;
        if (key->kind == KNEE_KEY_NUMBER) {
            double x, y;
            memcpy(&x, (const char *)a + key->offset, sizeof x);
            memcpy(&y, (const char *)b + key->offset, sizeof y);
            same = x == y || (isnan(x) && isnan(y));
        } else if (key->kind == KNEE_KEY_CHOICE) {
            same = memcmp((const char *)a + key->offset, (const char *)b + key->offset,
                          sizeof(int)) == 0;
        }
        if (!same)
            fail_msg("job %zu: --%s of the log is not that of its launch script", i, key->name);
    }
}

TEST(twenty_dumps_are_what_their_scripts_say)
{
    static const char *const prefixes[] = {"", "[rank0]: ", "0: ", "2024-03-07 15:27:02,646 INFO ",
                                           "\x1b[34m[default0]:\x1b[0m "};
    for (size_t i = 0; i < 20; i++) {
        static struct both both;
        static char text[16384];
        struct knee_shape shape;
        struct knee_plan plan;
        struct knee_err err;
        make_job(i, prefixes[i % 5], &both);
        knee_shape_init(&shape);
        knee_plan_init(&plan);
        if (knee_megatron_read((struct knee_named_text){both.script, strlen(both.script), "script"},
                               &shape, &plan, NULL, &err))
            fail_msg("%s", err.what);
        snprintf(text, sizeof text, "noise\n%s%s", both.dump, LINE("1", "100.0"));
        OWNED(knee_train_log) log = log_of(text);
        assert_true(log.has_shape && log.has_plan);
        assert_near(log.workers, (double)(64 << i % 4), 0);
        assert_same_values(&knee_shape_keys, &shape, &log.shape, i);
        assert_same_values(&knee_plan_keys, &plan, &log.plan, i);
    }
}

TEST(mesh_of_torchtitan)
{
    OWNED(knee_train_log) log = log_of(
        "[rank0]:[titan] 2026-04-23 22:49:06,423 - root - INFO - Building device mesh with "
        "parallelism: pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=8, ep=1, etp=1\n"
        "[rank0]:[titan] 2026-04-23 22:49:10,371 - root - INFO - CUDA capacity: NVIDIA H100 80GB "
        "HBM3 with 79.10GiB memory\n"
        "[rank0]:[titan] 2026-04-23 22:49:10,373 - root - INFO - \x1b[34mModel llama3 8B "
        "\x1b[31msize: 8,030,261,248 total parameters\x1b[39m\n"
        "[rank0]:[titan] 2026-04-23 22:49:10,709 - root - INFO - Trainer is initialized with local "
        "batch size 3, global batch size 12, gradient accumulation steps 1, sequence length 8192, "
        "total steps 12500 (warmup 500)\n"
        "[rank0]:[titan] 2026-04-23 22:50:00,000 - root - INFO - step: 1  loss: 9.0  tps: 1,000  "
        "tflops: 4.0  mfu: 1.0%\n");
    assert_near(log.workers, 64, 0);
    assert_string_equal(log.workers_from, "mesh");
    assert_near(log.batch, 12, 0);
    assert_near(log.seq, 8192, 0);
    assert_says(&knee_plan_keys, &log.plan, "tp=8 pp=2", "the mesh");
    assert_true(log.has_shape && log.shape.model >= 0);
    assert_non_null(strstr(log.gpu, "H100"));
}

#define NANOTRON "08/31/2024 14:37:22 [INFO|DP=0|PP=1|TP=0]: "
TEST(configuration_of_nanotron)
{
    OWNED(knee_train_log) log = log_of(
        NANOTRON
        "Config:\n" NANOTRON "Config(general=GeneralArgs(project='debug',\n" NANOTRON
        "                           seed=42,\n" NANOTRON
        "       parallelism=ParallelismArgs(dp=4,\n" NANOTRON
        "                                   pp=2,\n" NANOTRON
        "                                   tp=8,\n" NANOTRON
        "                                   tp_mode=<TensorParallelLinearMode.REDUCE_SCATTER: "
        "2>,\n" NANOTRON
        "       model=ModelArgs(model_config=LlamaConfig(bos_token_id=1,\n" NANOTRON
        "                                                hidden_size=4096,\n" NANOTRON
        "                                                intermediate_size=11008,\n" NANOTRON
        "                                                num_attention_heads=32,\n" NANOTRON
        "                                                num_hidden_layers=30,\n" NANOTRON
        "                                                num_key_value_heads=8,\n" NANOTRON
        "                                                pretraining_tp=1,\n" NANOTRON
        "                                                vocab_size=32000),\n" NANOTRON
        "       tokens=TokensArgs(sequence_length=2048,\n" NANOTRON
        "                         micro_batch_size=2,\n" NANOTRON
        "                         batch_accumulation_per_replica=16,\n" NANOTRON
        "       optimizer=OptimizerArgs(zero_stage=1,\n" NANOTRON
        "       lighteval=None)\n" NANOTRON "Model Config:\n" NANOTRON
        "iteration: 10 / 100 | consumed_tokens: 1.31M | time_per_iteration_ms: 2.5K | "
        "tokens_per_sec: 105K | tokens_per_sec_per_gpu: 1.64K | global_batch_size: 262K | "
        "lm_loss: 8.1\n");
    assert_near(log.median_s, 2.5, 1e-9);
    assert_near(log.workers, 64, 0);
    assert_string_equal(log.workers_from, "mesh");
    assert_says(&knee_shape_keys, &log.shape,
                "hidden=4096 layers=30 ffn=11008 kv-heads=8 vocab=32000", "the configuration");
    assert_says(&knee_plan_keys, &log.plan, "tp=8 pp=2 micro-batch=2 shard=zero1", "the plan");
    assert_near(log.seq, 2048, 0);
    assert_near(log.batch, 128, 0); /* dp x micro-batch x accumulation */
    assert_true(log.has_shape && log.has_plan);
}

TEST(model_of_torchtitan)
{
    OWNED(knee_train_log) log =
        log_of("[rank0]:2025-02-13 11:33:12,140 - root - INFO - Building 2-D device mesh with "
               "['dp_shard', "
               "'tp'], [4, 2]\n"
               "[rank0]:2025-02-13 11:33:28,973 - root - INFO - Building mymodel 8B with "
               "ModelArgs(dim=4096, "
               "n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, multiple_of=1024, "
               "ffn_dim_multiplier=1.3, norm_eps=1e-05, max_seq_len=8192, norm_type='rmsnorm')\n"
               "[rank0]:2025-02-13 11:33:29,482 - root - INFO - Training starts at step 1, with "
               "local batch "
               "size 2, global batch size 8, sequence length 8192, total steps 100 (warmup 200)\n"
               "[rank0]:2025-02-13 11:33:35,026 - root - INFO - step:  1  loss: 12.2417  memory: "
               "42.08GiB(30.10%)  tps: 1,478  mfu: 8.65%\n");
    assert_near(log.workers, 8, 0);
    assert_string_equal(log.workers_from, "mesh");
    assert_says(&knee_plan_keys, &log.plan, "tp=2 shard=zero3", "the mesh");
    assert_says(&knee_shape_keys, &log.shape, "hidden=4096 layers=32 kv-heads=8", "the model");
    assert_near(log.batch, 8, 0);
    assert_near(log.micro_batch, 2, 0);
    assert_near(log.seq, 8192, 0);
}

/* Rates of three digits: 3.14M / 12.3K is 255.3. */
TEST(workers_of_rounded_rates)
{
    OWNED(knee_train_log) log = log_of(
        "iteration: 10 / 100 | elapsed_time_per_iteration_ms: 2.5K | tokens_per_sec: 3.14M | "
        "tokens_per_sec_per_gpu: 12.3K | global_batch_size: 512 | lm_loss: 8.1\n");
    assert_near(log.workers, 256, 0);
    assert_near(log.batch, 512, 0); /* sequences: a step has 7.85M tokens */
}

TEST(workers_from_many_places)
{
    static const struct {
        const char *line;
        double workers;
    } said[] = {
        {"[Master] World size: 16\n", 16},
        {"| distributed env init. MASTER_ADDR: 127.0.0.1, WORLD_SIZE: 8, RANK: 2\n", 8},
        {"[2025] [INFO] [launch.py:164:main] dist_world_size=8\n", 8},
        {"using world size: 64 and model-parallel size: 4\n", 64},
        {"python -m paddle.distributed.launch --gpus=0,1,2,3 train.py\n", 4},
        {"torchrun --nnodes=4 --nproc_per_node=8 train.py\n", 32},
        {"torchrun --nnodes 2 --nproc-per-node 4 train.py\n", 8},
        {"deepspeed --num_gpus 4 --num_nodes 2 train.py\n", 8},
        {"accelerate launch --num_processes 16 train.py\n", 16},
        {"WORLD_SIZE=32 RANK=0\ntensor group: world_size=4\n", 32},
        {"Num_devices: 4, shape (1, 1, 4)\n", 4},
        {"I1209 10:37:15 nccl_context.cc:74] init nccl context nranks: 4 local rank: 0\n", 4},
        {"+ main_ppo trainer.n_gpus_per_node=8 trainer.nnodes=2 data.seed=1\n", 16},
        {"Namespace(config_file='a.yaml', num_gpus=4, num_machines=2, machine_rank=0)\n", 8},
        {"Distributed world size: 8\n", 8},
        {"Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/16\n", 16},
        {"All distributed processes registered. Starting with 32 processes\n", 32},
        {"INFO - Building 3-D device mesh with ['pp', 'dp_replicate', 'tp'], [2, 2, 4]\n", 16},
        {"INFO - Building 1-D device mesh with ('dp',), [4]\n", 4},
        {"[20251202 06:56:28][rank-7/8][INFO ] : iteration 1/ 9 | elapsed time per iteration (ms): "
         "100.0 |\n",
         8},
        {"  Instantaneous batch size per device = 4\n  Total train batch size (w. parallel, "
         "distributed & accumulation) = 64\n  Gradient Accumulation steps = 2\n",
         8},
        {"launch -- data parallel size: 4, pipeline parallel size: 2, tensor parallel size: 2\n",
         16},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", said[i].line,
                 " iteration 1/ 9 | elapsed time per iteration (ms): 100.0 |\n");
        OWNED(knee_train_log) log = log_of(text);
        if (log.workers != said[i].workers)
            fail_msg("%s: %g workers", said[i].line, log.workers);
    }
}
