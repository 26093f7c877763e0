"""torch.ops.tuner.*: what torch.compile and autograd see. Opaque to the compiler, with shapes for its fake tensors.

`linear` has a backward. The others have none: the functions of functional.py take torch's own where gradients are needed.
"""
from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F

from . import eager

_library = torch.library.Library("tuner", "DEF")


def _op(schema: str):  # type: ignore[no-untyped-def]  # a decorator of kernels of any signature
    """Defines an op whose kernel is the decorated function, on every device that may reach it."""
    name = schema.split("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))

    def register(kernel):  # type: ignore[no-untyped-def]
        for key in ("CUDA", "CPU"):
            _library.impl(name, kernel, key)
        return kernel

    return register


# A kernel's result is dense, as its fake says, also where torch computes it.


@_op("linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor")
def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    y = eager.linear(x, weight, bias)
    return F.linear(x, weight, bias).contiguous() if y is None else y


@_op("rms_norm(Tensor x, Tensor weight, float eps) -> Tensor")
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    y = eager.rms_norm(x, weight, eps)
    return F.rms_norm(x, weight.shape, weight, eps).contiguous() if y is None else y


@_op("layer_norm(Tensor x, Tensor weight, Tensor bias, float eps) -> Tensor")
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    y = eager.layer_norm(x, weight, bias, eps)
    return F.layer_norm(x, weight.shape, weight, bias, eps).contiguous() if y is None else y


@_op("softmax(Tensor x) -> Tensor")
def _softmax(x: Tensor) -> Tensor:
    y = eager.softmax(x)
    return F.softmax(x, -1).contiguous() if y is None else y


@_op("gelu(Tensor x) -> Tensor")
def _gelu(x: Tensor) -> Tensor:
    y = eager.gelu(x)
    return F.gelu(x).contiguous() if y is None else y


@_op("swiglu(Tensor x) -> Tensor")
def _swiglu(x: Tensor) -> Tensor:
    y = eager.swiglu(x)
    return torch_swiglu(x).contiguous() if y is None else y


def torch_swiglu(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


@torch.library.register_fake("tuner::linear", lib=_library)
def _(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@torch.library.register_fake("tuner::rms_norm", lib=_library)
def _(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.register_fake("tuner::layer_norm", lib=_library)
def _(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.register_fake("tuner::softmax", lib=_library)
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.register_fake("tuner::gelu", lib=_library)
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@torch.library.register_fake("tuner::swiglu", lib=_library)
def _(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] // 2))


def _linear_context(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias = inputs
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None


def _linear_backward(ctx: Any, grad: Tensor) -> Tuple[Optional[Tensor], Optional[Tensor], Optional[Tensor]]:
    x, weight = ctx.saved_tensors
    rows = grad.reshape(-1, grad.shape[-1])
    to_x = torch.matmul(grad, weight) if ctx.needs_input_grad[0] else None
    to_weight = torch.matmul(rows.t(), x.reshape(-1, x.shape[-1])) if ctx.needs_input_grad[1] else None
    to_bias = rows.sum(0) if ctx.has_bias and ctx.needs_input_grad[2] else None
    return to_x, to_weight, to_bias


torch.library.register_autograd("tuner::linear", _linear_backward, setup_context=_linear_context, lib=_library)


def _no_backward(name: str) -> None:
    def backward(ctx: Any, *grads: Tensor) -> None:
        raise RuntimeError(f"torch.ops.tuner.{name} has no backward; tuner.torch.{name} takes torch's own function where gradients are needed")

    torch.library.register_autograd(f"tuner::{name}", backward, lib=_library)


for _name in ("rms_norm", "layer_norm", "softmax", "gelu", "swiglu"):
    _no_backward(_name)
