"""A tunerd of one's own for the GPU scripts: private directory, started, stopped, and never left behind."""
import json
import os
import shutil
import subprocess
import tempfile
import time


class Daemon:
    """Runs tunerd with a private socket and cache. `extra` are further flags; `cache` is kept when the caller gave one."""

    def __init__(self, bin_folder, cache=None, templates=(), extra=()):
        self.bin = bin_folder
        self.home = tempfile.mkdtemp(prefix="tunerd-run.")
        self.socket = os.path.join(self.home, "run", "tunerd.sock")
        self.cache = cache or os.path.join(self.home, "cache")
        self.flags = ["--socket", self.socket, "--cache", self.cache, *extra]
        for folder in templates:
            self.flags += ["--templates", folder]
        self.log_path = os.path.join(self.home, "tunerd.log")
        self.process = None

    def __enter__(self):
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([os.path.join(self.bin, "tunerd"), *self.flags], stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if self.ctl("status", check=False).returncode == 0:
                return self
            time.sleep(0.1)
        raise RuntimeError("tunerd did not start:\n" + self.log_tail())

    def __exit__(self, *exc):
        if exc[0] is not None:
            print(self.log_tail())
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def command(self, *words):
        return [os.path.join(self.bin, "tunerctl"), "--socket", self.socket, *words]

    def ctl(self, *words, check=True, timeout=120):
        run = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=timeout)
        if check and run.returncode != 0:
            raise RuntimeError(f"tunerctl {' '.join(words)} exited {run.returncode}: {run.stdout[-500:]} {run.stderr[-1500:]}\n{self.log_tail()}")
        return run

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log_tail(self, lines=40):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return "".join(log.readlines()[-lines:])


def device_facts():
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total,power.limit", "--format=csv,noheader"],
                           capture_output=True, text=True)
    fields = [field.strip() for field in query.stdout.splitlines()[0].split(",")] if query.returncode == 0 and query.stdout else ["none"] * 4
    return {"device": fields[0], "driver": fields[1], "device_memory": fields[2], "power_limit": fields[3]}


def write_result(folder, name, result, header, rows):
    """<name>.json with everything, <name>.md with the table; nothing in them is written by hand."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    with open(os.path.join(folder, name + ".md"), "w", encoding="utf-8") as file:
        file.write(f"# {result['what']}\n\n{result['date']}, {result['device']}, driver {result['driver']}, commit {result['commit'] or 'unknown'}, "
                   f"`{result['command']}`\n\n")
        file.write("| " + " | ".join(header) + " |\n|" + "---|" * len(header) + "\n")
        for row in rows:
            file.write("| " + " | ".join(row) + " |\n")
        if "checks" in result:
            file.write("\n" + "".join(f"- {'passed' if ok else '**FAILED**'}: {text}\n" for text, ok in result["checks"].items()))
