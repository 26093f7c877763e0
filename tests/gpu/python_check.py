#!/usr/bin/env python3
"""The Python package on a real GPU with torch: right results, graphs, torch.compile, a patched model, host cost.

Starts a tunerd of its own. Every function is compared with torch in fp64; that a kernel of the daemon computed it is checked too.

  tests/gpu/python_check.py --out FILE.json [--build build] [--no-compile] [--commit HASH]
"""
import argparse
import datetime
import json
import os
import sys
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "client", "python"), os.path.join(ROOT, "tests", "gpu")]

import torch  # noqa: E402
from harness import Daemon, device_facts  # noqa: E402
from python_decoder import Decoder  # noqa: E402
from python_host import host_cost  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import tuner  # noqa: E402
import tuner.torch as tt  # noqa: E402
from tuner.torch import eager, ops  # noqa: E402

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
CHECKS = {}
FACTS = {}


def check(function):
    """Runs it now; what it raises is its failure, and the others still run."""
    name = function.__doc__.strip()
    started = time.monotonic()
    try:
        FACTS.setdefault("details", {})[name] = function()
        CHECKS[name] = True
    except Exception as error:  # noqa: BLE001
        CHECKS[name] = False
        FACTS.setdefault("failures", {})[name] = f"{type(error).__name__}: {error}"[:2000]
        traceback.print_exc()
    print(f"{'passed' if CHECKS[name] else 'FAILED'}  {name}  {time.monotonic() - started:.1f} s", flush=True)


def gaussian(*shape, dtype=BF16, scale=1.0):
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def close(got, want, floor=1e-4):
    """`want` is fp64; the largest error in units of what rounding to the dtype allows, at most 1."""
    bound = torch.finfo(got.dtype).eps * want.abs() + floor
    worst = ((got.double() - want).abs() / bound).max().item()
    assert worst <= 1, f"error of {worst:.3g} times the bound"
    return round(worst, 3)


def served(y, what):
    assert y is not None, f"{what} was not served: {tt.status()['refused']}"
    return y


@torch.no_grad()
def linear_is_right():
    """linear against fp64: sizes, dtypes, bias, leading dimensions, padded rows"""
    worst = {}
    for m, n, k in ((1, 4096, 4096), (16, 512, 1024), (77, 333, 129), (512, 1024, 2048)):
        for dtype in (BF16, FP16):
            x, w, b = gaussian(m, k, dtype=dtype), gaussian(n, k, dtype=dtype, scale=k**-0.5), gaussian(n, dtype=dtype)
            for bias in (None, b):
                want = F.linear(x.double(), w.double(), None if bias is None else bias.double())
                y = served(eager.linear(x, w, bias), f"linear {m} {n} {k}")
                assert y.shape == want.shape and y.dtype == dtype
                worst[f"{m}x{n}x{k} {dtype} {'bias' if bias is not None else 'none'}"] = close(y, want)
    x, w = gaussian(3, 5, 256), gaussian(512, 256, scale=1 / 16)
    worst["3x5x256"] = close(tt.linear(x, w), F.linear(x.double(), w.double()))
    wide = gaussian(32, 512)[:, :256]
    worst["padded"] = close(served(eager.linear(wide, w), "padded rows"), F.linear(wide.double(), w.double()))
    return worst


@torch.no_grad()
def rows_are_right():
    """rms_norm, layer_norm, softmax, gelu and swiglu against fp64"""
    worst = {}
    for shape in ((1, 4096), (16, 1024), (63, 1000), (4, 33, 2048), (7, 131072)):
        for dtype in (BF16, FP16, FP32):
            x, g, b = gaussian(*shape, dtype=dtype), gaussian(shape[-1], dtype=dtype), gaussian(shape[-1], dtype=dtype)
            xd, gd, bd, cols = x.double(), g.double(), b.double(), shape[-1:]
            for name, y, want, floor in (
                    ("rms_norm", eager.rms_norm(x, g, 1e-5), F.rms_norm(xd, cols, gd, 1e-5), 1e-5),
                    ("layer_norm", eager.layer_norm(x, g, b, 1e-5), F.layer_norm(xd, cols, gd, bd, 1e-5), 1e-5),
                    ("softmax", eager.softmax(x), xd.softmax(-1), 1e-6), ("gelu", eager.gelu(x), F.gelu(xd), 1e-5),
                    ("swiglu", eager.swiglu(x), ops.torch_swiglu(xd), 1e-5)):
                served(y, f"{name} {shape} {dtype}")
                assert y.shape == want.shape and y.dtype == dtype
                key = f"{name} {dtype}"
                worst[key] = max(worst.get(key, 0), close(y, want, floor))
    strided = gaussian(16, 8, 512)[:, :, :256]
    close(served(eager.softmax(strided), "rows at a distance"), strided.double().softmax(-1), 1e-6)
    return worst


@torch.no_grad()
def fallback_is_torch():
    """what is not served is torch's own result: CPU, fp64, fp32 linear, transposed, misaligned, empty, autocast, vmap"""
    x, w = gaussian(16, 256), gaussian(64, 256)
    for a, b in ((x.cpu(), w.cpu()), (x.double(), w.double()), (x.float(), w.float()), (gaussian(256, 16).t(), w), (x[:0], w)):
        assert torch.equal(tt.linear(a, b), F.linear(a, b)), (a.shape, a.dtype)
    odd = gaussian(16 * 256 + 1)[1:].view(16, 256)
    close(tt.linear(odd, w), F.linear(odd.double(), w.double()), 1e-3)
    close(tt.softmax(odd), odd.double().softmax(-1), 1e-6)
    assert torch.equal(tt.softmax(x, 0), F.softmax(x, 0))
    with torch.autocast("cuda", dtype=BF16):
        assert torch.equal(tt.linear(x.float(), w.float()), F.linear(x.float(), w.float()))
    assert torch.equal(torch.vmap(tt.linear, (0, None))(x, w), torch.vmap(F.linear, (0, None))(x, w))


def gradients_are_right():
    """linear's gradients against fp64; rms_norm, layer_norm, softmax, gelu and swiglu still have theirs"""
    x, w, b = (t.requires_grad_() for t in (gaussian(32, 256), gaussian(128, 256, scale=1 / 16), gaussian(128)))
    grad = gaussian(32, 128)
    got = torch.autograd.grad(tt.linear(x, w, b), (x, w, b), grad)
    xd, wd, bd = (t.detach().double().requires_grad_() for t in (x, w, b))
    want = torch.autograd.grad(F.linear(xd, wd, bd), (xd, wd, bd), grad.double())
    worst = [close(a, e, 1e-3) for a, e in zip(got, want)]
    g = gaussian(256).requires_grad_()
    for y in (tt.rms_norm(x, (256,), g), tt.layer_norm(x, (256,), g, g), tt.softmax(x), tt.gelu(x), tt.swiglu(x)):
        y.float().sum().backward()
    assert x.grad is not None and g.grad is not None
    return worst


def opcheck():
    """torch.library.opcheck of linear: schema, fake kernel, autograd, ahead-of-time dispatch"""
    for needs in (False, True):
        x, w, b = gaussian(8, 256), gaussian(64, 256), gaussian(64)
        torch.library.opcheck(torch.ops.tuner.linear.default, tuple(t.requires_grad_(needs) for t in (x, w, b)))
    torch.library.opcheck(torch.ops.tuner.rms_norm.default, (gaussian(8, 256), gaussian(256), 1e-5))
    torch.library.opcheck(torch.ops.tuner.swiglu.default, (gaussian(8, 256),))


@torch.no_grad()
def graphs():
    """a CUDA graph of linear, rms_norm and softmax, replayed on another stream with new data"""
    x, w, g = gaussian(16, 1024), gaussian(1024, 1024, scale=1 / 32), gaussian(1024)

    def work():
        return tt.softmax(tt.rms_norm(tt.linear(x, w), (1024,), g, 1e-5))

    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = work()
    other = torch.cuda.Stream()
    for _ in range(3):
        x.copy_(gaussian(16, 1024))
        torch.cuda.synchronize()
        with torch.cuda.stream(other):
            graph.replay()
        torch.cuda.synchronize()
        got = y.clone()
        assert torch.equal(got, work()) or close(got, work().double(), 1e-5) <= 1


@torch.no_grad()
def threads():
    """four threads, each with its own stream, at once"""
    wrong = []

    def work(seed):
        try:
            with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()):
                x, w = gaussian(16 + seed, 512), gaussian(256, 512, scale=1 / 16)
                want = F.linear(x.double(), w.double())
                for _ in range(200):
                    close(served(eager.linear(x, w), "linear"), want, 1e-3)
        except BaseException as error:  # noqa: BLE001
            wrong.append(repr(error))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, wrong


@torch.no_grad()
def core_launch():
    """tuner.Client without tuner.torch: launch of torch tensors by __cuda_array_interface__, DLPack and int pointers"""
    with tuner.Client(DAEMON.socket) as client:
        x, y = gaussian(16, 1024, dtype=FP32), torch.empty(16, 1024, device="cuda", dtype=FP32)
        kernel = client.get("softmax", {"rows": 16, "cols": 1024}, "fp32")

        class Cai:
            def __init__(self, tensor):
                self.__cuda_array_interface__ = tensor.__cuda_array_interface__

        class DLPack:
            def __init__(self, tensor):
                self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

        for kind in (lambda t: t, Cai, DLPack, lambda t: t.data_ptr()):
            y.fill_(float("nan"))
            kernel.launch({"x": kind(x), "y": kind(y)}, stream=torch.cuda.current_stream())
            close(y, x.double().softmax(-1), 1e-6)
        try:
            import cupy
        except ModuleNotFoundError:
            return "no CuPy here"
        a, b = cupy.random.rand(16, 1024, dtype=cupy.float32), cupy.empty((16, 1024), cupy.float32)
        kernel.launch([a, b], stream=cupy.cuda.get_current_stream())
        cupy.cuda.get_current_stream().synchronize()
        close(torch.from_dlpack(b), torch.from_dlpack(a).double().softmax(-1), 1e-6)
        return f"CuPy {cupy.__version__}"


@torch.no_grad()
def patched_model():
    """patch and unpatch of a Llama-shaped decoder: as near to fp32 as torch's own, and bit for bit the old one afterwards"""
    model = Decoder().cuda().to(BF16).eval()
    tokens = torch.randint(0, 4096, (2, 64), device="cuda")
    exact = Decoder().cuda()
    exact.load_state_dict(model.state_dict())
    want, plain = exact(tokens), model(tokens)
    kinds = [type(module) for module in model.modules()]
    with tt.patch(model) as patched:
        count = len(patched.modules)
        assert all(type(module).__module__ == "tuner.torch.modules" for module in patched.modules)
        ours = model(tokens)
    assert count == 3 * 7 + 1 + 3 * 2 + 1, count
    assert [type(module) for module in model.modules()] == kinds
    assert torch.equal(model(tokens), plain)
    error, own = ((y.float() - want).abs().mean().item() for y in (ours, plain))
    assert error <= 1.2 * own, (error, own)
    tt.patch(model, only=[nn.RMSNorm])
    assert tt.unpatch(model) == 7 and tt.unpatch(model) == 0
    asked = {entry["problem"].split("{")[0] for entry in tt.status()["served"]}
    assert {"gemm", "rmsnorm"} <= asked
    return {"modules": count, "mean_error": error, "torch_mean_error": own}


@torch.no_grad()
def patched_graph():
    """a CUDA graph of the patched decoder"""
    model = Decoder().cuda().to(BF16).eval()
    tokens = torch.randint(0, 4096, (1, 32), device="cuda")
    with tt.patch(model):
        for _ in range(2):
            model(tokens)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(tokens)
        for _ in range(3):
            tokens.copy_(torch.randint(0, 4096, (1, 32), device="cuda"))
            graph.replay()
            got = y.clone()
            want = model(tokens)
            assert torch.equal(got, want) or (got.float() - want.float()).abs().max() < 0.1


def compiled():
    """torch.compile, whole graph: functions, the patched decoder (our ops in its graph), a training step"""
    from torch._dynamo.testing import CompileCounterWithBackend

    x, w, b, g = gaussian(16, 1024), gaussian(1024, 1024, scale=1 / 32), gaussian(1024), gaussian(1024)

    def work(x, w, b, g):
        return tt.swiglu(tt.gelu(tt.softmax(tt.layer_norm(tt.rms_norm(tt.linear(x, w, b), (1024,), g, 1e-5), (1024,), g, b))))

    with torch.no_grad():
        close(torch.compile(work, fullgraph=True)(x, w, b, g), work(x, w, b, g).double(), 1e-3)
    model = Decoder().cuda().to(BF16).eval()
    tokens = torch.randint(0, 4096, (2, 64), device="cuda")
    with tt.patch(model), torch.no_grad():
        seen = CompileCounterWithBackend("inductor")
        fast = torch.compile(model, fullgraph=True, backend=seen)(tokens)
        want = model(tokens)
        targets = [str(node.target) for node in seen.graphs[0].graph.nodes]
        assert targets.count("tuner.linear.default") == 22 and targets.count("tuner.rms_norm.default") == 7, targets
        assert (fast.float() - want.float()).abs().mean() < 0.02
        torch.compile(model, fullgraph=True, mode="reduce-overhead")(tokens)
    layer = nn.Linear(256, 128, device="cuda", dtype=BF16)
    with tt.patch(layer):
        torch.compile(layer, fullgraph=True)(gaussian(8, 256)).float().sum().backward()
    want = layer.weight.grad.clone()
    layer.weight.grad = None
    assert want.abs().sum() > 0
    return {"graph_ops": len(targets)}


def other_device():
    """tensors of a second GPU while the first is current"""
    if torch.cuda.device_count() < 2:
        return "one GPU here"
    with torch.no_grad():
        x, w = gaussian(16, 256).to("cuda:1"), gaussian(64, 256, scale=1 / 16).to("cuda:1")
        y = served(eager.linear(x, w), "the second GPU")
        assert y.get_device() == 1 and torch.cuda.current_device() == 0
        return close(y, F.linear(x.double(), w.double()))


def no_daemon():
    """without a daemon everything is torch's, and says why"""
    tt.disconnect()
    try:
        tt.connect(DAEMON.socket + ".gone")
        raise AssertionError("connected to nothing")
    except tuner.Error as error:
        assert error.code == "io"
    with torch.no_grad():
        x, w = gaussian(16, 256), gaussian(64, 256)
        assert torch.equal(tt.linear(x, w), F.linear(x, w))
    status = tt.status()
    assert not status["connected"] and not status["served"] and status["refused"]


def main():
    global DAEMON
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--commit", default="")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    torch.manual_seed(1)
    os.environ["TUNER_LIBRARY"] = os.path.join(options.build, "lib", "libtuner.so.0")
    # Not tuned: what is checked here is the way to the kernels, and tuning would disturb the host times.
    with Daemon(os.path.join(options.build, "bin"), extra=["--no-tune"]) as daemon:
        DAEMON = daemon
        tt.connect(daemon.socket)
        for function in (linear_is_right, rows_are_right, fallback_is_torch, gradients_are_right, opcheck, graphs, threads, other_device, core_launch,
                         patched_model, patched_graph, *(() if options.no_compile else (compiled,)), host_cost):
            check(function)
        FACTS["served"] = tt.status()["served"]
        check(no_daemon)
    result = {"what": "The Python package on a GPU", "date": datetime.date.today().isoformat(), **device_facts(), "torch": torch.__version__,
              "python": sys.version.split()[0], "commit": options.commit, "command": " ".join(sys.argv), "checks": CHECKS, **FACTS}
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1, default=str)
        file.write("\n")
    failed = [name for name, ok in CHECKS.items() if not ok]
    print(f"{len(CHECKS) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
