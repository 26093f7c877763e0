"""Launches compiled template kernels by their manifest's recipe: libcuda through ctypes, memory and streams from PyTorch.

Independent of libtuner, so that a recipe that both get right is right.
"""
import ctypes

import torch

from manifest import evaluate

MAX_DYNAMIC_SMEM = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
TENSOR_MAP_DTYPE = {"fp16": 6, "fp32": 7, "bf16": 9}
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC_STREAM_SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
SWIZZLE = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
L2_PROMOTION = {"none": 0, "64B": 1, "128B": 2, "256B": 3}
TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16}

_cuda = ctypes.CDLL("libcuda.so.1")


def check(rc, what):
    if rc:
        text = ctypes.c_char_p()
        _cuda.cuGetErrorString(rc, ctypes.byref(text))
        raise RuntimeError(f"{what}: {rc} {(text.value or b'').decode()}")


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("smem", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id, padding to 8, a value of 64 bytes."""
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


def swizzle_of(spec, box, dtype):
    choices = spec.get("swizzle_by_inner_bytes")
    return choices[str(box[0] * ELEMENT_BYTES[dtype])] if choices else spec.get("swizzle", "none")


def encode_map(spec, dtype, pointer, names):
    """The 128-byte tensor map, aligned to 128; the buffer it lies in is returned with it and must outlive the launch."""
    dims = [evaluate(e, names) for e in spec["dims"]]
    strides = [evaluate(e, names) for e in spec["strides_bytes"]]
    box = [evaluate(e, names) for e in spec["box"]]
    rank = len(dims)
    buffer = (ctypes.c_ubyte * 256)()
    at = (ctypes.addressof(buffer) + 127) & ~127
    check(_cuda.cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), TENSOR_MAP_DTYPE[dtype], rank, ctypes.c_void_p(pointer), (ctypes.c_uint64 * rank)(*dims),
        (ctypes.c_uint64 * (rank - 1))(*strides), (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*([1] * rank)), 0,
        SWIZZLE[swizzle_of(spec, box, dtype)], L2_PROMOTION[spec.get("l2_promotion", "none")], 0), f"tensor map of {spec['tensor_map']}")
    return at, buffer


class Launcher:
    """One kernel. `names` hold parameters, derived values and the device's; dimensions and strides come with each launch."""

    def __init__(self, cubin, template, names, dtype):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.template, self.names, self.dtype = template, names, dtype
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        check(_cuda.cuModuleLoadData(ctypes.byref(self.module), cubin), "cuModuleLoadData")
        check(_cuda.cuModuleGetFunction(ctypes.byref(self.function), self.module, template["entry"].encode()), "cuModuleGetFunction")
        self.smem = evaluate(template["launch"].get("dynamic_smem_bytes", 0), names)
        if self.smem > 48 * 1024:
            check(_cuda.cuFuncSetAttribute(self.function, MAX_DYNAMIC_SMEM, self.smem), "dynamic shared memory")
        self.cluster = ([evaluate(c, names) for c in template["launch"].get("cluster", [])] + [1, 1, 1])[:3]

    def valid(self, sizes):
        names = dict(self.names, **sizes)
        return all(evaluate(rule["if"], names) for rule in self.template.get("validity", []))

    def workspace_bytes(self, sizes):
        names = dict(self.names, **sizes)
        return sum(evaluate(a["workspace"], names) for a in self.template["arguments"] if "workspace" in a)

    def prepare(self, sizes, pointers, workspace):
        """A callable that launches on PyTorch's current stream. `pointers`: tensor name to address, 0 for an absent one."""
        names = dict(self.names, **sizes)
        values = []
        for argument in self.template["arguments"]:
            if "tensor" in argument:
                values.append(ctypes.c_void_p(pointers[argument["tensor"]]))
            elif "scalar" in argument:
                values.append((ctypes.c_longlong if argument["type"] == "i64" else ctypes.c_int)(evaluate(argument["expr"], names)))
            elif "workspace" in argument:
                values.append(ctypes.c_void_p(workspace))
            elif not pointers[argument["tensor_map"]]:
                values.append(ctypes.c_void_p(0))  # nothing can be mapped of an absent tensor: null like any other
            else:
                values.append(encode_map(argument, self.dtype, pointers[argument["tensor_map"]], names))
        addresses = [v[0] if isinstance(v, tuple) else ctypes.addressof(v) for v in values]
        params = (ctypes.c_void_p * len(values))(*addresses)
        grid = [evaluate(e, names) for e in self.template["launch"]["grid"]]
        block = [evaluate(e, names) for e in self.template["launch"]["block"]]

        wanted = [LaunchAttribute(CLUSTER_DIMENSION, b"", (ctypes.c_uint * 16)(*self.cluster))] if self.cluster != [1, 1, 1] else []
        if self.template["launch"].get("pdl", False):
            wanted.append(LaunchAttribute(PROGRAMMATIC_STREAM_SERIALIZATION, b"", (ctypes.c_uint * 16)(1)))
        attributes = (LaunchAttribute * 2)(*wanted)
        config = LaunchConfig((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), self.smem, None,
                              ctypes.addressof(attributes), len(wanted))

        def launch(keep=(values, attributes)):
            config.stream = torch.cuda.current_stream().cuda_stream
            check(_cuda.cuLaunchKernelEx(ctypes.byref(config), self.function, params, None), f"launch of {grid} x {block}, cluster {self.cluster}")

        return launch


def launch_reference(cubin, entry, elements, arguments):
    """The op's reference: pointers (int), sizes (int); one thread an element of the first output, a grid of one dimension."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(_cuda.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
    check(_cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()), "cuModuleGetFunction")
    values = [ctypes.c_longlong(a) for a in arguments]
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    check(_cuda.cuLaunchKernel(function, min(-(-elements // 256), 1 << 20), 1, 1, 256, 1, 1, 0, stream, params, None), "launch of the reference")
    torch.cuda.synchronize()
    check(_cuda.cuModuleUnload(module), "cuModuleUnload")
