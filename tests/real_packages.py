#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/real_packages.py [BUILD]: knee inside the real torch.profiler, transformers.Trainer and Lightning Trainer.

tests/trainers.py tries the same calls with stand-ins; this script needs the packages. Each part trains a tiny model in
processes of its own: one rank on a GPU where there is one, and two ranks over gloo on the CPU. It then checks the
files, the lines printed on rank 0, and the numbers that the trainer's loggers got.
Exit status: 0 every part passed, 1 a part failed, 77 no part failed and at least one was skipped; the reason is printed.
"""
import csv, json, math, os, socket, subprocess, sys, tempfile, warnings
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS, AT_STEP, RECORDED = 14, 6, 3


# ---- The parts: each runs in every rank, in a process of its own ----


def model_and_batch():
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.GELU())]
    return torch.nn.Sequential(*layers).to(device), torch.randn(64, 512, device=device), device


def part_torch(folder):
    """The snippet of docs/guide/record.md."""
    import torch, torch.distributed as dist, knee

    many = int(os.environ["WORLD_SIZE"]) > 1
    model, batch, device = model_and_batch()
    if many:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1),
                                on_trace_ready=knee.torch.trace_handler(str(folder / "runs"))) as prof:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            prof.step()
    if many:
        dist.destroy_process_group()
    return {"steps": STEPS}


def part_transformers(folder):
    import torch, transformers, knee
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 512

        def __getitem__(self, i):
            words = torch.arange(i, i + 64) % 128
            return {"input_ids": words, "labels": words}

    class Heard(TrainerCallback):
        """What a logger of the trainer gets."""

        def __init__(self):
            self.logs = []

        def on_log(self, args, state, control, logs=None, **_):
            self.logs.append(dict(logs or {}))

    boards = ["tensorboard"] if find_spec("tensorboard") else []
    given = dict(output_dir=str(folder / "out"), max_steps=STEPS, per_device_train_batch_size=4, logging_steps=5, save_strategy="no",
                 disable_tqdm=True, report_to=boards or "none", use_cpu=not torch.cuda.is_available())
    if int(os.environ["WORLD_SIZE"]) > 1:
        given["ddp_backend"] = "gloo"

    def train(log):
        heard = Heard()
        callback = knee.hf.Callback(str(folder / ("runs" if log is None else "again")), at_step=AT_STEP, steps=RECORDED, limit_s=60)
        shape = GPT2Config(vocab_size=128, n_positions=64, n_embd=128, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
        trainer = Trainer(model=GPT2LMHeadModel(shape), args=TrainingArguments(**given), train_dataset=Data(), callbacks=[callback, heard])
        if log:
            callback._log = trainer.log  # knee.hf.Callback(..., log=trainer.log), made before there is a trainer
        trainer.train()
        return trainer, callback, heard

    trainer, callback, _ = train(None)
    _, _, heard = train("trainer")
    return {"steps": trainer.state.global_step, "logged": [row for row in trainer.state.log_history if "knee/step_s" in row],
            "by_trainer_log": [row for row in heard.logs if "knee/step_s" in row], "boards": boards,
            "lines": callback.answer.lines if callback.answer else [], "version": transformers.__version__}


def part_lightning(folder, name="lightning.pytorch"):
    import importlib
    import torch, knee

    lightning = importlib.import_module(name)
    CSVLogger = importlib.import_module(name + ".loggers").CSVLogger

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))

        def training_step(self, batch, _):
            loss = self.model(batch[0]).square().mean()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    ranks = int(os.environ["WORLD_SIZE"])
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(2048, 256)), batch_size=32)
    callback = knee.lightning.Callback(str(folder / "runs"), at_step=AT_STEP, steps=RECORDED, limit_s=60)
    given = {"strategy": "ddp", "devices": ranks} if ranks > 1 else {"devices": 1}
    trainer = lightning.Trainer(max_steps=STEPS, callbacks=[callback], logger=CSVLogger(str(folder / "csv")), enable_progress_bar=False,
                                enable_checkpointing=False, log_every_n_steps=5, accelerator="gpu" if torch.cuda.is_available() else "cpu", **given)
    trainer.fit(Module(), data)
    rows = [row for file in (folder / "csv").rglob("metrics.csv") for row in csv.DictReader(file.open())]
    numbers = [{k: float(v) for k, v in row.items() if k.startswith("knee/") and v} for row in rows]
    return {"steps": trainer.global_step, "logged": [row for row in numbers if row],
            "lines": callback.answer.lines if callback.answer else [], "version": lightning.__version__}


# Lightning has two names; either will do, and both are tried where both are installed.
PARTS = {"torch": part_torch, "transformers": part_transformers, "lightning": part_lightning,
         "pytorch_lightning": lambda folder: part_lightning(folder, "pytorch_lightning")}
EITHER = ("lightning", "pytorch_lightning")


# ---- The parent: starts the ranks and checks what came of them ----


def run_ranks(part, ranks, folder, gpu):
    """-> what each rank found, and what each printed to stderr"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks),
           "LOCAL_WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "2", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TENSORBOARD_LOGGING_DIR": str(folder / "out" / "board")}
    env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] if gpu else ""
    if ranks == 1:  # a plain process, as a user without a launcher has it
        env.pop("MASTER_ADDR"), env.pop("MASTER_PORT")
    jobs = []
    for rank in range(ranks):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {}
        jobs.append(subprocess.Popen([sys.executable, __file__, "--part", part, str(folder), str(folder / f"found{rank}.json")],
                                     env={**env, **place}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    try:
        said = [job.communicate(timeout=300)[1] for job in jobs]
    finally:
        for job in jobs:
            if job.poll() is None:
                job.kill()
    for rank, job in enumerate(jobs):
        assert job.returncode == 0, f"rank {rank} ended with {job.returncode}:\n{said[rank][-3000:]}"
    return [json.loads((folder / f"found{rank}.json").read_text()) for rank in range(ranks)], said


def check_numbers(rows, what):
    assert len(rows) == 1, f"{what}: logged {len(rows)} times, not once"
    numbers = {k: v for k, v in rows[0].items() if k.startswith("knee/")}
    assert 5 <= len(numbers) <= 20 and all(math.isfinite(v) for v in numbers.values()), f"{what}: {numbers}"
    assert 0 < numbers["knee/step_s"] < 60, f"{what}: a step of {numbers['knee/step_s']} s"
    return numbers


def check(part, ranks, gpu):
    import knee, torch

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found, said = run_ranks(part, ranks, folder, gpu)
        files = sorted(file.name for file in (folder / "runs").iterdir())
        assert files == [f"rank{rank}.json.gz" for rank in range(ranks)], files
        try:
            answer = knee.trace(folder / "runs")
        except knee.KneeError as error:  # torch 1 does not record gloo: rank 0 prints that, and training goes on
            assert int(torch.__version__.split(".")[0]) < 2 and str(error) in said[0], f"{error}\n{said[0][-2000:]}"
            print(f"  {error}")
            return torch.__version__
        assert answer.lines and all(line in said[0] for line in answer.lines), f"not printed on rank 0: {answer.lines}\n{said[0][-2000:]}"
        assert not any(answer.lines[0] in text for text in said[1:]), "another rank printed it too"
        assert all(row["steps"] == STEPS for row in found), [row["steps"] for row in found]
        if "logged" in found[0]:
            assert found[0]["lines"] == answer.lines
            numbers = check_numbers(found[0]["logged"], part)
            assert math.isclose(numbers["knee/step_s"], answer.step_s, rel_tol=1e-6), (numbers, answer.step_s)
            if part == "transformers":
                assert not any(row["logged"] for row in found[1:]), "another rank logged it too"
                check_numbers(found[0]["by_trainer_log"], "log=trainer.log")
            if found[0].get("boards"):
                check_board(folder / "out")
        print(f"  {answer.step_s * 1e3:.3g} ms a step: {answer.lines[0]}")
        return found[0].get("version") or torch.__version__


def check_board(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    names = set()
    for file in {event.parent for event in folder.rglob("events.out.tfevents.*")}:
        board = EventAccumulator(str(file))
        board.Reload()
        names |= set(board.Tags()["scalars"])
    assert "knee/step_s" in names, f"TensorBoard has {sorted(names)}"


def main(build):
    os.environ.setdefault("KNEE_LIBRARY", str(build / "libknee.so"))
    sys.path.insert(0, str(ROOT / "python"))
    if not Path(os.environ["KNEE_LIBRARY"]).exists():
        print(f"{os.environ['KNEE_LIBRARY']} is missing: make -s -j16 all")
        return 77
    if not find_spec("torch"):
        print("torch is missing: nothing was tried")
        return 77
    import torch

    gpu, failed, skipped = torch.cuda.is_available(), [], []
    there = {part for part in PARTS if find_spec(part)}
    for part in PARTS:
        if part not in there:
            if part not in EITHER or not there & set(EITHER):
                skipped.append(f"{part}: the package is missing")
            continue
        for ranks, on_gpu in ((1, True), (2, False)):
            name = f"{part}, {ranks} rank{'s' * (ranks > 1)} on {'the GPU' if on_gpu else 'the CPU'}"
            if on_gpu and not gpu:
                skipped.append(f"{name}: there is no GPU")
                continue
            try:
                print(f"passed: {name}, version {check(part, ranks, on_gpu)}", flush=True)
            except Exception as error:
                failed.append(name)
                print(f"FAILED: {name}: {type(error).__name__}: {error}", flush=True)
    for reason in skipped:
        print(f"skipped: {reason}")
    return 1 if failed else 77 if skipped else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        warnings.filterwarnings("ignore")
        result = PARTS[sys.argv[2]](Path(sys.argv[3]))
        Path(sys.argv[4]).write_text(json.dumps(result))
    else:
        sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()))
