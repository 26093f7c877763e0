"""libtuner.so: where it is, its structs and prototypes (client/lib/include/tuner.h)."""
from __future__ import annotations

import ctypes as c
import operator
import os
import threading
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from .errors import CODES, Error, bad_input

NAME = "libtuner.so.0"


class Options(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("socket_path", c.c_char_p), ("client_name", c.c_char_p), ("deadline_ms", c.c_int64),
                ("max_kernels", c.c_int64)]


class Dim(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_int64)]


class Attribute(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_char_p)]


class KernelFacts(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("op", c.c_char_p), ("problem", c.c_char_p), ("variant", c.c_char_p), ("quality", c.c_char_p),
                ("source", c.c_char_p), ("arch", c.c_char_p), ("t_sol_us", c.c_double), ("time_us", c.c_double), ("sol_fraction", c.c_double),
                ("generation", c.c_uint64), ("cubin", c.c_void_p), ("cubin_bytes", c.c_size_t), ("json", c.c_char_p)]


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("data", c.c_uint64), ("row_stride", c.c_int64)]


class Real(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class LaunchArgs(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("tensors", c.POINTER(Tensor)), ("tensor_count", c.c_size_t), ("dims", c.POINTER(Dim)),
                ("dim_count", c.c_size_t), ("reals", c.POINTER(Real)), ("real_count", c.c_size_t), ("workspace", c.c_uint64),
                ("workspace_bytes", c.c_int64), ("flags", c.c_uint32)]


class ErrorParts(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("status", c.c_int), ("message", c.c_char_p), ("field", c.c_char_p), ("value", c.c_char_p),
                ("expected", c.c_char_p), ("suggestion", c.c_char_p)]


S = TypeVar("S", bound=c.Structure)


def array_of(kind: Type[S], rows: Sequence[Tuple[Any, ...]]) -> "c.Array[S]":
    """A ctypes array of structs; keeps what their pointers point to."""
    return (kind * len(rows))(*[kind(*row) for row in rows])


def pack_dims(dims: Mapping[str, int]) -> "c.Array[Dim]":
    """Error names a value that is no integer of 64 bits."""
    rows = []
    for name, value in dims.items():
        try:
            number = operator.index(value)
        except TypeError:
            raise bad_input(name, repr(value), "an integer") from None
        if not -(1 << 63) <= number < 1 << 63:
            raise bad_input(name, value, "an integer of 64 bits")
        rows.append((name.encode(), number))
    return array_of(Dim, rows)


NO_PDL = 1
WAITS = {"now": 0, "tuned": 1, "cached": 2}
UpgradeFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_uint64, c.c_void_p)

_PROTOTYPES = {
    "tuner_connect": (c.c_int, [c.POINTER(Options), c.POINTER(c.c_void_p)]),
    "tuner_close": (c.c_int, [c.c_void_p]),
    "tuner_connected": (c.c_int, [c.c_void_p]),
    "tuner_get": (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(Dim), c.c_size_t, c.POINTER(Attribute), c.c_size_t, c.c_int, c.c_int64,
                            c.POINTER(c.c_void_p)]),
    "tuner_kernel_release": (None, [c.c_void_p]),
    "tuner_kernel_info": (c.c_int, [c.c_void_p, c.POINTER(KernelFacts)]),
    "tuner_launch": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p]),
    "tuner_kernel_load": (c.c_int, [c.c_void_p]),
    "tuner_kernel_workspace": (c.c_int, [c.c_void_p, c.POINTER(Dim), c.c_size_t, c.POINTER(c.c_int64), c.POINTER(c.c_int64),
                                         c.POINTER(c.c_int)]),
    "tuner_subscribe": (c.c_int, [c.c_void_p, UpgradeFunction, c.c_void_p]),
    "tuner_last_error": (c.c_char_p, [c.c_void_p]),
    "tuner_last_error_parts": (c.c_int, [c.c_void_p, c.POINTER(ErrorParts)]),
}


def _words(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "replace")


class Library:
    """A loaded libtuner. Its functions are attributes, without the prefix: library.get is tuner_get."""

    def __init__(self, path: str) -> None:
        self.path = path
        # CDLL, not PyDLL: a launch into a full stream waits, and must not hold the GIL while it does.
        loaded = c.CDLL(path)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name[len("tuner_"):], function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # for type checkers: the functions are set above

    def check(self, status: int) -> None:
        if status != 0:
            raise self.error()

    def error(self) -> Error:
        """The calling thread's last failure."""
        parts = ErrorParts(c.sizeof(ErrorParts))
        self.last_error_parts(None, c.byref(parts))
        code = CODES[parts.status] if 0 <= parts.status < len(CODES) else "internal"
        return Error(code, _words(parts.message), field=_words(parts.field), value=_words(parts.value), expected=_words(parts.expected),
                     suggestion=_words(parts.suggestion), text=_words(self.last_error(None)))


def candidates() -> List[str]:
    """Where the library is looked for, in order; a name without a folder is the loader's to find."""
    named = os.environ.get("TUNER_LIBRARY")
    if named:
        return [named]
    package = Path(__file__).resolve().parent
    places = [str(package / "libtuner.so"), str(package / NAME)]
    if len(package.parents) > 2:  # client/python/tuner in a checkout
        places.append(str(package.parents[2] / "build" / "lib" / NAME))
    return places + [NAME, "libtuner.so"]


_loaded: Dict[str, Library] = {}
_lock = threading.Lock()


def load(path: Optional[Union[str, "os.PathLike[str]"]] = None) -> Library:
    """The library at `path`, else the first of candidates() that is there. Error "missing" names every place tried."""
    places = [os.fspath(path)] if path is not None else candidates()
    with _lock:
        complaints = []
        for place in places:
            if place in _loaded:
                return _loaded[place]
            if os.path.isabs(place) and len(places) > 1 and not os.path.exists(place):
                complaints.append(f"{place}: not there")
                continue
            try:
                return _loaded.setdefault(place, Library(place))
            except (OSError, AttributeError) as why:
                complaints.append(str(why) if place in str(why) else f"{place}: {why}")
                if os.path.isabs(place):
                    break  # it is there and broken: another one further on would hide that
        raise Error("missing", "libtuner.so was not found or cannot be loaded", field="library", value="; ".join(complaints),
                    expected="$TUNER_LIBRARY, a copy beside the package, build/lib of the checkout, or a library the loader finds")
