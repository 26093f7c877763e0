"""torch over tuner: ops that the daemon's kernels serve, and patch(model) to use them in a model as it is.

    import tuner.torch
    tuner.torch.connect()                      # optional: the first call connects by itself
    y = tuner.torch.linear(x, weight, bias)    # as torch.nn.functional.linear
    with tuner.torch.patch(model):             # nn.Linear, nn.RMSNorm, nn.LayerNorm, nn.Softmax, nn.GELU
        model(tokens)

What is not served — another dtype, a CPU tensor, a layout, no daemon — is computed by torch itself, silently; status() tells.
"""
try:
    import torch as _torch
except ModuleNotFoundError as why:
    if why.name != "torch":
        raise
    raise ImportError("tuner.torch needs PyTorch, which is not installed here; tuner.Client works without it") from None

if not hasattr(_torch.library, "register_autograd"):
    raise ImportError(f"tuner.torch needs PyTorch 2.4 or newer, this is {_torch.__version__}")

from .functional import gelu, layer_norm, linear, rms_norm, softmax, swiglu  # noqa: E402
from .modules import Patched, patch, unpatch  # noqa: E402
from .runtime import connect, disconnect, status  # noqa: E402

__all__ = ["Patched", "connect", "disconnect", "gelu", "layer_norm", "linear", "patch", "rms_norm", "softmax", "status", "swiglu", "unpatch"]
