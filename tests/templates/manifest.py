"""Reads ops and template manifests for the template tests: a second, small reading of docs/templates.md, in Python.

It shares no code with the product, so that both can be held against each other. Expressions are 64-bit integers with C's
division, which for the non-negative values of manifests is Python's //.
"""
import itertools
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TEMPLATES = os.path.join(ROOT, "templates")
DTYPE_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}
# What constraints may ask of a device, for one device of each architecture.
DEVICES = {
    "sm_75": dict(cc=75, sm_count=40, smem_per_block_bytes=65536, smem_per_sm_bytes=65536, threads_per_sm=1024, l2_bytes=4 << 20),
    "sm_80": dict(cc=80, sm_count=108, smem_per_block_bytes=166912, smem_per_sm_bytes=167936, threads_per_sm=2048, l2_bytes=40 << 20),
    "sm_89": dict(cc=89, sm_count=142, smem_per_block_bytes=101376, smem_per_sm_bytes=102400, threads_per_sm=1536, l2_bytes=96 << 20),
    "sm_90a": dict(cc=90, sm_count=132, smem_per_block_bytes=232448, smem_per_sm_bytes=233472, threads_per_sm=2048, l2_bytes=50 << 20),
    "sm_100a": dict(cc=100, sm_count=148, smem_per_block_bytes=232448, smem_per_sm_bytes=233472, threads_per_sm=2048, l2_bytes=126 << 20),
    "sm_120a": dict(cc=120, sm_count=170, smem_per_block_bytes=101376, smem_per_sm_bytes=102400, threads_per_sm=1536, l2_bytes=96 << 20),
}
FUNCTIONS = {
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "select": lambda condition, yes, no: yes if condition else no,
    "__builtins__": {},
}


def _python(expr):
    text = re.sub(r"!(?!=)", " not ", expr.replace("&&", " and ").replace("||", " or "))
    return text.replace("/", "//")


_compiled = {}


def evaluate(expr, names):
    if not isinstance(expr, str):
        return int(expr)
    if expr not in _compiled:
        _compiled[expr] = compile(_python(expr), expr, "eval")
    return int(eval(_compiled[expr], dict(FUNCTIONS), names))


class Op:
    def __init__(self, name):
        self.folder = os.path.join(TEMPLATES, name)
        with open(os.path.join(self.folder, "op.json"), encoding="utf-8") as file:
            self.json = json.load(file)
        self.name = self.json["op"]
        self.attributes = {k: v["values"] for k, v in self.json.get("attributes", {}).items() if "values" in v}

    def templates(self):
        for file in sorted(os.listdir(self.folder)):
            if file.endswith(".json") and file != "op.json":
                yield Template(self, os.path.join(self.folder, file))

    def tensors(self, attributes):
        """(tensor, present) in the op's order."""
        for tensor in self.json["tensors"]:
            yield tensor, all(attributes[k] in values for k, values in tensor.get("when", {}).items())

    def defines(self, dtype, attributes):
        out = {"DTYPE_" + dtype.upper(): 1}
        for name, value in attributes.items():
            out[f"{name}_{value}".upper()] = 1
        for tensor, present in self.tensors(attributes):
            out["HAS_" + tensor["name"].upper()] = int(present)
        return out

    def reference_source(self):
        return os.path.join(self.folder, self.json["reference"]["source"])


class Template:
    def __init__(self, op, path):
        self.op = op
        with open(path, encoding="utf-8") as file:
            self.json = json.load(file)
        self.name = self.json["template"]
        self.entry = self.json["entry"]
        self.source = os.path.join(op.folder, self.json["source"])
        self.fallback = self.json.get("fallback", False)
        self.dtypes = self.json.get("dtypes", op.json["dtypes"])
        self.attributes = self.json.get("attributes", op.attributes)

    def serves(self, arch):
        rule = self.json.get("arch", {})
        if "only" in rule:
            return arch in rule["only"]
        minimum = int(re.search(r"\d+", rule.get("min", "sm_0")).group())
        return DEVICES[arch]["cc"] >= minimum

    def names(self, params, arch, dtype, attributes):
        """Everything an expression may use short of dimensions; None when a constraint drops the variant."""
        device = DEVICES[arch]
        out = dict(device, registers_per_sm=65536, dtype_bytes=DTYPE_BYTES[dtype], **params)
        for tensor, present in self.op.tensors(attributes):
            out["has_" + tensor["name"]] = int(present)
        for name, value in self.json.get("derived", {}).items():
            try:
                out[name] = evaluate(value["expr"] if isinstance(value, dict) else value, out)
            except ZeroDivisionError:
                return None
        if any(not evaluate(c["if"], out) for c in self.json.get("constraints", [])):
            return None
        return out

    def variants(self, arch, dtype, attributes):
        """(params, names) of every combination that the constraints keep, in the manifest's order."""
        keys = list(self.json["params"])
        for values in itertools.product(*self.json["params"].values()):
            params = dict(zip(keys, values))
            names = self.names(params, arch, dtype, attributes)
            if names is not None:
                yield params, names

    def defines(self, params, names, dtype, attributes):
        out = self.op.defines(dtype, attributes)
        out.update({name.upper(): value for name, value in params.items()})
        for name, value in self.json.get("derived", {}).items():
            if isinstance(value, dict) and value.get("define"):
                out[name.upper()] = names[name]
        return out

    def text(self, params):
        return self.name + "{" + ",".join(f"{k}={v}" for k, v in params.items()) + "}"


def spread(items, count):
    """`count` of the items, evenly over the list; every parameter value moves since the step is kept odd."""
    items = list(items)
    if len(items) <= count:
        return items
    step = max(1, len(items) // count) | 1
    return [items[(i * step) % len(items)] for i in range(count)]
