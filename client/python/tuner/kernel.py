"""A kernel: what it is, and launching it."""
from __future__ import annotations

import ctypes as c
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import facts as _facts
from .errors import Error, bad_input
from .library import Library, pack_dims
from .plan import Plan
from .recipe import Recipe
from .tensors import row_stride, view

Tensors = Union[Mapping[str, Any], Sequence[Any]]
_MAX_PLANS = 256


class Workspace(NamedTuple):
    bytes: int
    alignment: int
    zeroed: bool  # zero it once before its first use


class Kernel:
    """From Client.get; outlives its client. close(), or the end of a with block or of the object, gives it back.

    What it holds on the device is freed with the last kernel of its problem: synchronise the streams it ran on before.
    """

    def __init__(self, library: Library, handle: c.c_void_p) -> None:
        self.library = library
        self.handle = handle
        self._recipe: Optional[Recipe] = None
        self._plans: Dict[Any, Plan] = {}

    def close(self) -> None:
        # Plans share the handle object: after this they are refused too.
        address, self.handle.value = self.handle.value, None
        self.library.kernel_release(address)

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> "Kernel":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self.handle:
            return "<tuner.Kernel closed>"
        now = self.facts
        return f"<tuner.Kernel {now.problem} {now.variant} {now.quality} {now.source}>"

    # ---- facts: read anew each time, an upgrade may change them

    @property
    def facts(self) -> _facts.Facts:
        self._open()
        return _facts.read(self.library, self.handle)

    @property
    def op(self) -> str:
        return self.facts.op

    @property
    def problem(self) -> str:
        return self.facts.problem

    @property
    def variant(self) -> str:
        return self.facts.variant

    @property
    def quality(self) -> str:
        return self.facts.quality

    @property
    def source(self) -> str:
        return self.facts.source

    @property
    def arch(self) -> str:
        return self.facts.arch

    @property
    def t_sol_us(self) -> float:
        return self.facts.t_sol_us

    @property
    def time_us(self) -> Optional[float]:
        return self.facts.time_us

    @property
    def sol_fraction(self) -> Optional[float]:
        return self.facts.sol_fraction

    @property
    def generation(self) -> int:
        return self.facts.generation

    @property
    def cubin(self) -> bytes:
        self._open()
        raw = _facts.raw_facts(self.library, self.handle)
        return c.string_at(raw.cubin, raw.cubin_bytes)

    @property
    def recipe(self) -> Recipe:
        if self._recipe is None:
            self._recipe = Recipe(self.facts.answer)
        return self._recipe

    # ---- launching

    def launch(self, tensors: Tensors, dims: Optional[Mapping[str, int]] = None, stream: Any = 0, *,
               reals: Optional[Mapping[str, float]] = None, workspace: Any = None, pdl: bool = True) -> None:
        """Enqueues the kernel on `stream` and returns; never synchronises.

        `tensors`: by name, or in the recipe's order; each a torch tensor, an object with __cuda_array_interface__ or __dlpack__, or an int
        pointer. All but ints are checked: device, dtype, shape, strides. `dims`: another size within the kernel's validity. `stream`: an
        int (CUstream), or an object with cuda_stream, ptr or handle. `reals`: "eps"; those left out are the ones asked for with get.
        `workspace`: an array, or (pointer, bytes); None: the library keeps one for each kernel and stream.
        """
        self._open()
        recipe = self.recipe
        named = tensors if isinstance(tensors, Mapping) else self._in_order(tensors)
        wanted = recipe.shapes(dims or {})
        names, pointers, strides = [], [], []
        for tensor in recipe.tensors:
            name = tensor.name
            if name not in named:
                raise bad_input(f"tensor {name}", "not given", "every tensor of the kernel")
            given = named[name]
            stride = 0
            if type(given) is not int:
                field = f"tensor {name}"
                seen = view(given, field)
                stride = row_stride(seen, wanted[name], tensor.dtype, field)
                given = seen.data
            names.append(name)
            pointers.append(given)
            strides.append(stride)
        if len(named) != len(names):
            unknown = next(name for name in named if name not in wanted)
            raise bad_input("tensor", unknown, "one of " + ", ".join(names))
        key = (tuple(strides), tuple(dims.items()) if dims else (), tuple(reals.items()) if reals else (), pdl)
        plan = self._plans.get(key) if workspace is None else None
        if plan is None:
            plan = self.plan(names, dims, reals=reals, row_strides=dict(zip(names, strides)), workspace=workspace, pdl=pdl)
            if workspace is None:
                plan.kernel = None  # no cycle: the kernel goes when its last user does
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        plan(stream if type(stream) is int else _stream(stream), *pointers)

    def plan(self, names: Optional[Sequence[str]] = None, dims: Optional[Mapping[str, int]] = None, *,
             reals: Optional[Mapping[str, float]] = None, row_strides: Optional[Mapping[str, int]] = None, workspace: Any = None,
             pdl: bool = True) -> Plan:
        """Everything of a launch but the stream and the pointers, which come in the order of `names` (None: the recipe's)."""
        self._open()
        address, size = _workspace(workspace)
        return Plan(self, names, dims, reals, row_strides, address, size, pdl)

    def load(self) -> None:
        """Loads the module in the current context now rather than at the first launch."""
        self.library.check(self.library.kernel_load(self.handle))

    def workspace(self, dims: Optional[Mapping[str, int]] = None) -> Workspace:
        """What a workspace of the caller's own must be, for these sizes."""
        size, alignment, zeroed = c.c_int64(), c.c_int64(), c.c_int()
        packed = pack_dims(dims or {})
        self.library.check(self.library.kernel_workspace(self.handle, packed, len(packed), c.byref(size), c.byref(alignment), c.byref(zeroed)))
        return Workspace(size.value, alignment.value, bool(zeroed.value))

    def _in_order(self, tensors: Sequence[Any]) -> Mapping[str, Any]:
        names = self.recipe.names
        if len(tensors) != len(names):
            raise bad_input("tensors", len(tensors), ", ".join(names))
        return dict(zip(names, tensors))

    def _open(self) -> None:
        if not self.handle:
            raise Error("invalid_argument", "the kernel is closed", field="kernel", value="closed", expected="an open one")


def _stream(stream: Any) -> int:
    for attribute in ("cuda_stream", "ptr", "handle"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    if stream is None:
        return 0
    raise bad_input("stream", f"a {type(stream).__name__}", "an int, or an object with cuda_stream, ptr or handle")


def _workspace(workspace: Any) -> Tuple[int, int]:
    if workspace is None:
        return 0, 0
    if isinstance(workspace, tuple):
        return int(workspace[0]), int(workspace[1])
    seen = view(workspace, "workspace")
    size = seen.itemsize
    for extent in seen.shape:
        size *= extent
    return seen.data, size
