"""What the daemon's answer says of a kernel."""
from __future__ import annotations

import ctypes as c
import json
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from .library import KernelFacts, Library


@dataclass(frozen=True)
class Facts:
    """One moment's truth: an upgrade may change a kernel between two readings, never within one."""

    op: str
    problem: str  # gemm{m=16,n=4096,k=4096,dtype=bf16,epilogue=none}
    variant: str  # gemm_mma{bk=32,…}
    quality: str  # exact | near | default | fallback
    source: str  # measured | predicted
    arch: str  # sm_90a
    device_class: str
    t_sol_us: float
    time_us: Optional[float]  # None: not measured on this problem
    sol_fraction: Optional[float]
    bound: str  # compute | memory
    flops: int
    bytes: int
    generation: int
    kernel_digest: str
    cubin_bytes: int
    note: str  # "tuning queued", …
    answer: Dict[str, Any] = field(repr=False)  # the whole answer, docs/protocol.md


def read(library: Library, handle: c.c_void_p) -> Facts:
    raw = raw_facts(library, handle)
    answer = json.loads(raw.json)
    return Facts(op=raw.op.decode(), problem=raw.problem.decode(), variant=raw.variant.decode(), quality=raw.quality.decode(),
                 source=raw.source.decode(), arch=raw.arch.decode(), device_class=answer.get("device_class", ""), t_sol_us=raw.t_sol_us,
                 time_us=raw.time_us or None, sol_fraction=raw.sol_fraction or None, bound=answer.get("bound", ""),
                 flops=answer.get("flops", 0), bytes=answer.get("bytes", 0), generation=raw.generation,
                 kernel_digest=answer.get("kernel_digest", ""), cubin_bytes=raw.cubin_bytes, note=answer.get("note", ""), answer=answer)


def raw_facts(library: Library, handle: c.c_void_p) -> KernelFacts:
    """Its pointers live until the kernel is released."""
    raw = KernelFacts(c.sizeof(KernelFacts))
    library.check(library.kernel_info(handle, c.byref(raw)))
    return raw
