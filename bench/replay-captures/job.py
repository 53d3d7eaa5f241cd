# SPDX-License-Identifier: MIT
"""One rank of a small transformer, trained in variants of one job, one after the other in one process.

For every variant: the step without the profiler (median), then a Kineto trace of three steps. The
variants differ from the base in exactly one thing, so that the base's trace with that change
replayed can be held against the variant's measured step. Started by run.py.
"""
import argparse, contextlib, json, os, time, traceback
import torch, torch.distributed as dist
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

# name: what differs from the base of its group. Batches are per rank; bucket in MB; sleeps in seconds.
BASE = dict(batch=24, bucket=25, accumulate=1, hook=None, sleep=0, extra_gemms=0, item_sleep=0, workers=0, who=-1,
            fsdp=False, reshard=True, prefetch=0, bf16=False, quiet=False)
GROUPS = {
    'ddp': dict(w_base={}, w_bf16=dict(hook='bf16'), w_fp16=dict(hook='fp16'), w_bucket5=dict(bucket=5),
                w_bucket100=dict(bucket=100), w_accum2=dict(accumulate=2), w_accum4=dict(accumulate=4),
                w_b12=dict(batch=12), w_b48=dict(batch=48), w_straggler=dict(sleep=.03, who=1),
                w_slowgpu=dict(extra_gemms=40, who=1), w_powersgd4=dict(hook='powersgd')),
    'loader': dict(l_base={}, l_slow=dict(item_sleep=.004), l_ahead=dict(item_sleep=.004, workers=2),
                   l_slow1=dict(item_sleep=.004, who=1)),
    'fsdp': dict(f_base=dict(fsdp=True), f_keep=dict(fsdp=True, reshard=False), f_bf16=dict(fsdp=True, bf16=True),
                 f_prefetch2=dict(fsdp=True, prefetch=2), f_b48=dict(fsdp=True, batch=48),
                 f_straggler=dict(fsdp=True, sleep=.03, who=1)),
    # micro-batches of FSDP: gradients exchanged once per step, or after every micro-batch
    'micro': dict(m_base=dict(fsdp=True), m_accum2=dict(fsdp=True, accumulate=2, quiet=True),
                  m_accum4=dict(fsdp=True, accumulate=4, quiet=True), m_every2=dict(fsdp=True, accumulate=2)),
    'ranks': dict(k_base={}, k_bf16=dict(hook='bf16')),
}


class Block(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.heads = max(1, hidden // 64)
        self.before, self.after = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        b, t, h = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, self.heads, h // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, h))
        return x + self.down(nn.functional.gelu(self.up(self.after(x))))


class Net(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.blocks, self.head = nn.Sequential(*[Block(hidden) for _ in range(layers)]), nn.Linear(hidden, 256)

    def forward(self, x):
        return self.head(self.blocks(x))


class Items(torch.utils.data.Dataset):
    def __init__(self, o, count, sleep):
        self.o, self.count, self.sleep = o, count, sleep

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.sleep:
            time.sleep(self.sleep)
        return torch.randn(self.o.seq, self.o.hidden), torch.randint(0, 256, (self.o.seq,))


def wrap(net, v):
    if v['fsdp']:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        kw = dict(reshard_after_forward=v['reshard'])
        if v['bf16']:
            kw['mp_policy'] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
        for block in net.blocks:
            fully_shard(block, **kw)
        fully_shard(net, **kw)
        blocks = list(net.blocks)
        for i in range(len(blocks)) if v['prefetch'] else []:
            blocks[i].set_modules_to_forward_prefetch(blocks[i + 1:i + 1 + v['prefetch']])
            blocks[i].set_modules_to_backward_prefetch(blocks[max(0, i - v['prefetch']):i][::-1])
        return net
    model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=v['bucket'], device_ids=[0])
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    if v['hook'] in ('bf16', 'fp16'):
        model.register_comm_hook(None, getattr(default_hooks, v['hook'] + '_compress_hook'))
    if v['hook'] == 'powersgd':
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return model


def run_variant(o, name, v, rank, ranks):
    torch.manual_seed(0)
    dev, mine = torch.device('cuda:0'), v['who'] in (-1, rank)
    model = wrap(Net(o.hidden, o.layers).to(dev), v)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    one = next(iter(torch.utils.data.DataLoader(Items(o, v['batch'], 0), batch_size=v['batch'])))
    batches = iter(torch.utils.data.DataLoader(Items(o, 64 * v['batch'], v['item_sleep'] if mine else 0),
                                               batch_size=v['batch'], num_workers=v['workers']))

    def loss_of(batch):
        x, y = (t.to(dev) for t in batch)
        return nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())

    def step():
        if v['quiet']:
            model.set_requires_gradient_sync(False)
        for _ in range(v['accumulate'] - 1):
            with model.no_sync() if hasattr(model, 'no_sync') else contextlib.nullcontext():
                loss_of(one).backward()
        if v['quiet']:
            model.set_requires_gradient_sync(True)
        loss = loss_of(next(batches) if v['item_sleep'] else one)
        if v['sleep'] and mine:
            time.sleep(v['sleep'])
        if v['extra_gemms'] and mine:
            w = torch.randn(4096, 4096, device=dev)
            for _ in range(v['extra_gemms']):
                w = (w @ w).clamp_(-1, 1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    times = []
    for _ in range(o.steps):
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
                 schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for _ in range(5):
            step()
            torch.cuda.synchronize()
            prof.step()
    prof.export_chrome_trace(f'{o.out}/{name}_r{rank}of{ranks}.json.gz')
    row = dict(name=name, rank=rank, ranks=ranks, step_ms=1e3 * sorted(times)[len(times) // 2],
               least_ms=1e3 * min(times), most_ms=1e3 * max(times), **v)
    with open(f'{o.out}/results_r{rank}of{ranks}.jsonl', 'a') as f:
        f.write(json.dumps(row) + '\n')
    if rank == 0:
        print(f"{name:14s} ranks {ranks} step {row['step_ms']:8.2f} ms", flush=True)
    dist.barrier()


if __name__ == '__main__':
    p = argparse.ArgumentParser()
    p.add_argument('--group', required=True)
    p.add_argument('--out', required=True)
    for key, value in dict(hidden=1024, layers=6, seq=512, steps=9).items():
        p.add_argument('--' + key, type=int, default=value)
    o = p.parse_args()
    rank, ranks = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    torch.set_num_threads(1)
    torch.cuda.set_device(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    dist.init_process_group('nccl', rank=rank, world_size=ranks)
    for name, change in GROUPS[o.group].items():
        try:
            run_variant(o, name, {**BASE, **change}, rank, ranks)
        except Exception:
            traceback.print_exc()
            os._exit(1)  # the others cannot go on without this rank
    dist.destroy_process_group()
