"""The functions: as torch's own of the same name, served by the daemon where it can.

A plain eager call goes straight to its plan (eager.py); under torch.compile, and for linear where gradients are needed, it goes through the
registered op (ops.py). Everything else — autocast, torch.func, a dispatch mode, a tensor subclass — is torch's own function.
"""
from __future__ import annotations

from typing import Optional, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn import functional as F

from . import eager, ops
from .runtime import DTYPES

_linear, _rms_norm, _layer_norm = torch.ops.tuner.linear.default, torch.ops.tuner.rms_norm.default, torch.ops.tuner.layer_norm.default
_softmax, _gelu, _swiglu = torch.ops.tuner.softmax.default, torch.ops.tuner.gelu.default, torch.ops.tuner.swiglu.default
_is_compiling = torch.compiler.is_compiling
_grad_enabled = torch.is_grad_enabled
_autocast = torch.is_autocast_enabled


def _none() -> None:
    return None


_tracing = getattr(torch._C, "_get_tracing_state", _none)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", _none)
_transforms = getattr(torch._C._functorch, "peek_interpreter_stack", _none)
_PLAIN = (Tensor, Parameter)
_DTYPES = tuple(DTYPES)


def _plain() -> bool:
    """Nobody watches the calls: what runs may go past the dispatcher."""
    return not (_autocast() or _modes() or _transforms() is not None or _tracing() is not None)


def _compilable(x: Tensor) -> bool:
    """Whether a compiled graph should hold our op; decided once, when it is traced."""
    return x.is_cuda and x.dtype in _DTYPES and not _autocast()


def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """As torch.nn.functional.linear; bf16 and fp16 are served."""
    if _is_compiling():
        if _compilable(input) and input.dtype == weight.dtype and input.dtype != torch.float32 and weight.dim() == 2:
            return _linear(input, weight, bias)
    elif type(input) in _PLAIN and type(weight) in _PLAIN and _plain():
        if _grad_enabled() and (input.requires_grad or weight.requires_grad or (bias is not None and bias.requires_grad)):
            if input.is_cuda and input.dtype is weight.dtype and weight.dim() == 2:
                return _linear(input, weight, bias)
        else:
            y = eager.linear(input, weight, bias)
            if y is not None:
                return y
    return F.linear(input, weight, bias)


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    """As torch.nn.functional.rms_norm; served over the last dimension, with a weight."""
    if weight is not None and len(normalized_shape) == 1 and not _needs_grad(input, weight):
        if _is_compiling():
            if _compilable(input) and input.dtype == weight.dtype:
                return _rms_norm(input, weight, torch.finfo(input.dtype).eps if eps is None else eps)
        elif type(input) in _PLAIN and type(weight) in _PLAIN and input.shape[-1:] == tuple(normalized_shape) and _plain():
            y = eager.rms_norm(input, weight, torch.finfo(input.dtype).eps if eps is None else eps)
            if y is not None:
                return y
    return F.rms_norm(input, normalized_shape, weight, eps)


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-5) -> Tensor:
    """As torch.nn.functional.layer_norm; served over the last dimension, with weight and bias."""
    if weight is not None and bias is not None and len(normalized_shape) == 1 and not _needs_grad(input, weight, bias):
        if _is_compiling():
            if _compilable(input) and input.dtype == weight.dtype and input.dtype == bias.dtype:
                return _layer_norm(input, weight, bias, eps)
        elif type(input) in _PLAIN and type(weight) in _PLAIN and input.shape[-1:] == tuple(normalized_shape) and _plain():
            y = eager.layer_norm(input, weight, bias, eps)
            if y is not None:
                return y
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


def softmax(input: Tensor, dim: int = -1, dtype: Optional[torch.dtype] = None) -> Tensor:
    """As torch.nn.functional.softmax; served along the last dimension."""
    if dtype is None and (dim == -1 or dim == input.dim() - 1) and not _needs_grad(input):
        if _is_compiling():
            if _compilable(input):
                return _softmax(input)
        elif type(input) in _PLAIN and _plain():
            y = eager.softmax(input)
            if y is not None:
                return y
    return F.softmax(input, dim, dtype=dtype)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """As torch.nn.functional.gelu; the exact form is served."""
    if approximate == "none" and not _needs_grad(input):
        if _is_compiling():
            if _compilable(input):
                return _gelu(input)
        elif type(input) in _PLAIN and _plain():
            y = eager.gelu(input)
            if y is not None:
                return y
    return F.gelu(input, approximate=approximate)


def swiglu(input: Tensor) -> Tensor:
    """silu(gate) · up of [..., 2·cols]: gate its first half of columns, up its second."""
    if not _needs_grad(input):
        if _is_compiling():
            if _compilable(input):
                return _swiglu(input)
        elif type(input) in _PLAIN and _plain():
            y = eager.swiglu(input)
            if y is not None:
                return y
    return ops.torch_swiglu(input)


def _needs_grad(input: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None) -> bool:
    return _grad_enabled() and (input.requires_grad or (weight is not None and weight.requires_grad) or (bias is not None and bias.requires_grad))
