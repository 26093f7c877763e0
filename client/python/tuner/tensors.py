"""Pointer, shape and strides of whatever holds device memory: torch tensors, __cuda_array_interface__, DLPack."""
from __future__ import annotations

import ctypes as c
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .errors import bad_input
from .recipe import BYTES


class View(NamedTuple):
    data: int
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]  # elements; None: dense
    dtype: str  # "" when the object cannot say
    itemsize: int


def view(obj: Any, field: str) -> View:
    """Errors name `field`. Nothing is synchronised: order between streams is the caller's."""
    if hasattr(obj, "data_ptr"):
        return _of_torch(obj, field)
    if hasattr(obj, "__cuda_array_interface__"):
        return _of_cuda_array_interface(obj.__cuda_array_interface__, field)
    if hasattr(obj, "__dlpack__"):
        return _of_dlpack(obj, field)
    raise bad_input(field, f"a {type(obj).__name__}", "an int pointer, or an object with data_ptr(), __cuda_array_interface__ or __dlpack__")


_TORCH_DTYPES = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32", "torch.float64": "fp64", "torch.int32": "int32"}
_torch_names: Dict[Any, str] = {}  # by dtype object: its str() is slow


def _of_torch(tensor: Any, field: str) -> View:
    if not tensor.is_cuda:
        raise bad_input(field, f"a tensor on {tensor.device}", "one on a CUDA device")
    dtype = tensor.dtype
    name = _torch_names.get(dtype)
    if name is None:
        name = _torch_names[dtype] = _TORCH_DTYPES.get(str(dtype), str(dtype))
    return View(tensor.data_ptr(), tensor.shape, tensor.stride(), name, tensor.element_size())


_TYPE_STRINGS = {"f2": "fp16", "f4": "fp32", "f8": "fp64", "i4": "int32", "bfloat16": "bf16"}


def _of_cuda_array_interface(interface: Any, field: str) -> View:
    typestr = interface["typestr"]
    if typestr[0] == ">":
        raise bad_input(field, typestr, "little-endian elements")
    kind = typestr.lstrip("<|=")
    itemsize = int(kind[1:]) if kind[1:].isdigit() else 0
    # There is no letter for bf16: it comes as raw or unsigned bytes, and only its size can be checked.
    dtype = "" if kind[0] in "Vu" else _TYPE_STRINGS.get(kind, kind)
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        if itemsize == 0 or any(stride % itemsize for stride in strides):
            raise bad_input(field, f"strides {tuple(strides)} bytes of {typestr}", "strides of whole elements")
        strides = tuple(stride // itemsize for stride in strides)
    return View(interface["data"][0], shape, strides, dtype, itemsize)


class _DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


_capsule_pointer = c.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
_DL_CUDA, _DL_CUDA_MANAGED = 2, 13
_DL_DTYPES = {(2, 16): "fp16", (2, 32): "fp32", (2, 64): "fp64", (4, 16): "bf16", (0, 32): "int32"}


def _of_dlpack(obj: Any, field: str) -> View:
    device = obj.__dlpack_device__()
    if device[0] not in (_DL_CUDA, _DL_CUDA_MANAGED):
        raise bad_input(field, f"an array on DLPack device {int(device[0])}", "one on a CUDA device")
    # Borrowed, not consumed: the capsule gives the tensor back when it goes, and `obj` keeps the memory. -1: no synchronisation.
    capsule = obj.__dlpack__(stream=-1)
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    rank = tensor.ndim
    strides = tuple(tensor.strides[:rank]) if tensor.strides else None
    dtype = _DL_DTYPES.get((tensor.code, tensor.bits), f"DLPack type {tensor.code}, {tensor.bits} bits")
    return View((tensor.data or 0) + tensor.byte_offset, tuple(tensor.shape[:rank]), strides, dtype, tensor.bits // 8)


def row_stride(seen: View, shape: Tuple[int, ...], dtype: str, field: str) -> int:
    """Checks `seen` against what the kernel wants; the row stride for the launch, 0 where there is none.

    A tensor of rank 2 may come with more leading dimensions, when they collapse to rows of one stride. A dense one gets its stride too:
    without it the library would take the problem's, which may be padded.
    """
    if seen.dtype not in ("", dtype) or seen.itemsize != BYTES.get(dtype, seen.itemsize):
        raise bad_input(field, seen.dtype or f"elements of {seen.itemsize} bytes", dtype)
    if seen.shape != shape and not _collapses(seen.shape, shape):
        raise bad_input(field, f"shape {_shape(seen.shape)}", _shape(shape))
    if seen.strides is None or not seen.shape:
        return shape[-1] if len(shape) == 2 else 0
    sizes_strides = [(size, stride) for size, stride in zip(seen.shape[:-1], seen.strides[:-1]) if size != 1]
    if seen.shape[-1] != 1 and seen.strides[-1] != 1:
        raise bad_input(field, f"strides {_shape(seen.strides)}", "elements of a row side by side")
    for (_, outer), (size, inner) in zip(sizes_strides, sizes_strides[1:]):
        if outer != size * inner:
            raise bad_input(field, f"strides {_shape(seen.strides)} of shape {_shape(seen.shape)}", "rows at one distance")
    if not sizes_strides or len(shape) != 2:
        return 0
    stride = sizes_strides[-1][1]
    if stride < shape[-1]:
        raise bad_input(field, f"strides {_shape(seen.strides)} of shape {_shape(seen.shape)}", "rows that do not overlap")
    return stride


def _collapses(seen: Tuple[int, ...], wanted: Tuple[int, ...]) -> bool:
    if len(wanted) != 2 or len(seen) < 1 or seen[-1] != wanted[1]:
        return False
    rows = 1
    for size in seen[:-1]:
        rows *= size
    return rows == wanted[0]


def _shape(sizes: Tuple[int, ...]) -> str:
    return "[" + ",".join(str(size) for size in sizes) + "]"
