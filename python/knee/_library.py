# SPDX-License-Identifier: MIT
"""libknee through ctypes: one question, one answer. Nothing is compiled."""
from __future__ import annotations

import ctypes
import ctypes.util
import gzip
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterable, List, Optional, Tuple, TypeVar, Union

from ._errors import InputError, KneeError, error_of

PathLike = Union[str, "os.PathLike[str]"]


class _Err(ctypes.Structure):
    _fields_ = [
        ("status", ctypes.c_int),
        ("where", ctypes.c_char * 128),
        ("what", ctypes.c_char * 256),
        ("hint", ctypes.c_char * 256),
    ]

    def error(self, status: int) -> KneeError:
        """A gate may fail without words: the answer has them."""
        return error_of(status, *(t.decode("utf-8", "replace") for t in (self.where, self.what, self.hint)))


class _Text(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
        ("failed", ctypes.c_bool),
        ("alloc", ctypes.c_void_p),
    ]


_OK, _GATE, _INPUT = 0, 1, 3  # knee_status
_FORMATS = {"text": 0, "json": 1, "csv": 2, "markdown": 3}  # enum knee_format
_p, _s, _n, _i = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
_WATCH = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_double)
_SIGNATURES = {
    "knee_version": (_s, []),
    "knee_ask_begin": (_p, [_p]),
    "knee_ask_end": (None, [_p]),
    "knee_ask": (_i, [_p, _s, _s, _i, ctypes.POINTER(_Text), ctypes.POINTER(_Err)]),
    "knee_ask_command": (_s, [_n]),
    "knee_ask_watch": (None, [_p, _WATCH, _p]),
    "knee_attach": (_i, [_p, _s, _s, _n, ctypes.POINTER(_Err)]),
    "knee_push_begin": (_i, [_p, _s, ctypes.POINTER(_Err)]),
    "knee_push_room": (_p, [_p, ctypes.POINTER(_n)]),
    "knee_push_filled": (None, [_p, _n]),
    "knee_push_end": (_i, [_p, ctypes.POINTER(_Err)]),
    "knee_push_again": (ctypes.c_bool, [_p]),
    "knee_pull": (ctypes.POINTER(_Text), [_p, _s]),
    "knee_text_release": (None, [ctypes.POINTER(_Text)]),
}


def _candidates() -> Iterable[str]:
    """Said, beside this file (a wheel), beside the sources, or where the system looks."""
    if os.environ.get("KNEE_LIBRARY"):
        yield os.environ["KNEE_LIBRARY"]
        return
    here = Path(__file__).resolve().parent
    yield str(here / "libknee.so")
    yield str(here.parent.parent / "build" / "libknee.so")
    yield ctypes.util.find_library("knee") or "libknee.so.0"


def _load() -> ctypes.CDLL:
    for name in _candidates():
        if "/" in name and not os.path.exists(name):
            continue
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            raise ImportError(f"libknee cannot be loaded: {error}; set KNEE_LIBRARY to its path") from None
        for symbol, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, symbol)
            function.restype, function.argtypes = result, arguments
        return library
    raise ImportError("libknee.so not found; install knee, build it with make, or set KNEE_LIBRARY to its path")


_library = _load()


def version() -> str:
    return str(_library.knee_version().decode())


def commands() -> List[str]:
    """What can be asked."""
    names: List[str] = []
    while True:
        name = _library.knee_ask_command(len(names))
        if name is None:
            return names
        names.append(name.decode())


_T = TypeVar("_T")


def interruptible(work: Callable[[], _T], stop: Callable[[], None], after: Callable[[], None]) -> _T:
    """Runs `work` so that Ctrl-C ends the wait at once. A call into C keeps Python from its signals, so in the main
    thread it runs in another one; when it is abandoned, stop() asks it to end and `after` cleans up when it has."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done, result, lock, left = threading.Event(), [], threading.Lock(), [False]  # type: Any, List[Any], Any, List[bool]

    def run() -> None:
        try:
            result.append((work(), None))
        except BaseException as error:  # raised again in the caller
            result.append((None, error))
        with lock:
            done.set()
            abandoned = left[0]
        if abandoned:
            after()

    threading.Thread(target=run, daemon=True, name="knee").start()
    try:
        done.wait()
    except BaseException:  # KeyboardInterrupt
        stop()
        with lock:
            finished = done.is_set()
            left[0] = True
        if finished:
            after()
        raise
    value, error = result[0]
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _open(path: Path) -> BinaryIO:
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else open(path, "rb")  # type: ignore[return-value]


class Question:
    """One knee_ask and what it owns; use it with `with`."""

    def __init__(self) -> None:
        self._ask = _library.knee_ask_begin(None)
        if not self._ask:
            raise MemoryError("knee: no memory")
        self._kept: List[bytes] = []  # the library borrows what is attached
        self._stopped = False
        self._watch = _WATCH(lambda _ctx, _share: not self._stopped)
        _library.knee_ask_watch(self._ask, self._watch, None)

    def __enter__(self) -> "Question":
        return self

    def __exit__(self, *_: object) -> None:
        if not self._stopped:  # else what was abandoned still works on it
            self._end()

    def _end(self) -> None:
        _library.knee_ask_end(self._ask)
        self._ask = None

    def _stop(self) -> None:
        self._stopped = True

    @staticmethod
    def _check(status: int, err: _Err) -> None:
        if status != _OK:
            raise err.error(status)

    def attach(self, name: str, data: bytes) -> None:
        """Bytes that a line may name, as the command line names a file."""
        err = _Err()
        self._kept.append(data)
        self._check(_library.knee_attach(self._ask, os.fsencode(name), data, len(data), ctypes.byref(err)), err)

    def push(self, path: PathLike, name: Optional[str] = None) -> None:
        """A trace as JSON or .json.gz, read piece by piece; that of a job without GPUs twice."""
        self._push(path, name)
        if _library.knee_push_again(self._ask):
            self._push(path, name)

    def _push(self, path: PathLike, name: Optional[str]) -> None:
        err, size = _Err(), _n()
        name_bytes = os.fsencode(name or path)
        with _open(Path(path)) as file:
            self._check(_library.knee_push_begin(self._ask, name_bytes, ctypes.byref(err)), err)
            try:
                while True:
                    room = _library.knee_push_room(self._ask, ctypes.byref(size))
                    if not room:
                        raise MemoryError("knee: no memory")
                    got = file.readinto((ctypes.c_char * size.value).from_address(room))  # type: ignore[attr-defined]
                    if not got:
                        break
                    _library.knee_push_filled(self._ask, got)
            except (OSError, EOFError) as error:
                _library.knee_push_end(self._ask, ctypes.byref(err))
                raise InputError(_INPUT, os.fspath(path), str(error), "record it again, or leave it out") from None
            self._check(_library.knee_push_end(self._ask, ctypes.byref(err)), err)

    def ask(self, command: str, lines: str, format: str = "json") -> Tuple[str, Optional[KneeError]]:
        """The answer; beside it the limit that was not kept, where the question set one."""
        if format not in _FORMATS:
            raise ValueError(f"format is one of {', '.join(_FORMATS)}")
        err, answer = _Err(), _Text()

        def work() -> Tuple[int, str]:
            status = _library.knee_ask(
                self._ask, command.encode(), lines.encode("utf-8", "surrogateescape"), _FORMATS[format], ctypes.byref(answer), ctypes.byref(err)
            )
            try:
                return status, ctypes.string_at(answer.data, answer.length).decode("utf-8", "replace") if answer.data else ""
            finally:
                _library.knee_text_release(ctypes.byref(answer))

        status, text = interruptible(work, self._stop, self._end)
        if status != _OK and not (text and status in (_GATE, _INPUT)):
            raise err.error(status)
        return text, None if status == _OK else err.error(status)

    def pull(self, name: str) -> Optional[str]:
        """What the question made beside its answer."""
        text = _library.knee_pull(self._ask, os.fsencode(name))
        return ctypes.string_at(text.contents.data, text.contents.length).decode() if text else None


def text_of(value: Any) -> str:
    """A value as the command line has it: numbers, ranges, lists, numpy, pathlib."""
    if hasattr(value, "tolist"):  # numpy, torch: arrays and their scalars
        value = value.tolist()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, range) and len(value) > 2 and value.step > 0:
        return f"{value[0]}..{value[-1]}+{value.step}"
    if isinstance(value, (list, tuple, range, set, frozenset)):
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return ",".join(text_of(item) for item in items)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def lines_of(words: Iterable[str], keys: Dict[str, object]) -> str:
    """global_batch="4M", simulate=True -> the lines that libknee takes."""
    lines = [f"word = {word}" for word in words]
    for key, value in keys.items():
        name = key.rstrip("_").replace("_", "-")  # for_ is --for
        if value is None or value is False:
            continue
        lines.append(name if value is True else f"{name} = {text_of(value)}")
    for line in lines:
        if "\n" in line or "\0" in line:
            raise ValueError(f"a value has no line break and no NUL: {line!r}")
    return "\n".join(lines) + "\n"
