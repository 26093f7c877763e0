"""The connection to tunerd."""
from __future__ import annotations

import ctypes as c
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import facts as _facts
from . import library as _library
from .errors import bad_input
from .facts import Facts
from .kernel import Kernel

Path = Union[str, "os.PathLike[str]"]
_Packed = Tuple["c.Array[_library.Dim]", "c.Array[_library.Attribute]"]
_MAX_PACKED = 4096


def _close(library: _library.Library, handle: c.c_void_p, thunks: List[Any]) -> None:
    address, handle.value = handle.value, None

    def close() -> None:
        if library.close(address) == 0:
            thunks.clear()
        elif not threading.current_thread() is closer:
            closer.start()

    # The library refuses to be closed from its own thread, where a callback may have dropped the last reference.
    closer = threading.Thread(target=close, name="tuner-close")
    close()


class Client:
    """A connection to the tunerd of this machine; reconnects by itself. Any thread may use it; after fork() make a new one.

    socket   None: $TUNERD_SOCKET, $XDG_RUNTIME_DIR/tunerd/tunerd.sock, else the system's place
    library  path of libtuner.so; None: $TUNER_LIBRARY, beside the package, the checkout's build/lib, the loader
    """

    def __init__(self, socket: Optional[Path] = None, library: Optional[Path] = None, *, name: Optional[str] = None, deadline_ms: int = 0,
                 max_kernels: int = 0) -> None:
        self.library = _library.load(library)
        options = _library.Options(c.sizeof(_library.Options), os.fspath(socket).encode() if socket is not None else None,
                                   name.encode() if name is not None else None, deadline_ms, max_kernels)
        self.handle = c.c_void_p()
        self.library.check(self.library.connect(c.byref(options), c.byref(self.handle)))
        self._thunks: List[Any] = []
        self._packed: Dict[Any, _Packed] = {}  # problems as the ABI takes them
        # Also before the interpreter ends: a callback must not come after that.
        self.close = weakref.finalize(self, _close, self.library, self.handle, self._thunks)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        return bool(self.library.connected(self.handle))

    def get(self, op: str, dims: Mapping[str, int], dtype: Optional[str] = None, attributes: Optional[Mapping[str, Any]] = None, *,
            strides: Optional[Mapping[str, int]] = None, wait: str = "now", deadline_ms: int = 0) -> Kernel:
        """The best kernel for a problem. A repeated get is answered from memory.

        dims        {"m": 16, "n": 4096, "k": 4096}
        dtype       "bf16", "fp16", "fp32"; None: the op's first
        attributes  {"epilogue": "bias"}, {"eps": 1e-5}
        strides     row strides where padded, in elements: {"x": 4160}
        wait        "now": the best that is ready; "tuned": waits for tuning; "cached": never compiles
        deadline_ms of the whole call; 0: 60000
        """
        if wait not in _library.WAITS:
            raise bad_input("wait", wait, ", ".join(_library.WAITS))
        key = (tuple(dims.items()), dtype, tuple(attributes.items()) if attributes else (), tuple(strides.items()) if strides else ())
        packed = self._packed.get(key)
        if packed is None:
            packed = _pack(dims, dtype, attributes or {}, strides or {})
            if len(self._packed) >= _MAX_PACKED:
                self._packed.clear()
            self._packed[key] = packed
        kernel = c.c_void_p()
        self.library.check(self.library.get(self.handle, op.encode(), packed[0], len(packed[0]), packed[1], len(packed[1]),
                                            _library.WAITS[wait], deadline_ms, c.byref(kernel)))
        return Kernel(self.library, kernel)

    def subscribe(self, callback: Optional[Callable[[Facts], None]] = None) -> None:
        """From now on kernels become better in place as tuning goes on; without it a kernel stays what it was.

        `callback` gets the facts of a kernel that became better, on the library's thread; it must not block for long. A second call
        replaces the first's callback.
        """
        function = c.cast(0, _library.UpgradeFunction) if callback is None else _thunk(self.library, callback)
        # Kept until the end: a replaced callback may still be running.
        self._thunks.append(function)
        self.library.check(self.library.subscribe(self.handle, function, None))


def _thunk(library: _library.Library, callback: Callable[[Facts], None]) -> Any:
    def upgraded(kernel: int, generation: int, user: Optional[int]) -> None:
        callback(_facts.read(library, c.c_void_p(kernel)))

    return _library.UpgradeFunction(upgraded)


def _pack(dims: Mapping[str, int], dtype: Optional[str], attributes: Mapping[str, Any], strides: Mapping[str, int]) -> _Packed:
    all_dims = {**dims, **{f"ld_{name}": stride for name, stride in strides.items()}}
    texts = {name: str(value) for name, value in attributes.items()}
    if dtype is not None:
        texts["dtype"] = dtype
    pairs = [(name.encode(), text.encode()) for name, text in texts.items()]
    return _library.pack_dims(all_dims), _library.array_of(_library.Attribute, pairs)
