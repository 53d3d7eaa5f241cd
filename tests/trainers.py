# SPDX-License-Identifier: MIT
"""Run by tests/python: knee.torch, knee.hf and knee.lightning with stand-ins that have the published signatures of
torch.profiler (schedule, step, on_trace_ready, export_chrome_trace), transformers.TrainerCallback and
lightning.pytorch.Callback; then with the real torch where there is one."""
import contextlib, io, os, shutil, subprocess, sys, tempfile, threading, time, types
from pathlib import Path

import knee.hf, knee.lightning, knee.torch

sources = [root / f"examples/straggler/rank{r}.json.gz" for r in (0, 1)]


class Recorded:
    """What torch hands to on_trace_ready."""

    def __init__(self, rank, fails=False):
        self.rank, self.fails = rank, fails

    def export_chrome_trace(self, path):
        if self.fails:
            raise OSError("disk full")
        shutil.copy(sources[self.rank], path)


def heard(act):
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        act()
    return out.getvalue()


with tempfile.TemporaryDirectory() as folder:
    handlers = [knee.torch.trace_handler(folder, limit_s=20, rank=r, world_size=2) for r in (0, 1)]

    def both():
        handlers[0](Recorded(0))  # rank 0 comes first and waits in the background
        assert len(list(Path(folder).glob("rank*.json.gz"))) == 1
        threading.Timer(0.3, handlers[1], [Recorded(1)]).start()
        handlers[0].wait()

    said = heard(both)
    assert said.strip().splitlines() == knee.trace(folder).lines, said
    assert not list(Path(folder).glob("*.part*")), "half a trace was left"

with tempfile.TemporaryDirectory() as folder:  # a rank that never writes: the limit, and what there is
    alone = knee.torch.trace_handler(folder, limit_s=0.4, rank=0, world_size=2)
    start = time.monotonic()
    said = heard(lambda: (alone(Recorded(0)), alone.wait(30)))
    assert time.monotonic() - start < 20 and "1 of 2" in said and len(said.strip().splitlines()) >= 2, said
    stale = knee.torch.trace_handler(folder, limit_s=0.2, rank=0, world_size=1)
    stale._began += 3600  # a file of yesterday's job is not this job's
    try:
        stale.answer()
        raise AssertionError("an old file was taken")
    except knee.KneeError:
        pass

said = heard(lambda: knee.torch.trace_handler("/dev/null/no", rank=0, world_size=1)(Recorded(0)))
assert "not recorded" in said, "an error was raised into training, or swallowed"
said = heard(lambda: knee.torch.trace_handler(tempfile.mkdtemp(), rank=1, world_size=2)(Recorded(1, fails=True)))
assert "disk full" in said

# A stand-in for torch, with the calls that the callbacks make.
made = []


class FakeProfile:
    def __init__(self, activities=None, schedule=None, on_trace_ready=None, record_shapes=False):
        self.schedule, self.ready, self.count = schedule, on_trace_ready, 0
        made.append(self)

    def __enter__(self):
        return self

    def step(self):
        self.count += 1
        if self.count == self.schedule["warmup"] + self.schedule["active"]:
            self.ready(Recorded(0))

    def __exit__(self, *_):
        pass


fake = types.ModuleType("torch")
fake.cuda = types.SimpleNamespace(is_available=lambda: False)
fake.distributed = types.SimpleNamespace(is_available=lambda: False, is_initialized=lambda: False)
fake.profiler = types.ModuleType("torch.profiler")
fake.profiler.ProfilerActivity = types.SimpleNamespace(CPU=0, CUDA=1)
fake.profiler.profile, fake.profiler.schedule = FakeProfile, lambda **keys: keys
before = {name: sys.modules.get(name) for name in ("torch", "torch.profiler", "wandb", "mlflow")}
sys.modules.update({"torch": fake, "torch.profiler": fake.profiler})
logged = {}
sys.modules["wandb"] = types.SimpleNamespace(run=object(), log=lambda numbers: logged.update(wandb=numbers))
sys.modules["mlflow"] = types.SimpleNamespace(active_run=lambda: object(), log_metrics=lambda numbers, step: logged.update(mlflow=numbers))
try:
    with tempfile.TemporaryDirectory() as folder:
        callback = knee.hf.Callback(folder, at_step=5, steps=2)
        args, state = types.SimpleNamespace(report_to=["wandb", "mlflow", "none"], logging_dir=folder), types.SimpleNamespace(global_step=0, log_history=[])

        def train():
            for _ in range(10):
                callback.on_step_begin(args, state, None, model=None)
                state.global_step += 1
                callback.on_step_end(args, state, None, model=None)
            callback.on_train_end(args, state, None)

        said = heard(train)
        assert made[-1].schedule == {"wait": 0, "warmup": 2, "active": 2, "repeat": 1} and made[-1].count == 4
        assert callback.answer and 1 <= len(logged["wandb"]) <= 20 and logged["wandb"]["train/global_step"] == state.global_step and set(logged) == {"wandb", "mlflow"} and len(state.log_history) == 1, said
    with tempfile.TemporaryDirectory() as folder:
        got = []
        logger = types.SimpleNamespace(log_metrics=lambda metrics, step: got.append((metrics, step)))
        trainer, callback = types.SimpleNamespace(loggers=[logger], global_step=9), knee.lightning.Callback(folder, at_step=1, steps=2)

        def fit():
            for batch in range(6):
                callback.on_train_batch_start(trainer, None, None, batch)
                callback.on_train_batch_end(trainer, None, None, None, batch)
            callback.on_train_end(trainer, None)

        heard(fit)
        assert len(got) == 1 and got[0][1] == 9 and len(got[0][0]) <= 20
finally:
    for name, module in before.items():
        sys.modules.pop(name, None) if module is None else sys.modules.__setitem__(name, module)

# The real torch, two ranks over gloo: the snippet of the documents, as it stands there.
job = '''
import sys, torch, torch.distributed as dist, knee
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1),
                            on_trace_ready=knee.torch.trace_handler(sys.argv[1])) as prof:
    for _ in range(7):
        optimizer.zero_grad(); model(torch.randn(64, 512)).sum().backward(); optimizer.step()
        prof.step()
dist.destroy_process_group()
'''
for python in (sys.executable, "/usr/bin/python3"):
    if subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_available()"], capture_output=True).returncode == 0:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "job.py").write_text(job)
            env = {**os.environ, "PYTHONPATH": str(root / "python"), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000), "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
            ranks = [subprocess.Popen([python, f"{folder}/job.py", f"{folder}/runs"], env={**env, "RANK": str(r)}, stderr=subprocess.PIPE, text=True) for r in (0, 1)]
            said = [rank.communicate(timeout=240)[1] for rank in ranks]
            assert all(rank.returncode == 0 for rank in ranks), said
            assert len(list(Path(folder, "runs").glob("rank?.json.gz"))) == 2
            try:
                line = knee.trace(f"{folder}/runs").lines[0]
            except knee.KneeError as error:  # an old torch does not record gloo: then rank 0 says so, and training ends well
                line = str(error)
            assert line in said[0] and line not in said[1], said
            print("torch: two ranks recorded by trace_handler, and rank 0 told the answer")
        break
else:
    print("torch is missing: trace_handler tried with a stand-in only")
