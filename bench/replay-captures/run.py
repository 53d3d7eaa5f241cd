# SPDX-License-Identifier: MIT
"""Starts the ranks of one group of job.py on one GPU and packs what they wrote into one tar file.

Usage: run.py GROUP RANKS FILE.tar [SECONDS]. Every rank gets a host name of its own, so that NCCL
joins them by sockets over the loopback interface: several ranks share one GPU.
"""
import os, socket, subprocess, sys, tarfile, tempfile, time

group, ranks, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
limit = float(sys.argv[4]) if len(sys.argv) > 4 else 170
with socket.socket() as s:
    s.bind(('127.0.0.1', 0))
    port = s.getsockname()[1]
out = tempfile.mkdtemp()
job = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'job.py')
running = []
for r in range(ranks):
    env = dict(os.environ, RANK=str(r), WORLD_SIZE=str(ranks), MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port),
               OMP_NUM_THREADS='1', NCCL_HOSTID=f'host{r}', NCCL_SOCKET_IFNAME='lo', NCCL_IB_DISABLE='1')
    err = open(f'{out}/rank{r}.err', 'w')
    running.append(subprocess.Popen([sys.executable, job, '--group', group, '--out', out], env=env, stderr=err))
start = time.time()
for process in running:
    try:
        process.wait(max(1, limit - (time.time() - start)))
    except subprocess.TimeoutExpired:
        process.kill()
        print('stopped after', limit, 's; what is done is kept')
if any(process.returncode for process in running):
    print(open(f'{out}/rank0.err').read()[-1500:])
with tarfile.open(target, 'w') as tar:
    for name in sorted(os.listdir(out)):
        if name.endswith(('.json.gz', '.jsonl')):
            tar.add(os.path.join(out, name), name)
