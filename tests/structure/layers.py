#!/usr/bin/env python3
"""Which layer may include which, every public header compiles alone, and no file is too long.

The build already refuses a forbidden include (each target sees only its dependencies' include roots); this names the rule that
was broken, and also covers what a compiler cannot see: CUDA headers, sockets and SQLite outside their one folder.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# layer folder -> (its include root, include prefixes of the layers below that it may use)
LAYERS = {
    "tuner/model": ("tuner/model/include", []),
    "tuner/search": ("tuner/search/include", ["model"]),
    "client/wire": ("client/wire/include", ["model"]),
    "tuner/gpu": ("tuner/gpu/include", ["model", "wire"]),
    "tuner/worker": ("tuner/worker/host/include", ["model", "wire", "gpu"]),
    "cache": ("cache/include", ["model"]),
    "client/lib": ("client/lib/include", ["model", "wire"]),
    "client/ctl": ("client/ctl/include", ["model", "wire", "cache", "search", "worker_host"]),
    "daemon": ("daemon/include", ["model", "search", "cache", "wire", "worker_host"]),
}
OWN_PREFIX = {"tuner/model": "model", "tuner/search": "search", "client/wire": "wire", "tuner/gpu": "gpu",
              "tuner/worker": "worker_host", "cache": "cache", "client/lib": "", "client/ctl": "ctl", "daemon": "daemon"}
PREFIX_ROOT = {OWN_PREFIX[layer]: root for layer, (root, _) in LAYERS.items() if OWN_PREFIX[layer]}
ALL_PREFIXES = set(PREFIX_ROOT)
# header pattern -> the only folders that may include it
RESERVED = [
    (re.compile(r"^(cuda|nvrtc|nvml|cudaTypedefs)\b.*\.h$"), ["tuner/gpu"]),
    (re.compile(r"^sqlite3\.h$"), ["cache"]),
    (re.compile(r"^boost/asio"), ["daemon"]),
]
SOURCE = re.compile(r"\.(c|cpp|h|hpp|cu|cuh|py)$")


def tracked():
    out = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return out.splitlines()


def includes(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', file.read(), re.M)


class Structure(unittest.TestCase):
    def test_no_layer_includes_a_layer_it_does_not_stand_on(self):
        wrong = []
        for path in tracked():
            layer = next((name for name in LAYERS if path.startswith(name + "/")), None)
            if layer is None or not re.search(r"\.(c|cpp|h|hpp)$", path):
                continue
            allowed = set(LAYERS[layer][1]) | {OWN_PREFIX[layer]}
            for name in includes(path):
                prefix = name.split("/")[0]
                if "/" in name and prefix in ALL_PREFIXES and prefix not in allowed:
                    wrong.append(f"{path} includes {name}; {layer} may use {sorted(allowed - {''})}")
                for pattern, folders in RESERVED:
                    if pattern.match(name) and layer not in folders:
                        wrong.append(f"{path} includes {name}, reserved to {folders}")
        self.assertEqual(wrong, [])

    def test_every_public_header_compiles_alone(self):
        headers = [path for path in tracked() for root, _ in LAYERS.values()
                   if path.startswith(root + "/") and re.search(r"\.(h|hpp)$", path)]
        self.assertGreater(len(headers), 20)
        cuda = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include")

        def check(path):
            layer = next(name for name, (root, _) in LAYERS.items() if path.startswith(root + "/"))
            roots = [LAYERS[layer][0]] + [PREFIX_ROOT[prefix] for prefix in LAYERS[layer][1]]
            flags = [f"-I{os.path.join(ROOT, root)}" for root in roots]
            if layer == "tuner/gpu":
                flags += ["-isystem", cuda]
            with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
                file.write(f'#include "{os.path.join(ROOT, path)}"\n')
                file.flush()
                run = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *flags, file.name],
                                     capture_output=True, text=True)
            return "" if run.returncode == 0 else f"{path}: {run.stderr[:600]}"

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            failed = [text for text in pool.map(check, headers) if text]
        self.assertEqual(failed, [])

    def test_no_source_file_is_longer_than_400_lines(self):
        long = []
        for path in tracked():
            if SOURCE.search(path):
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    lines = sum(1 for _ in file)
                if lines > 400:
                    long.append(f"{path}: {lines}")
        self.assertEqual(long, [])

    def test_templates_include_nothing_but_our_own_headers(self):
        wrong = []
        for path in tracked():
            if path.startswith("templates/") and re.search(r"\.(cu|cuh)$", path):
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    wrong += [f"{path}: {name}" for name in re.findall(r"^\s*#\s*include\s*<([^>]+)>", file.read(), re.M)]
        self.assertEqual(wrong, [])

    def test_a_kernel_that_may_start_early_waits_before_it_touches_memory(self):
        wrong = []
        for path in tracked():
            if not re.match(r"templates/.*\.json$", path) or path.endswith("/op.json"):
                continue
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                manifest = json.load(file)
            if not manifest["launch"].get("pdl", False):
                continue
            with open(os.path.join(ROOT, os.path.dirname(path), manifest["source"]), encoding="utf-8") as file:
                kernel = file.read().split('extern "C" __global__', 1)[1]
            if "wait_for_previous();" not in kernel:
                wrong.append(path)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    sys.exit(unittest.main())
