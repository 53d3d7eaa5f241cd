#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process of a PyTorch job as Kineto's trigger sees it: kineto.py PID TRACE [SECONDS]. Asks until it is told to record, waits for
the moment that it was told, and puts TRACE in the place it was told. Prints the start in ms."""
import os
import shutil
import socket
import struct
import sys
import time

pid, trace, limit = int(sys.argv[1]), sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 60
folder = os.environ.get("KINETO_IPC_SOCKET_DIR")
name = lambda n: f"{folder}/{n}" if folder else f"\0{n}\0"
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(name(f"dynoconfigclient{pid}"))
s.settimeout(10)  # who is there answers; where nobody is, sending fails at once
print("ready", file=sys.stderr, flush=True)


def ask(kind, payload):
    s.sendto(struct.pack("=Q32s", len(payload), kind) + payload, name("dynolog"))
    data = s.recv(65536)
    size, kind_back = struct.unpack("=Q32s", data[:40])
    assert kind_back.rstrip(b"\0") == kind and size == len(data) - 40, data
    return data[40:]


end = time.time() + limit
config = b""
registered = False
while not config:
    if time.time() > end:
        sys.exit("nobody told it to record")
    try:
        if not registered:
            assert ask(b"ctxt", struct.pack("=iiq", 0, pid, 0)) == struct.pack("=i", 1)
            registered = True
        config = ask(b"req", struct.pack("=iiqiii", 3, 3, 0, pid, 1, 2))
    except OSError:
        pass
    time.sleep(0.1)
said = dict(line.split("=", 1) for line in config.decode().split())
assert ask(b"req", struct.pack("=iiqi", 3, 1, 0, pid)) == b""  # told once
start = int(said["PROFILE_START_TIME"])
print(start, flush=True)
time.sleep(max(0, start / 1e3 + int(said["ACTIVITIES_DURATION_MSECS"]) / 1e3 - time.time()))
path = said["ACTIVITIES_LOG_FILE"][:-5] + f"_{pid}.json"
shutil.copy(trace, path)
