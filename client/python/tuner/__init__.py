"""Ask the tunerd on this machine for CUDA kernels and launch them.

    with tuner.Client() as client:
        kernel = client.get("gemm", {"m": 16, "n": 4096, "k": 4096}, "bf16", {"epilogue": "none"})
        print(kernel.variant, kernel.quality, kernel.source, kernel.t_sol_us)
        kernel.launch({"x": x, "w": w, "y": y}, stream=torch.cuda.current_stream())

`tuner.torch` has torch ops over it. docs/python.md tells the rest.
"""
from .client import Client
from .errors import Error
from .facts import Facts
from .kernel import Kernel, Workspace
from .plan import Plan

__all__ = ["Client", "Error", "Facts", "Kernel", "Plan", "Workspace"]
__version__ = "0.1.0"
