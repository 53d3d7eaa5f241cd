#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a wheel with python/knee, libknee and the program inside: tools/wheel.py LIBRARY PROGRAM FOLDER [STUBS.pyi].
A wheel is a zip with three files about itself; nothing has to be fetched or compiled. pip puts the program into bin/, so
that `pipx install` gives `knee`. The tag names the processor and the oldest glibc, both read from the library. The same
tree gives the same bytes: names in order, one date for all (SOURCE_DATE_EPOCH, or 1980)."""
import base64, hashlib, os, re, struct, sys, time, zipfile
from pathlib import Path

root = Path(__file__).resolve().parent.parent
library, program, folder = map(Path, sys.argv[1:4])
stubs = Path(sys.argv[4]) if len(sys.argv) > 4 else None


def machine(data):
    names = {62: "x86_64", 183: "aarch64"}
    return names[struct.unpack_from("<H", data, 18)[0]]


def oldest_glibc(data):
    """The newest version of a symbol that it asks the C library for, and no other library."""
    found = [tuple(map(int, v.decode().split("."))) for v in re.findall(rb"GLIBC_(\d+\.\d+(?:\.\d+)?)\0", data)]
    return max([v[:2] for v in found] + [(2, 17)])  # the oldest that there is a name for


header = (root / "include/knee.h").read_text()
version = ".".join(re.search(rf"KNEE_VERSION_{part}\s+(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
data = library.read_bytes()
tag = "py3-none-manylinux_{}_{}_{}".format(*oldest_glibc(data), machine(data))
info = f"knee-{version}.dist-info"
stamp = max(time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 0)))[:6], (1980, 1, 1, 0, 0, 0))

files = {f"knee/{p.name}": p.read_bytes() for p in sorted((root / "python/knee").iterdir()) if p.suffix == ".py" or p.name == "py.typed"}
if stubs:
    files["knee/__init__.pyi"] = stubs.read_bytes()
files["knee/libknee.so"] = data
if program.exists():
    assert machine(program.read_bytes()) == machine(data), f"{program} is of another processor than {library}"
    files[f"knee-{version}.data/scripts/knee"] = program.read_bytes()
else:
    print(f"{program} is not there: the wheel has no program (packaging/static makes it)")
files[f"{info}/METADATA"] = (
    f"Metadata-Version: 2.1\nName: knee\nVersion: {version}\n"
    "Summary: Find out why distributed training does not scale, and what to change\n"
    "License: MIT\nRequires-Python: >=3.9\n"
).encode()
files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: knee\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
record = "".join(
    f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
    for name, data in files.items()
)
files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

folder.mkdir(parents=True, exist_ok=True)
wheel = folder / f"knee-{version}-{tag}.whl"
part = wheel.with_suffix(".part")
with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, content in files.items():
        entry = zipfile.ZipInfo(name, stamp)
        entry.external_attr = (0o100755 if name.endswith((".so", "/knee")) else 0o100644) << 16  # pip asks for a regular file
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
part.replace(wheel)
print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB")
