#!/usr/bin/env python3
"""How the library is found, and what is said when it, or torch, is not."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import BUILD, PACKAGE

import tuner
from tuner import library

SO = os.path.join(BUILD, "lib", library.NAME)


def python(code, package=PACKAGE, **environment):
    """A fresh interpreter; what it printed, the last line of what it raised."""
    variables = {name: value for name, value in os.environ.items() if name not in ("TUNER_LIBRARY", "LD_LIBRARY_PATH")}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd="/",
                         env={**variables, "PYTHONPATH": package, **environment})
    return run.stdout.strip(), (run.stderr.strip().splitlines() or [""])[-1]


WHERE = "from tuner import library; print(library.load().path)"


class Library(unittest.TestCase):
    def test_a_library_that_is_not_there_names_the_place_tried(self):
        with self.assertRaises(tuner.Error) as caught:
            tuner.Client(library="/no/such/libtuner.so")
        self.assertEqual((caught.exception.code, caught.exception.field), ("missing", "library"))
        self.assertIn("/no/such/libtuner.so", str(caught.exception))

    def test_a_library_that_is_another_one_says_so(self):
        with self.assertRaises(tuner.Error) as caught:
            tuner.Client(library="libc.so.6")
        self.assertIn("tuner_", str(caught.exception))

    def test_the_environment_comes_first_and_nothing_is_tried_after_it(self):
        self.assertEqual(python(WHERE, TUNER_LIBRARY=SO)[0], SO)
        out, error = python(WHERE, TUNER_LIBRARY="/no/such/libtuner.so")
        self.assertEqual(out, "")
        self.assertIn("/no/such/libtuner.so", error)

    def test_then_a_copy_beside_the_package_then_the_loader(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(PACKAGE, "tuner"), os.path.join(folder, "tuner"), ignore=shutil.ignore_patterns("__pycache__"))
            error = python(WHERE, package=folder)[1]
            self.assertIn("libtuner.so was not found", error)
            self.assertIn("$TUNER_LIBRARY", error)
            self.assertEqual(python(WHERE, package=folder, LD_LIBRARY_PATH=os.path.dirname(SO))[0], library.NAME)
            beside = os.path.join(folder, "tuner", library.NAME)
            shutil.copy(SO, beside)
            self.assertEqual(python(WHERE, package=folder)[0], beside)

    @unittest.skipUnless(os.path.exists(os.path.join(os.path.dirname(os.path.dirname(PACKAGE)), "build", "lib", library.NAME)), "no build/")
    def test_a_checkout_uses_its_build_tree(self):
        self.assertTrue(python(WHERE)[0].endswith(os.path.join("build", "lib", library.NAME)))


class Torch(unittest.TestCase):
    @unittest.skipIf(importlib.util.find_spec("torch"), "torch is here")
    def test_tuner_torch_without_torch_is_one_sentence(self):
        error = python("import tuner.torch")[1]
        self.assertEqual(error, "ImportError: tuner.torch needs PyTorch, which is not installed here; tuner.Client works without it")

    def test_the_core_imports_nothing_but_the_standard_library(self):
        code = "import sys, tuner; print(sorted({n.split('.')[0] for n in sys.modules} - sys.stdlib_module_names - {'tuner', '__main__'}))"
        before = python(code.replace(", tuner;", ";"))[0]
        self.assertEqual(python(code)[0], before)


if __name__ == "__main__":
    unittest.main()
