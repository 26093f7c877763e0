"""Every template compiles, for every architecture its manifest allows, without spills and without a C75xx line.

  compile.py [OP …] [--arch sm_90a …] [--count 4] [--all-attributes-on sm_90a] [--jobs N]

A spread of each template's variants: COUNT for an architecture, and on one architecture at least one for every dtype and
attribute value. Every reference is compiled too. Exits 1 and names what failed.
"""
import argparse
import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor

import nvrtc
from manifest import DEVICES, TEMPLATES, Op, spread


def combinations(op, dtypes, attributes):
    names = list(attributes)
    return [(dtype, dict(zip(names, values))) for dtype in dtypes for values in itertools.product(*attributes.values())]


def jobs_of(op, arch, count, every_combination):
    dtypes = op.json["dtypes"]
    for dtype, attributes in combinations(op, dtypes, op.attributes) if every_combination else [(dtypes[0], {k: v[0] for k, v in op.attributes.items()})]:
        yield f"{op.name} reference {arch} {dtype} {attributes}", op.reference_source(), arch, op.defines(dtype, attributes), False
    for template in op.templates():
        if not template.serves(arch):
            continue
        combos = combinations(op, template.dtypes, template.attributes)
        wanted = max(count, len(combos)) if every_combination else count
        spaces = {}
        for i in range(wanted):
            dtype, attributes = combos[i * (1 if every_combination else 5) % len(combos)]
            key = (dtype, tuple(attributes.items()))
            if key not in spaces:
                spaces[key] = list(template.variants(arch, dtype, attributes))
            if not spaces[key]:
                raise SystemExit(f"{template.name}: no variant for {arch} {dtype} {attributes}")
            space = spread(spaces[key], wanted)
            params, names = space[i % len(space)]
            yield (f"{template.text(params)} {arch} {dtype} {attributes}", template.source, arch,
                   template.defines(params, names, dtype, attributes), not template.fallback)


def run(job):
    name, source, arch, defines, strict = job
    kernel = nvrtc.compile_source(source, arch, defines)
    return name, kernel.complaint() if strict else kernel.error, kernel.registers


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--arch", nargs="*", default=["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"], choices=list(DEVICES))
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--all-attributes-on", default="sm_90a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if nvrtc.library() is None:
        sys.exit("libnvrtc.so.12 or .13 not found: install the CUDA toolkit, or set CUDA_HOME to where it is")
    ops = options.ops or sorted(name for name in os.listdir(TEMPLATES) if os.path.exists(os.path.join(TEMPLATES, name, "op.json")))
    jobs = [job for op in ops for arch in options.arch for job in jobs_of(Op(op), arch, options.count, arch == options.all_attributes_on)]
    if not jobs:
        sys.exit("nothing to compile")
    failed = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, complaint, registers in pool.map(run, jobs):
            if complaint:
                failed += 1
                print(f"FAILED {name}: {complaint}", flush=True)
    print(f"{len(jobs)} compiled, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
