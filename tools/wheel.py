#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a wheel with python/knee and libknee inside: tools/wheel.py LIBRARY FOLDER.
A wheel is a zip with three files about itself; nothing has to be fetched or compiled. The same tree gives the same
bytes: names in order, one date for all (SOURCE_DATE_EPOCH, or 1980)."""
import base64, hashlib, os, platform, re, sys, time, zipfile
from pathlib import Path

root = Path(__file__).resolve().parent.parent
library, folder = Path(sys.argv[1]), Path(sys.argv[2])
header = (root / "include/knee.h").read_text()
version = ".".join(re.search(rf"KNEE_VERSION_{part}\s+(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
tag = f"py3-none-linux_{platform.machine()}"
info = f"knee-{version}.dist-info"
stamp = max(time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 0)))[:6], (1980, 1, 1, 0, 0, 0))

files = {f"knee/{p.name}": p.read_bytes() for p in sorted((root / "python/knee").iterdir()) if p.suffix == ".py" or p.name == "py.typed"}
files["knee/libknee.so"] = library.read_bytes()
files[f"{info}/METADATA"] = (
    f"Metadata-Version: 2.1\nName: knee\nVersion: {version}\n"
    "Summary: Where the next worker of a training job stops paying, why, and what to change\n"
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
    for name, data in files.items():
        entry = zipfile.ZipInfo(name, stamp)
        entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
part.replace(wheel)
print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB")
