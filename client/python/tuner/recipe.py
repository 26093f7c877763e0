"""The recipe's tensors, as far as a caller's tensors can be checked against them (docs/protocol.md, Recipes)."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, Union

from .errors import Error

BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "int32": 4}
Expr = Union[int, Sequence[Union[int, str]]]


class RecipeTensor(NamedTuple):
    name: str
    key: bytes  # the name, as the ABI takes it
    output: bool
    dtype: str
    shape: Tuple[Expr, ...]


class Recipe:
    """Of one problem; an op's tensors are the same for every variant of it, so an upgrade changes nothing here."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        problem = answer["problem_json"]
        self.dims: Dict[str, int] = dict(problem["dims"])
        # The eps asked for with get: the library itself would take the op's default.
        self.reals: Dict[str, float] = dict(problem.get("reals", {}))
        self.tensors: List[RecipeTensor] = [RecipeTensor(t["name"], t["name"].encode(), t["output"], t["dtype"], tuple(t["shape"]))
                                            for t in answer["recipe"]["tensors"] if t["present"]]
        self.names = tuple(tensor.name for tensor in self.tensors)
        self._shapes: Dict[Tuple[int, ...], Dict[str, Tuple[int, ...]]] = {}

    def shapes(self, dims: Mapping[str, int]) -> Dict[str, Tuple[int, ...]]:
        """Each tensor's shape with these dims in place of the problem's."""
        key = tuple(dims.get(name, value) for name, value in self.dims.items())
        if key not in self._shapes:
            symbols = dict(zip(self.dims, key))
            if len(self._shapes) >= 1024:
                self._shapes.clear()
            self._shapes[key] = {t.name: tuple(evaluate(expr, symbols) for expr in t.shape) for t in self.tensors}
        return self._shapes[key]


_OPERATORS: Dict[str, Callable[[int, int], int]] = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
                                                    "/": lambda a, b: a // b, "%": lambda a, b: a % b,
                                                    "ceildiv": lambda a, b: -(-a // b), "min": min, "max": max}


def evaluate(expr: Expr, symbols: Mapping[str, int]) -> int:
    """RPN of what shapes use; an operator that no shape needs is refused."""
    if isinstance(expr, int):
        return expr
    stack: List[int] = []
    for token in expr:
        if isinstance(token, int):
            stack.append(token)
        elif token in symbols:
            stack.append(symbols[token])
        elif token in _OPERATORS and len(stack) > 1:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPERATORS[token](left, right))
        else:
            raise Error("unsupported", "a tensor's shape uses a word that this client does not know", field="shape", value=str(token))
    return stack[-1]
