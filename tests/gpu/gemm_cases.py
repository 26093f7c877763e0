"""What gemm_check runs in a killable process: one kernel over many shapes, against PyTorch in fp64."""
import math

import torch

import cuda_launch
from cuda_launch import TORCH

UNIT_ROUNDOFF = {"bf16": 2.0**-8, "fp16": 2.0**-11}
GUARD = 512  # elements before and behind y, and bytes behind the workspace


def padded(rows, cols, ld, dtype, make, offset=0):
    """A [rows, cols] view with row stride ld; all that lies around it is NaN. `offset` elements shift its first element."""
    flat = torch.full((rows * ld + offset + 8,), float("nan"), dtype=dtype, device="cuda")
    view = flat[offset:offset + rows * ld].view(rows, ld)[:, :cols]
    view.copy_(make(rows, cols))
    return view


def integers(rows, cols):
    return torch.randint(-2, 3, (rows, cols), device="cuda", dtype=torch.int8)


def gaussian(rows, cols):
    return torch.randn(rows, cols, device="cuda")


def expected(x, w, bias, residual, epilogue):
    """The value in fp64, and how far an fp32 implementation may be from it before its output is rounded."""
    a, b = x.double(), w.double()
    acc = a @ b.T
    error = math.sqrt(x.shape[1]) * 2.0**-24 * a.norm(dim=1)[:, None] * b.norm(dim=1)[None, :]
    size = acc.abs()
    value = acc
    if bias is not None:
        value = value + bias.double()
        size = size + bias.double().abs()
    if epilogue == "gelu":
        value = torch.nn.functional.gelu(value)
    if epilogue == "silu":
        value = torch.nn.functional.silu(value)
    if residual is not None:
        value = value + residual.double()
        size = size + residual.double().abs()
    return value, 1.13 * error + 2.0**-22 * size


class Case:
    """Sizes and paddings of one run; None where a kernel's validity excludes it."""

    def __init__(self, m, n, k, pad=(0, 0, 0, 0), offset=0):
        self.m, self.n, self.k, self.offset = m, n, k, offset
        self.sizes = dict(m=m, n=n, k=k, ld_x=k + pad[0], ld_w=k + pad[1], ld_residual=n + pad[2], ld_y=n + pad[3])

    def __str__(self):
        s = self.sizes
        return f"m={self.m} n={self.n} k={self.k} ld={s['ld_x']},{s['ld_w']},{s['ld_residual']},{s['ld_y']} offset={self.offset}"


def cases(names):
    tile_m, tile_n = names.get("bm", 16 * names.get("tm", 1)), names.get("bn", 16 * names.get("tn", 1))
    yield Case(1, 1, 8)
    yield Case(1, 256, 512)
    yield Case(17, 33, 72, (8, 16, 3, 1))
    yield Case(tile_m, tile_n, 256)
    yield Case(tile_m + 1, tile_n + 1, 520, (0, 8, 0, 0))
    yield Case(2 * tile_m - 1, 3 * tile_n - 2, 1000, (8, 0, 2, 4))
    yield Case(5 * tile_m + 3, 9 * tile_n + 7, 328, (16, 24, 1, 3))
    yield Case(64, 1024, 4096)
    yield Case(515, 770, 2056, (0, 0, 0, 2))
    yield Case(33, 47, 61, (3, 5, 7, 9), offset=1)  # only the fallback takes these
    yield Case(5, 3, 1, (0, 0, 0, 0), offset=3)


class Kernel:
    def __init__(self, launcher, names, dtype, epilogue):
        self.launcher, self.names, self.dtype, self.epilogue = launcher, names, dtype, epilogue
        # Zeroed once and then shared by every launch: kernels must leave its counters as they found them.
        self.workspace_bytes = max(launcher.workspace_bytes(c.sizes) for c in cases(names))
        self.workspace = torch.zeros(self.workspace_bytes + GUARD, dtype=torch.uint8, device="cuda")
        self.workspace[self.workspace_bytes:] = 0xAB

    def run(self, case, make):
        """A list of complaints, empty when right."""
        element = TORCH[self.dtype]
        s, m, n = case.sizes, case.m, case.n
        x = padded(m, case.k, s["ld_x"], element, make, case.offset)
        w = padded(n, case.k, s["ld_w"], element, make, case.offset)
        bias = padded(1, n, n, element, make, case.offset)[0] if "bias" in self.epilogue else None
        residual = padded(m, n, s["ld_residual"], element, make, case.offset) if "residual" in self.epilogue else None
        memory = torch.full((GUARD * 2 + m * s["ld_y"],), -1, dtype=torch.int16, device="cuda")
        y = memory.view(element)[GUARD + case.offset:]
        pointers = dict(x=x.data_ptr(), w=w.data_ptr(), bias=0 if bias is None else bias.data_ptr(),
                        residual=0 if residual is None else residual.data_ptr(), y=y.data_ptr())
        launch = self.launcher.prepare(s, pointers, self.workspace.data_ptr() if self.workspace_bytes else 0)
        launch()
        torch.cuda.synchronize()
        first = memory.clone()
        out = y[:m * s["ld_y"]].view(m, s["ld_y"])[:, :n]
        value, error = expected(x, w, bias, residual, self.epilogue)
        complaints = self.compare(out, value, error, exact=make is integers and self.epilogue not in ("gelu", "silu"))
        launch()
        torch.cuda.synchronize()
        if not torch.equal(first, memory):
            complaints.append("a second run gave other bits")
        out.copy_(torch.full((1, 1), -1, dtype=torch.int16, device="cuda").view(element).expand(m, n))
        touched = int((memory != -1).sum())
        if touched:
            complaints.append(f"{touched} elements outside of y were written")
        if bool((self.workspace[self.workspace_bytes:] != 0xAB).any()):
            complaints.append("written behind the workspace")
        return complaints

    def compare(self, out, value, error, exact):
        if exact:
            wrong = out.view(torch.int16) != value.to(out.dtype).view(torch.int16)
            wrong &= ~((out == 0) & (value == 0))  # -0 and 0 are one value
        else:
            tiny = 2.0**-25 if self.dtype == "fp16" else 0.0
            wrong = ~((out.double() - value).abs() <= UNIT_ROUNDOFF[self.dtype] * value.abs() + error + tiny)
        count = int(wrong.sum())
        if not count:
            return []
        row, col = [int(v) for v in wrong.nonzero()[0]]
        last = [int(v) for v in wrong.nonzero()[-1]]
        return [f"{count} of {wrong.numel()} wrong{' (exact)' if exact else ''}, first [{row},{col}] is {float(out[row, col])} not {float(value[row, col])}, "
                f"last {last}"]

    def verify(self):
        complaints, ran = [], 0
        for case in cases(self.names):
            if not self.launcher.valid(case.sizes) or (case.offset and self.launcher.template.get("align_bytes", {}).get("x", 16) > 2):
                continue
            for make in (integers, gaussian):
                ran += 1
                complaints += [f"{case} {make.__name__}: {text}" for text in self.run(case, make)]
        return ran, complaints

    def time_us(self, m, n, k, repeats=10):
        case, element = Case(m, n, k), TORCH[self.dtype]
        if not self.launcher.valid(case.sizes):
            return None
        tensors = dict(x=gaussian(m, k).to(element), w=gaussian(n, k).to(element), bias=gaussian(1, n).to(element), residual=gaussian(m, n).to(element),
                       y=torch.empty(m, n, dtype=element, device="cuda"))
        workspace = torch.zeros(max(1, self.launcher.workspace_bytes(case.sizes)), dtype=torch.uint8, device="cuda")
        launch = self.launcher.prepare(case.sizes, {name: t.data_ptr() for name, t in tensors.items()}, workspace.data_ptr())
        return timed_us(launch, repeats)


def timed_us(call, repeats=10):
    call()
    call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1000 / repeats


def past_32_bits(launcher, dtype):
    """Tensors of more than 2^32 bytes and 2^31 elements: x in one run, y in the other; the last rows and some in between."""
    complaints = []
    for m, n, k in ((1_048_579, 40, 2056), (65_539, 32_776, 8)):
        case, element = Case(m, n, k), TORCH[dtype]
        if not launcher.valid(case.sizes):
            complaints.append(f"{case}: not valid for this kernel")
            continue
        x, w = integers(m, k).to(element), integers(n, k).to(element)
        y = torch.full((m, n), float("nan"), dtype=element, device="cuda")
        workspace = torch.zeros(max(1, launcher.workspace_bytes(case.sizes)), dtype=torch.uint8, device="cuda")
        launcher.prepare(case.sizes, dict(x=x.data_ptr(), w=w.data_ptr(), bias=0, residual=0, y=y.data_ptr()), workspace.data_ptr())()
        torch.cuda.synchronize()
        for first in (0, m // 2, m - 300):
            rows = slice(first, first + 300)
            if not torch.equal(y[rows].double(), (x[rows].double() @ w.double().T).to(element).double()):
                complaints.append(f"{case}: rows from {first} on are wrong")
        if bool(torch.isnan(y).any()):
            complaints.append(f"{case}: some of y was never written")
        del x, w, y
    return complaints


def check_reference(op, cubin, dtype, epilogue):
    """The op's own reference against PyTorch in fp64, and its error bound against ours."""
    element, m, n, k = TORCH[dtype], 77, 53, 345
    x, w = padded(m, k, k + 3, element, gaussian), padded(n, k, k + 1, element, gaussian)
    bias = padded(1, n, n, element, gaussian)[0] if "bias" in epilogue else None
    residual = padded(m, n, n + 5, element, gaussian) if "residual" in epilogue else None
    y, err = (torch.full((m, n), float("nan"), dtype=torch.float64, device="cuda") for _ in range(2))
    pointer = lambda t: 0 if t is None else t.data_ptr()
    arguments = [pointer(x), pointer(w), pointer(bias), pointer(residual), y.data_ptr(), err.data_ptr(), m, n, k, k + 3, k + 1, n + 5]
    cuda_launch.launch_reference(cubin, op.json["reference"]["entry"], m * n, arguments)
    value, error = expected(x, w, bias, residual, epilogue)
    complaints = []
    if not torch.allclose(y, value, rtol=1e-11, atol=1e-11):
        complaints.append(f"values differ by up to {float((y - value).abs().max())}")
    if not bool((err > 0).all()) or not bool((err <= 4 * error + 1e-12).all()):
        complaints.append(f"error bound {float(err.min())} to {float(err.max())}, expected at most about {float(error.max())}")
    return complaints
