#!/usr/bin/env python3
"""The gemm templates on a real GPU, without the daemon or libtuner: are they right, and roughly how fast.

  gemm_check.py [--template gemm_mma …] [--count 36] [--out FILE.json] [--seconds 20]

Compiles a spread of each template's variants (every dtype and epilogue comes round), launches them from Python by their
manifests and compares with PyTorch in fp64: integer inputs bitwise, Gaussian ones within the bound; odd sizes, padded rows,
NaN around the inputs, poisoned outputs, guards, a second run bit for bit, tensors past 2^32 bytes. Kernels run in killable
processes: what hangs or faults is named and the rest goes on. Needs PyTorch with CUDA, and NVRTC. Exits 1 on any failure.
"""
import argparse
import collections
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "templates"))
import nvrtc  # noqa: E402
from manifest import Op, spread  # noqa: E402

START_S = 120  # a process's first line: PyTorch and a CUDA context
SIZES = [(16, 4096, 4096), (256, 4096, 4096), (4096, 4096, 4096), (8192, 8192, 8192)]


def template_named(name):
    return next(t for t in Op("gemm").templates() if t.name == name)


def device_arch():
    if shutil.which("nvidia-smi") is None:
        sys.exit("no NVIDIA driver here: there is no nvidia-smi")
    query = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
    if query.returncode != 0 or not query.stdout.strip():
        sys.exit("no NVIDIA GPU here: nvidia-smi names none")
    cc = query.stdout.split()[0].replace(".", "")
    return f"sm_{cc}" + ("a" if int(cc) >= 90 else "")


def plan(arch, wanted, count):
    """One job a variant; dtypes and epilogues come round at different paces. Then the jobs of the references."""
    op = Op("gemm")
    epilogues, dtypes = op.attributes["epilogue"], op.json["dtypes"]
    for template in op.templates():
        if not template.serves(arch) or (wanted and template.name not in wanted):
            continue
        space = list(template.variants(arch, "bf16", {"epilogue": "none"}))  # no constraint of gemm asks for dtype or epilogue
        for i, (params, names) in enumerate(spread(space, max(len(epilogues) * 2, count // 3) if template.fallback else count)):
            dtype, epilogue = dtypes[i // len(epilogues) % 2], epilogues[i % len(epilogues)]
            yield dict(kind="variant", template=template.name, params=params, names=names, dtype=dtype, epilogue=epilogue, text=template.text(params))
        for dtype in dtypes:
            whole = [item for item in space if item[0].get("splits", 1) == 1]
            params, names = whole[len(whole) // 2]
            yield dict(kind="past_32_bits", template=template.name, params=params, names=names, dtype=dtype, epilogue="none", text=template.text(params))
    for i, epilogue in enumerate(epilogues):
        yield dict(kind="reference", template="reference", dtype=dtypes[i % 2], epilogue=epilogue, text="reference")


def compile_job(argument):
    job, arch, path = argument
    attributes = {"epilogue": job["epilogue"]}
    if job["kind"] == "reference":
        op = Op("gemm")
        kernel = nvrtc.compile_source(op.reference_source(), arch, op.defines(job["dtype"], attributes))
        complaint = kernel.error
    else:
        template = template_named(job["template"])
        kernel = nvrtc.compile_source(template.source, arch, template.defines(job["params"], job["names"], job["dtype"], attributes))
        complaint = kernel.complaint()
    with open(path, "wb") as file:
        file.write(kernel.cubin)
    return dict(job, cubin=path, complaint=complaint, registers=kernel.registers)


def run_job(job):
    """In the killable process: (runs made, complaints, times by size)."""
    import cuda_launch
    import gemm_cases

    with open(job["cubin"], "rb") as file:
        cubin = file.read()
    if job["kind"] == "reference":
        return 1, gemm_cases.check_reference(Op("gemm"), cubin, job["dtype"], job["epilogue"]), {}
    launcher = cuda_launch.Launcher(cubin, template_named(job["template"]).json, job["names"], job["dtype"])
    if job["kind"] == "past_32_bits":
        return 2, gemm_cases.past_32_bits(launcher, job["dtype"]), {}
    kernel = gemm_cases.Kernel(launcher, job["names"], job["dtype"], job["epilogue"])
    runs, complaints = kernel.verify()
    times = {}
    if not complaints and job["template"] != "gemm_simple":
        times = {f"{m}x{n}x{k}": kernel.time_us(m, n, k) for m, n, k in SIZES}
    return runs, complaints, times


def child(path):
    """Runs the jobs of a file in order; a line when one begins, a line with what came of it."""
    import torch

    import gemm_cases

    with open(path, encoding="utf-8") as file:
        jobs = json.load(file)
    print(json.dumps(dict(event="ready", device=torch.cuda.get_device_name())), flush=True)
    for index, job in enumerate(jobs):
        print(json.dumps(dict(event="begin", index=index)), flush=True)
        if job["kind"] == "torch":
            times = {}
            for m, n, k in SIZES:
                x, w = gemm_cases.gaussian(m, k).bfloat16(), gemm_cases.gaussian(n, k).bfloat16()
                times[f"{m}x{n}x{k}"] = gemm_cases.timed_us(lambda: torch.nn.functional.linear(x, w))
            print(json.dumps(dict(event="done", index=index, runs=0, complaints=[], times=times)), flush=True)
            continue
        torch.manual_seed(index)
        runs, complaints, times = run_job(job)  # an exception ends the process: after a fault the context is lost
        print(json.dumps(dict(event="done", index=index, runs=runs, complaints=complaints, times=times)), flush=True)


class Lines:
    """A process's lines with deadlines."""

    def __init__(self, command, stderr):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.pending = b""

    def next(self, seconds):
        """The next line; None at the end; TimeoutError past the deadline."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.pending:
            if not self.selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError
            chunk = self.process.stdout.read()
            if chunk == b"":
                return None
            self.pending += chunk or b""
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def run_all(jobs, folder, seconds):
    """Fills in each job's outcome; a process that dies or hangs costs its current job only."""
    todo = list(jobs)
    while todo:
        path = os.path.join(folder, "jobs.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(todo, file)
        with open(os.path.join(folder, "stderr.txt"), "w+", encoding="utf-8") as stderr:
            lines = Lines([sys.executable, os.path.abspath(__file__), "--child", path], stderr)
            current, failure = None, ""
            try:
                ready = lines.next(START_S)
                while ready and (line := lines.next(seconds)) is not None:
                    if line["event"] == "begin":
                        current = line["index"]
                    else:
                        todo[current].update(line)
                        current = None
            except TimeoutError:
                failure = f"no answer within {seconds} s: killed"
            lines.kill()
            stderr.seek(0)
            tail = " | ".join(stderr.read().strip().splitlines()[-2:])[-300:]
        done = [job for job in todo if job.get("event") == "done"]
        if current is None and len(done) == len(todo):
            return
        if current is None and not done:
            sys.exit(f"the process that launches kernels does not start: {failure or tail}")
        if current is not None:
            todo[current].update(event="died", runs=0, complaints=[failure or f"process ended with {lines.process.returncode}: {tail}"], times={})
        todo = [job for job in todo if "event" not in job]


def report(jobs):
    failed = 0
    tally = collections.OrderedDict()
    for job in jobs:
        complaints = ([job["complaint"]] if job.get("complaint") else []) + job.get("complaints", [])
        count = tally.setdefault((job["template"], job["kind"]), collections.Counter())
        count["kernels"] += 1
        count["runs"] += job.get("runs", 0)
        if complaints:
            failed += 1
            count["failed"] += 1
            print(f"FAILED {job['text']} {job['dtype']} {job['epilogue']}: {len(complaints)} complaints")
            for complaint in complaints[:4]:
                print(f"         {complaint}")
    for (template, kind), count in tally.items():
        print(f"{template:12} {kind:12} kernels {count['kernels']:3} runs {count['runs']:5} failed {count['failed']}")
    for m, n, k in SIZES:
        size = f"{m}x{n}x{k}"
        timed = sorted((job["times"][size], job["text"]) for job in jobs if job.get("times", {}).get(size))
        if timed:
            print(f"{size}, warm:")
        best = {}
        for time_us, text in timed:
            best.setdefault(text.split("{")[0], (time_us, text))
        for time_us, text in best.values():
            print(f"   {time_us:9.1f} us {2e-6 * m * n * k / time_us:7.1f} TFLOP/s  {text}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", nargs="*")
    parser.add_argument("--count", type=int, default=36, help="variants of each tuned template")
    parser.add_argument("--seconds", type=int, default=20, help="deadline of one kernel's whole check")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    if nvrtc.library() is None:
        sys.exit("libnvrtc.so.12 or .13 not found: install the CUDA toolkit, or set CUDA_HOME to where it is")
    arch, started = device_arch(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gemm-check.") as folder:
        planned = [(job, arch, os.path.join(folder, f"{i}.cubin")) for i, job in enumerate(plan(arch, options.template, options.count))]
        with ProcessPoolExecutor(options.jobs) as pool:
            jobs = list(pool.map(compile_job, planned))
        print(f"{arch}: {len(jobs)} kernels compiled in {time.monotonic() - started:.1f} s", flush=True)
        jobs.append(dict(kind="torch", template="torch", dtype="bf16", epilogue="none", text="torch{}"))
        run_all([job for job in jobs if not job.get("complaint")], folder, options.seconds)
        failed = report(jobs)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(jobs, file, indent=1)
    print(f"{len(jobs)} kernels, {failed} failed, {time.monotonic() - started:.1f} s")
    sys.exit(1 if failed or not jobs else 0)


if __name__ == "__main__":
    main()
