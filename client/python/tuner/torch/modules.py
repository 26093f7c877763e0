"""patch(model): the model's own modules compute with tuner's functions, and back.

A module changes its class to a subclass of its own with another forward: weights, hooks, state_dict and isinstance stay as they are, and
torch.compile sees an ordinary module. Only modules of exactly torch's class are touched: a subclass has reasons of its own.
"""
from __future__ import annotations

from typing import Dict, Iterable, List, Optional, Type

from torch import Tensor, nn
from torch.compiler import is_compiling

from . import functional


class Linear(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        if not is_compiling():
            held = self._parameters  # self.weight costs a search through the module
            if "weight" in held and "bias" in held:
                return functional.linear(input, held["weight"], held["bias"])  # type: ignore[arg-type]
        return functional.linear(input, self.weight, self.bias)


class RMSNorm(nn.RMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class LayerNorm(nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class Softmax(nn.Softmax):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) if self.dim is None else functional.softmax(input, self.dim)


class GELU(nn.GELU):
    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, self.approximate)


_OURS: Dict[Type[nn.Module], Type[nn.Module]] = {nn.Linear: Linear, nn.RMSNorm: RMSNorm, nn.LayerNorm: LayerNorm, nn.Softmax: Softmax, nn.GELU: GELU}
_TORCHS = {ours: torchs for torchs, ours in _OURS.items()}


class Patched:
    """What one patch() changed. A context manager: its end undoes it; so does undo()."""

    def __init__(self, modules: List[nn.Module]) -> None:
        self.modules = modules

    def undo(self) -> None:
        for module in self.modules:
            _restore(module)
        self.modules = []

    def __enter__(self) -> "Patched":
        return self

    def __exit__(self, *exc: object) -> None:
        self.undo()


def patch(model: nn.Module, only: Optional[Iterable[Type[nn.Module]]] = None) -> Patched:
    """Lets every nn.Linear, nn.RMSNorm, nn.LayerNorm, nn.Softmax and nn.GELU of `model` (or those of the classes `only`) use tuner."""
    wanted = set(_OURS if only is None else only)
    for kind in wanted:
        if kind not in _OURS:
            raise TypeError(f"patch knows {', '.join(known.__name__ for known in _OURS)}, not {kind.__name__}")
    changed = []
    for module in model.modules():
        if type(module) in wanted:
            module.__class__ = _OURS[type(module)]
            changed.append(module)
    return Patched(changed)


def unpatch(model: nn.Module) -> int:
    """Gives every patched module of `model` its own class back; how many there were."""
    return sum(_restore(module) for module in model.modules())


def _restore(module: nn.Module) -> bool:
    torchs = _TORCHS.get(type(module))
    if torchs is not None:
        module.__class__ = torchs
    return torchs is not None
