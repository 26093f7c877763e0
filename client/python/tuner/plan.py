"""A launch with everything ready but the pointers and the stream: what a hot loop calls."""
from __future__ import annotations

import ctypes as c
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

from .errors import bad_input
from .library import NO_PDL, LaunchArgs, Real, Tensor, array_of, pack_dims

if TYPE_CHECKING:
    from .kernel import Kernel

_WORDS = c.sizeof(Tensor) // 8  # name, data, row_stride
_Slot = Tuple["c.Array[c.c_uint64]", c.c_void_p, LaunchArgs]


class Plan:
    """plan(stream, *pointers), the pointers in the order of `names`, enqueues the kernel; about a microsecond of host time.

    Whether the pointers are right is the caller's business, but for what libtuner checks: null and alignment. Any thread may call it.
    """

    __slots__ = ("kernel", "names", "_library", "_free", "_launch", "_handle", "_keep", "_at")

    def __init__(self, kernel: "Kernel", names: Optional[Sequence[str]] = None, dims: Optional[Mapping[str, int]] = None,
                 reals: Optional[Mapping[str, float]] = None, row_strides: Optional[Mapping[str, int]] = None, workspace: int = 0,
                 workspace_bytes: int = 0, pdl: bool = True) -> None:
        recipe = kernel.recipe
        self.kernel: Optional["Kernel"] = kernel  # kept alive; None where the kernel itself keeps the plan
        self._library = kernel.library
        self.names: Tuple[str, ...] = recipe.names if names is None else tuple(names)
        keys = {tensor.name: tensor.key for tensor in recipe.tensors}
        for name in self.names:
            if name not in keys:
                raise bad_input("tensor", name, "one of " + ", ".join(recipe.names))
        strides = row_strides or {}
        all_reals = {**recipe.reals, **(reals or {})}
        dim_list = pack_dims(dims or {})
        real_list = array_of(Real, [(name.encode(), value) for name, value in all_reals.items()])
        tensors = [(keys[name], strides.get(name, 0)) for name in self.names]
        self._keep = (tensors, dim_list, real_list, workspace, workspace_bytes, 0 if pdl else NO_PDL)
        self._at = range(1, _WORDS * len(self.names), _WORDS)
        self._launch = kernel.library.launch
        self._handle = kernel.handle
        # A list's pop and append are atomic: a slot belongs to one launch at a time, whatever the threads do.
        self._free: List[_Slot] = [self._slot()]

    def _slot(self) -> _Slot:
        tensors, dim_list, real_list, workspace, workspace_bytes, flags = self._keep
        array = array_of(Tensor, [(key, 0, stride) for key, stride in tensors])
        args = LaunchArgs(c.sizeof(LaunchArgs), array, len(tensors), dim_list, len(dim_list), real_list, len(real_list), workspace,
                          workspace_bytes, flags)
        return (c.c_uint64 * (_WORDS * len(tensors))).from_buffer(array), c.c_void_p(c.addressof(args)), args

    def __call__(self, stream: int, *pointers: int) -> None:
        self.launch(stream, pointers)

    def launch(self, stream: int, pointers: Sequence[int]) -> None:
        if len(pointers) != len(self._at):
            raise bad_input("tensors", len(pointers), ", ".join(self.names))
        try:
            slot = self._free.pop()
        except IndexError:
            slot = self._slot()
        words = slot[0]
        for at, pointer in zip(self._at, pointers):
            words[at] = pointer
        status = self._launch(self._handle, stream, slot[1])
        self._free.append(slot)
        if status:
            raise self._library.error()
