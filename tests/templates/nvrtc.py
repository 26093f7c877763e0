"""NVRTC through ctypes: one program compiled with the options the product uses, and what its log says of resources."""
import ctypes
import functools
import os
import re

from manifest import TEMPLATES

OPTIONS = ["-std=c++20", "-default-device", "--ptxas-options=-v", "--extra-device-vectorization"]
NAMES = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"]


@functools.lru_cache(None)
def library():
    home = os.environ.get("CUDA_HOME")
    for name in ([os.path.join(home, "lib64", "libnvrtc.so")] if home else []) + NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    # PyTorch's wheels bring one of their own, outside of the loader's path.
    try:
        import nvidia
    except ImportError:
        return None
    for folder in nvidia.__path__:
        for root, _, files in os.walk(folder):
            for file in files:
                if re.fullmatch(r"libnvrtc\.so\.\d+", file):
                    return ctypes.CDLL(os.path.join(root, file))
    return None


@functools.lru_cache(None)
def headers():
    folder = os.path.join(TEMPLATES, "device")
    out = []
    for file in sorted(os.listdir(folder)):
        with open(os.path.join(folder, file), "rb") as text:
            out.append((("device/" + file).encode(), text.read()))
    return out


class Kernel:
    """`error` is empty when compiled; `cubin` the bytes; registers, spill bytes and C75xx codes from the log."""

    def __init__(self, error, log, cubin=b""):
        self.error, self.log, self.cubin = error, log, cubin
        self.registers = max([int(n) for n in re.findall(r"Used (\d+) registers", log)], default=0)
        self.spill_bytes = sum(int(n) for n in re.findall(r"(\d+) bytes spill", log))
        self.codes = sorted(set(re.findall(r"C75\d\d", log)) - {"C7519"})  # 7519 only says that arrives were injected

    def complaint(self):
        """Why this kernel may not be served, or an empty string."""
        if self.error:
            return self.error
        if self.codes:
            return "log says " + " ".join(self.codes)
        return f"spills {self.spill_bytes} bytes" if self.spill_bytes else ""


def compile_source(path, arch, defines):
    lib = library()
    with open(path, "rb") as file:
        source = file.read()
    program = ctypes.c_void_p()
    included = headers()
    count = len(included)
    names = (ctypes.c_char_p * count)(*[name for name, _ in included])
    texts = (ctypes.c_char_p * count)(*[text for _, text in included])
    rc = lib.nvrtcCreateProgram(ctypes.byref(program), source, os.path.basename(path).encode(), count, texts, names)
    if rc:
        return Kernel(f"nvrtcCreateProgram: {rc}", "")
    options = OPTIONS + ["--gpu-architecture=" + arch] + [f"-D{k}={v}" for k, v in defines.items()]
    rc = lib.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*[o.encode() for o in options]))
    size = ctypes.c_size_t()
    lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetProgramLog(program, log)
    text, cubin = log.value.decode(errors="replace"), b""
    if not rc:
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, buffer)
        cubin = buffer.raw
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return Kernel(f"NVRTC {rc}: " + " ".join(text.split())[:600] if rc else "", text, cubin)
