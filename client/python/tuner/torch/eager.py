"""Each function on plain CUDA tensors: its result, or None where no kernel serves it. The hot path: key, probe, allocate, launch.

A key holds all that a plan depends on; strides only where something is not contiguous.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch
from torch import Tensor

from ..errors import Error
from .runtime import DTYPES, Problem, runtime

_plans = runtime.plans


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Optional[Tensor]:
    dtype = x.dtype
    device = x.get_device()
    if not x.is_cuda or weight.dtype is not dtype or weight.get_device() != device:
        return None
    if bias is not None and not _beside(bias, dtype, device):
        return None
    bias_shape = None if bias is None else bias.shape
    try:
        if x.is_contiguous() and weight.is_contiguous():
            key: Tuple[Any, ...] = ("linear", x.shape, weight.shape, bias_shape, dtype, device)
        else:
            key = ("linear", x.shape, weight.shape, bias_shape, dtype, device, x.stride(), weight.stride())
    except RuntimeError:  # sparse and nested tensors have no strides
        return None
    plan = _plans.get(key)
    if plan is None:
        plan = runtime.make(key, lambda: _describe_linear(x, weight, bias))
        if plan is None:
            return None
    y = x.new_empty(plan.shape)
    if bias is None:
        return y if plan.run((x.data_ptr(), weight.data_ptr(), y.data_ptr())) else None
    return y if plan.run((x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr())) else None


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Optional[Tensor]:
    dtype = x.dtype
    device = x.get_device()
    if not x.is_cuda or not _beside(weight, dtype, device):
        return None
    try:
        key: Tuple[Any, ...] = ("rmsnorm", x.shape, weight.shape, dtype, device, eps)
        if not x.is_contiguous():
            key += x.stride()
    except RuntimeError:
        return None
    plan = _plans.get(key)
    if plan is None:
        plan = runtime.make(key, lambda: _describe_rows("rmsnorm", x, ("x", "weight", "y"), {"eps": eps}, weight))
        if plan is None:
            return None
    y = x.new_empty(plan.shape)
    return y if plan.run((x.data_ptr(), weight.data_ptr(), y.data_ptr())) else None


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Optional[Tensor]:
    dtype = x.dtype
    device = x.get_device()
    if not x.is_cuda or not _beside(weight, dtype, device) or not _beside(bias, dtype, device):
        return None
    try:
        key: Tuple[Any, ...] = ("layernorm", x.shape, weight.shape, bias.shape, dtype, device, eps)
        if not x.is_contiguous():
            key += x.stride()
    except RuntimeError:
        return None
    plan = _plans.get(key)
    if plan is None:
        plan = runtime.make(key, lambda: _describe_rows("layernorm", x, ("x", "weight", "bias", "y"), {"eps": eps}, weight, bias))
        if plan is None:
            return None
    y = x.new_empty(plan.shape)
    return y if plan.run((x.data_ptr(), weight.data_ptr(), bias.data_ptr(), y.data_ptr())) else None


def softmax(x: Tensor) -> Optional[Tensor]:
    return _unary("softmax", x)


def gelu(x: Tensor) -> Optional[Tensor]:
    return _unary("gelu", x)


def swiglu(x: Tensor) -> Optional[Tensor]:
    return _unary("swiglu", x)


def _unary(op: str, x: Tensor) -> Optional[Tensor]:
    if not x.is_cuda:
        return None
    try:
        key: Tuple[Any, ...] = (op, x.shape, x.dtype, x.get_device())
        if not x.is_contiguous():
            key += x.stride()
    except RuntimeError:
        return None
    plan = _plans.get(key)
    if plan is None:
        plan = runtime.make(key, lambda: _describe_rows(op, x, ("x", "y"), {}))
        if plan is None:
            return None
    y = x.new_empty(plan.shape)
    return y if plan.run((x.data_ptr(), y.data_ptr())) else None


def _beside(vector: Tensor, dtype: torch.dtype, device: int) -> bool:
    return vector.dtype is dtype and vector.get_device() == device and vector.is_contiguous()


# ---- what a key stands for, worked out once


def _describe_linear(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Problem:
    m, k, x_stride = _rows(x, "linear")
    n, weight_k, weight_stride = _rows(weight, "linear")
    if weight.dim() != 2 or weight_k != k or (bias is not None and bias.shape != (n,)):
        raise _unserved("linear", f"x {list(x.shape)}, weight {list(weight.shape)}", "x [...,k], weight [n,k], bias [n]")
    names = ("x", "w", "y") if bias is None else ("x", "w", "bias", "y")
    strides = {name: stride for name, stride in (("x", x_stride), ("w", weight_stride)) if stride != k}
    return Problem("gemm", {"m": m, "n": n, "k": k}, _dtype(x, "linear"), x.get_device(), names, (*x.shape[:-1], n),
                   {"epilogue": "none" if bias is None else "bias"}, strides)


def _describe_rows(op: str, x: Tensor, names: Tuple[str, ...], attributes: Dict[str, float], *vectors: Tensor) -> Problem:
    rows, width, stride = _rows(x, op)
    cols = width
    if op == "swiglu":
        if width % 2:
            raise _unserved(op, f"{width} columns", "an even number: gate and up side by side")
        cols = width // 2
    for vector in vectors:
        if vector.shape != (cols,):
            raise _unserved(op, f"x {list(x.shape)}, weight or bias {list(vector.shape)}", f"[{cols}]")
    strides = {"x": stride} if stride != width else {}
    return Problem(op, {"rows": rows, "cols": cols}, _dtype(x, op), x.get_device(), names, (*x.shape[:-1], cols), attributes, strides)


def _rows(x: Tensor, op: str) -> Tuple[int, int, int]:
    """Rows, columns and row stride of a tensor whose leading dimensions collapse to rows at one distance."""
    shape, strides = x.shape, x.stride()
    if x.dim() == 0 or x.numel() == 0:
        raise _unserved(op, f"shape {list(shape)}", "at least one element, in rows")
    cols = shape[-1]
    outer = [(size, stride) for size, stride in zip(shape[:-1], strides[:-1]) if size != 1]
    aligned = all(left[1] == right[0] * right[1] for left, right in zip(outer, outer[1:]))
    stride = outer[-1][1] if outer else cols
    if (cols > 1 and strides[-1] != 1) or not aligned or stride < cols:
        raise _unserved(op, f"strides {list(strides)} of shape {list(shape)}", "rows at one distance, their elements side by side")
    return x.numel() // cols, cols, stride


def _dtype(x: Tensor, op: str) -> str:
    if x.dtype not in DTYPES:
        raise _unserved(op, str(x.dtype), ", ".join(DTYPES.values()))
    return DTYPES[x.dtype]


def _unserved(op: str, value: str, expected: str) -> Error:
    return Error("unsupported", "no kernel for this", field=op, value=value, expected=expected)
