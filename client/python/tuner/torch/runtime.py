"""The process's connection for torch, and one launch plan for each problem that was asked for.

A plan is found by one dict probe (functional.py builds the keys); what is not served is remembered too, so that asking costs nothing later.
"""
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch

from ..client import Client, Path
from ..errors import Error
from ..facts import Facts
from ..kernel import Kernel

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
# Of these a later try may go better; the others stay as they are.
_PASSING = ("io", "deadline", "busy", "not_found")
_MAX_PLANS = 4096  # never evicted: a CUDA graph may hold what a plan holds

_raw_stream = torch._C._cuda_getCurrentRawStream if hasattr(torch._C, "_cuda_getCurrentRawStream") else None
_current_device = torch._C._cuda_getDevice if hasattr(torch._C, "_cuda_getDevice") else None


class Problem(NamedTuple):
    op: str
    dims: Mapping[str, int]
    dtype: str
    device: int
    names: Tuple[str, ...]  # tensors in the order of the pointers, the output last
    shape: Tuple[int, ...]  # of the output
    attributes: Mapping[str, Any] = {}
    strides: Mapping[str, int] = {}


class TorchPlan:
    """A kernel's plan on one device; run() says whether it was launched."""

    __slots__ = ("kernel", "launch", "device", "shape", "workspace_bytes", "problem", "text")

    def __init__(self, problem: Problem, kernel: Kernel) -> None:
        self.problem = problem
        self.kernel = kernel
        self.launch = kernel.plan(problem.names).launch
        self.device = problem.device
        self.shape = problem.shape
        self.workspace_bytes = kernel.workspace().bytes
        self.text = kernel.problem

    def run(self, pointers: Sequence[int]) -> bool:
        device = self.device
        if _current_device() != device:
            with torch.cuda.device(device):
                return self.run(pointers)
        try:
            if self.workspace_bytes and torch.cuda.is_current_stream_capturing():
                self._run_captured(pointers)
            else:
                self.launch(_raw_stream(device), pointers)
        except Error as error:
            return self._recover(error, pointers)
        return True

    def _run_captured(self, pointers: Sequence[int]) -> None:
        # The library's own workspace belongs to the stream of the capture; a graph may be replayed on any.
        kernel = self.kernel
        need = kernel.workspace()
        make = torch.zeros if need.zeroed else torch.empty
        memory = make(need.bytes + need.alignment, dtype=torch.uint8, device=torch.device("cuda", self.device))
        start = -(-memory.data_ptr() // need.alignment) * need.alignment
        problem = self.problem
        kernel.plan(problem.names, workspace=(start, need.bytes)).launch(_raw_stream(self.device), pointers)

    def _recover(self, error: Error, pointers: Sequence[int]) -> bool:
        if error.code == "invalid_argument":  # a pointer less aligned than this kernel needs
            runtime.note(self.text, error)
            return False
        if error.code == "device" and "context" in error.message and not error.field:
            # A thread on which torch only took memory from its cache: the first launch of its own makes the context current.
            torch.zeros(1, device=torch.device("cuda", self.device))
            self.launch(_raw_stream(self.device), pointers)
            return True
        raise error


class Runtime:
    def __init__(self) -> None:
        self.plans: Dict[Any, TorchPlan] = {}
        self._refused: Dict[Any, float] = {}  # key -> when to ask again
        self._reasons: Dict[str, str] = {}
        self._lock = threading.Lock()
        self._client: Optional[Client] = None
        self._connect_again = 0.0
        self._connect_error: Optional[Error] = None
        self._options: Dict[str, Any] = {}
        self._wait, self._deadline_ms, self._subscribe, self._retry_s = "now", 0, True, 10.0

    def connect(self, options: Mapping[str, Any], wait: str, deadline_ms: int, subscribe: bool, retry_s: float) -> None:
        self.disconnect()
        with self._lock:
            self._options = dict(options)
            self._wait, self._deadline_ms, self._subscribe, self._retry_s = wait, deadline_ms, subscribe, retry_s
            self._open()

    def disconnect(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            plans = dict(self.plans)
            self.plans.clear()  # the same dict: functions hold it
            self._refused.clear()
            self._reasons.clear()
            self._connect_error = None
        if plans and torch.cuda.is_available():
            torch.cuda.synchronize()  # the kernels' memory goes with them
        if client is not None:
            client.close()

    def make(self, key: Any, describe: Callable[[], Problem]) -> Optional[TorchPlan]:
        """The plan for a key that has none; None when torch is to compute it. `describe` raises Error for what no kernel is for."""
        again = self._refused.get(key)
        if again is not None and time.monotonic() < again:
            return None
        with self._lock:
            known = self.plans.get(key)
            if known is not None:
                return known
            text = str(key[0])
            try:
                if len(self.plans) >= _MAX_PLANS:
                    raise Error("unsupported", "more shapes than this process keeps kernels for", field="plans", value=str(_MAX_PLANS))
                problem = describe()
                text = _text(problem)
                plan = self._plan(problem)
            except Error as error:
                self.note(text, error)
                if len(self._refused) >= 16 * _MAX_PLANS:
                    self._refused.clear()
                self._refused[key] = time.monotonic() + self._retry_s if error.code in _PASSING else float("inf")
                return None
            self._reasons.pop(text, None)
            self.plans[key] = plan
            return plan

    def note(self, problem: str, why: Error) -> None:
        """What status() says of a problem that torch computes."""
        if len(self._reasons) < _MAX_PLANS:
            self._reasons[problem] = str(why)

    def status(self) -> Dict[str, Any]:
        client = self._client
        served = []
        for plan in list(self.plans.values()):
            facts = plan.kernel.facts
            served.append({"problem": facts.problem, "variant": facts.variant, "quality": facts.quality, "source": facts.source,
                           "time_us": facts.time_us, "t_sol_us": facts.t_sol_us, "device": plan.device})
        return {"connected": client is not None and client.connected, "served": served, "refused": dict(self._reasons)}

    def _open(self) -> Client:
        if self._client is None:
            if self._connect_error is not None and time.monotonic() < self._connect_again:
                raise self._connect_error.with_traceback(None)
            try:
                self._client = Client(name="tuner.torch", **self._options)
                if self._subscribe:
                    self._client.subscribe(self._upgraded)
            except Error as error:
                self._connect_again, self._connect_error = time.monotonic() + self._retry_s, error
                raise
        return self._client

    def _plan(self, problem: Problem) -> TorchPlan:
        kernel = self._open().get(problem.op, problem.dims, problem.dtype, problem.attributes, strides=problem.strides, wait=self._wait,
                                  deadline_ms=self._deadline_ms)
        _check_arch(kernel.arch, problem.device)
        with torch.cuda.device(problem.device):
            torch.zeros(1, device=torch.device("cuda", problem.device))  # makes the context current on this thread
            kernel.load()
        return TorchPlan(problem, kernel)

    def _upgraded(self, facts: Facts) -> None:
        for plan in list(self.plans.values()):
            if plan.text == facts.problem:
                plan.workspace_bytes = plan.kernel.workspace().bytes


def _check_arch(arch: str, device: int) -> None:
    """sm_90a runs on 9.0 alone, sm_80 on every 8.x from there on."""
    major, minor = torch.cuda.get_device_capability(device)
    digits = arch[len("sm_"):].rstrip("af")
    wants = int(digits[:-1]), int(digits[-1])
    exact = arch.endswith("a")
    if wants[0] != major or (minor != wants[1] if exact else minor < wants[1]):
        raise Error("unsupported", "the daemon's kernels are for another GPU", field="arch", value=arch,
                    expected=f"one for compute capability {major}.{minor}")


def _text(problem: Problem) -> str:
    parts = [f"{name}={value}" for name, value in problem.dims.items()] + [f"ld_{name}={value}" for name, value in problem.strides.items()]
    parts += [f"dtype={problem.dtype}"] + [f"{name}={value}" for name, value in problem.attributes.items()]
    return problem.op + "{" + ",".join(parts) + "}"


runtime = Runtime()


def connect(socket: Optional[Path] = None, library: Optional[Path] = None, *, wait: str = "now", deadline_ms: int = 0, subscribe: bool = True,
            retry_s: float = 10.0) -> None:
    """Connects now, with these choices, and forgets every plan. Raises tuner.Error when there is no daemon.

    wait       as for Client.get: "now" may compile at a shape's first call; "cached" never does, torch computes what is not tuned
    subscribe  kernels become better in place as the daemon's tuning goes on
    retry_s    after a failure that may pass (no daemon, a deadline), ask again after so long
    """
    runtime.connect({"socket": socket, "library": library}, wait, deadline_ms, subscribe, retry_s)


def disconnect() -> None:
    """Ends the connection and forgets every plan; the next call connects again. No CUDA graph that used a plan may live on."""
    runtime.disconnect()


def status() -> Dict[str, Any]:
    """{"connected": bool, "served": [facts of each kernel in use], "refused": {problem: why torch computes it}}"""
    return runtime.status()
