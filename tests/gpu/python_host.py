"""What a call of M=1 costs the host: tuner.torch, torch, and the parts that ours is made of."""
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

import tuner.torch as tt
from tuner.torch.runtime import runtime


def host_ns(function, calls=400, batches=25):
    """Host time of one call: the stream is empty before each batch and not waited for within it."""
    for _ in range(50):
        function()
    times = []
    for _ in range(batches):
        torch.cuda.synchronize()
        started = time.perf_counter_ns()
        for _ in range(calls):
            function()
        times.append((time.perf_counter_ns() - started) / calls)
    torch.cuda.synchronize()
    return round(statistics.median(times))


def host_cost():
    """host cost of one call with M=1, in nanoseconds: ours, torch's, and the parts"""
    client = runtime._open()
    out = {}
    for n, k in ((256, 256), (4096, 4096)):
        x, w, b = (torch.randn(*shape, device="cuda").bfloat16() for shape in ((1, k), (n, k), (n,)))
        module = nn.Linear(k, n, bias=False, device="cuda", dtype=torch.bfloat16)
        size = f"1x{n}x{k}"
        for mode, guard in (("no_grad", torch.no_grad), ("inference", torch.inference_mode)):
            with guard():
                out[f"{size} {mode} tuner.torch.linear"] = host_ns(lambda: tt.linear(x, w))
                out[f"{size} {mode} torch linear"] = host_ns(lambda: F.linear(x, w))
                out[f"{size} {mode} tuner.torch.linear bias"] = host_ns(lambda: tt.linear(x, w, b))
                out[f"{size} {mode} torch linear bias"] = host_ns(lambda: F.linear(x, w, b))
                out[f"{size} {mode} torch nn.Linear"] = host_ns(lambda: module(x))
                with tt.patch(module):
                    out[f"{size} {mode} patched nn.Linear"] = host_ns(lambda: module(x))
        with torch.no_grad():
            out[f"{size} no_grad torch.ops.tuner.linear"] = host_ns(lambda: torch.ops.tuner.linear.default(x, w))
            kernel = client.get("gemm", {"m": 1, "n": n, "k": k}, "bf16", {"epilogue": "none"})
            y = torch.empty(1, n, device="cuda", dtype=torch.bfloat16)
            stream = torch.cuda.current_stream().cuda_stream
            plan, pointers = kernel.plan(("x", "w", "y")), (x.data_ptr(), w.data_ptr(), y.data_ptr())
            out[f"{size} Plan"] = host_ns(lambda: plan(stream, *pointers))
            slot = plan._free[0]
            out[f"{size} tuner_launch by ctypes"] = host_ns(lambda: plan._launch(plan._handle, stream, slot[1]))
            out[f"{size} Kernel.launch of tensors"] = host_ns(lambda: kernel.launch({"x": x, "w": w, "y": y}, stream=stream))
            out[f"{size} Kernel.launch of ints"] = host_ns(lambda: kernel.launch(dict(zip(("x", "w", "y"), pointers)), stream=stream))
            out[f"{size} x.new_empty"] = host_ns(lambda: x.new_empty((1, n)))
        g = torch.ones(k, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            out[f"1x{k} tuner.torch.rms_norm"] = host_ns(lambda: tt.rms_norm(x, (k,), g, 1e-5))
            out[f"1x{k} torch rms_norm"] = host_ns(lambda: F.rms_norm(x, (k,), g, 1e-5))
            out[f"1x{k} tuner.torch.softmax"] = host_ns(lambda: tt.softmax(x))
            out[f"1x{k} torch softmax"] = host_ns(lambda: F.softmax(x, -1))
    for text, ns in out.items():
        print(f"  {ns / 1000:8.2f} us  {text}", flush=True)
    return out
