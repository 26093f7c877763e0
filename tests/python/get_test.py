#!/usr/bin/env python3
"""get, facts and errors against an offline tunerd; two clients; what is refused before any GPU call."""
import unittest

from support import offline_daemon

import tuner

DIMS = {"rows": 64, "cols": 256}


class Get(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = offline_daemon(cls)
        cls.client = tuner.Client(cls.daemon.socket, name="get_test")
        cls.addClassCleanup(cls.client.close)

    def refused(self, call, code, field):
        with self.assertRaises(tuner.Error) as caught:
            call()
        self.assertEqual((caught.exception.code, caught.exception.field), (code, field), str(caught.exception))
        return caught.exception

    def test_an_answer_says_what_it_is(self):
        kernel = self.client.get("twice", DIMS, "fp32", {"sign": "minus"})
        facts = kernel.facts
        self.assertEqual(facts.op, "twice")
        self.assertEqual(facts.problem, "twice{rows=64,cols=256,dtype=fp32,sign=minus}")
        self.assertRegex(facts.variant, r"^twice_\w+\{.*\}$")
        self.assertIn(facts.quality, ("exact", "near", "default", "fallback"))
        self.assertEqual(facts.source, "predicted")
        self.assertEqual(facts.arch, "sm_90a")
        self.assertIn("sm_90a", facts.device_class)
        self.assertGreater(facts.t_sol_us, 0)
        self.assertIsNone(facts.time_us)
        self.assertIsNone(facts.sol_fraction)
        self.assertEqual((facts.bound, facts.flops, facts.bytes), ("memory", 64 * 256, 2 * 4 * 64 * 256))
        self.assertEqual(len(facts.kernel_digest), 64)
        self.assertEqual(facts.answer["recipe"]["version"], 1)
        self.assertEqual(len(kernel.cubin), facts.cubin_bytes)
        self.assertEqual(kernel.cubin[:4], b"\x7fELF")
        for name in ("op", "problem", "variant", "quality", "source", "arch", "t_sol_us", "time_us", "sol_fraction", "generation"):
            self.assertEqual(getattr(kernel, name), getattr(facts, name), name)
        self.assertIn(facts.variant, repr(kernel))

    def test_the_eps_asked_for_is_the_eps_of_a_launch(self):
        kernel = self.client.get("rmsnorm", {"rows": 4, "cols": 64}, "bf16", {"eps": 1e-3})
        self.assertEqual(kernel.recipe.reals, {"eps": 1e-3})
        self.assertEqual(kernel.recipe.names, ("x", "weight", "y"))

    def test_a_padded_problem_has_its_stride_in_its_key(self):
        self.assertEqual(self.client.get("twice", DIMS, strides={"x": 320}).problem, "twice{rows=64,cols=256,dtype=fp32,sign=plus,ld_x=320}")

    def test_an_unknown_op_suggests_the_nearest(self):
        error = self.refused(lambda: self.client.get("twise", DIMS), "invalid_argument", "op")
        self.assertEqual((error.value, error.suggestion), ("twise", "twice"))
        self.assertIn("did you mean twice?", str(error))

    def test_bad_dims_are_named(self):
        self.refused(lambda: self.client.get("twice", {"rows": 0, "cols": 256}), "invalid_argument", "rows")
        self.refused(lambda: self.client.get("twice", {"rows": 1.5, "cols": 256}), "invalid_argument", "rows")
        self.refused(lambda: self.client.get("twice", {"rows": 1 << 63, "cols": 256}), "invalid_argument", "rows")
        self.refused(lambda: self.client.get("twice", {"rows": 4}), "invalid_argument", "cols")
        self.refused(lambda: self.client.get("twice", {**DIMS, "colls": 1}), "invalid_argument", "colls")

    def test_a_wrong_dtype_or_attribute_is_named(self):
        error = self.refused(lambda: self.client.get("twice", DIMS, "bf16"), "invalid_argument", "dtype")
        self.assertIn("fp32", error.expected)
        self.refused(lambda: self.client.get("twice", DIMS, "fp32", {"sign": "times"}), "invalid_argument", "sign")

    def test_a_wrong_wait_is_named(self):
        self.refused(lambda: self.client.get("twice", DIMS, wait="later"), "invalid_argument", "wait")
        self.refused(lambda: self.client.get("twice", DIMS, deadline_ms=-1), "invalid_argument", "deadline_ms")

    def test_cached_never_compiles(self):
        error = self.refused(lambda: self.client.get("twice", {"rows": 63, "cols": 255}, wait="cached"), "not_found", "problem")
        self.assertIn("Not cached", str(error))

    def test_two_clients_get_the_same_kernel(self):
        with tuner.Client(self.daemon.socket) as other:
            mine, theirs = self.client.get("twice", DIMS), other.get("twice", DIMS)
            self.assertEqual(mine.facts.kernel_digest, theirs.facts.kernel_digest)
            self.assertTrue(other.connected)
        self.assertFalse(other.connected)
        self.assertEqual(theirs.facts.op, "twice")  # a kernel outlives its client
        self.assertTrue(self.client.connected)

    def test_a_closed_kernel_and_a_closed_client_say_so(self):
        with self.client.get("twice", DIMS) as kernel:
            plan = kernel.plan()
        self.refused(lambda: kernel.facts, "invalid_argument", "kernel")
        self.refused(lambda: kernel.launch([256, 512]), "invalid_argument", "kernel")
        self.refused(lambda: plan(0, 256, 512), "invalid_argument", "kernel")
        self.refused(kernel.load, "invalid_argument", "kernel")
        kernel.close()
        with tuner.Client(self.daemon.socket) as client:
            pass
        self.refused(lambda: client.get("twice", DIMS), "invalid_argument", "client")

    def test_the_workspace_is_told(self):
        self.assertEqual(self.client.get("twice", DIMS).workspace({"rows": 8})[0], 0)
        self.refused(lambda: self.client.get("twice", DIMS).workspace({"row": 8}), "invalid_argument", "dim")

    def test_wrong_pointers_are_refused_before_any_gpu_call(self):
        kernel = self.client.get("twice", DIMS)
        error = self.refused(lambda: kernel.launch({"x": 0x10002, "y": 0x20000}), "invalid_argument", "tensor x")
        self.assertIn("aligned to 4 bytes", error.expected)
        self.refused(lambda: kernel.launch({"x": 0x10000, "y": 0}), "invalid_argument", "tensor y")
        self.refused(lambda: kernel.launch({"x": 0x10000}), "invalid_argument", "tensor y")
        self.refused(lambda: kernel.launch({"x": 0x10000, "y": 0x20000, "z": 1}), "invalid_argument", "tensor")
        self.refused(lambda: kernel.launch([0x10000]), "invalid_argument", "tensors")
        self.refused(lambda: kernel.launch([0x10000, 0x20000], dims={"depth": 1}), "invalid_argument", "dim")
        self.refused(lambda: kernel.plan()(0, 0x10000), "invalid_argument", "tensors")
        self.refused(lambda: kernel.plan(["x", "yy"]), "invalid_argument", "tensor")

    def test_right_arguments_get_as_far_as_the_driver(self):
        with self.assertRaises(tuner.Error) as caught:
            self.client.get("twice", DIMS).launch({"x": 0x10000, "y": 0x20000})
        self.assertIn(caught.exception.code, ("missing", "device"))  # no libcuda, or no context on this thread


class NoDaemon(unittest.TestCase):
    def test_no_daemon_is_one_sentence_with_the_socket(self):
        with self.assertRaises(tuner.Error) as caught:
            tuner.Client("/tmp/there/is/no/tunerd.sock")
        self.assertEqual((caught.exception.code, caught.exception.field), ("io", "socket"))
        self.assertIn("/tmp/there/is/no/tunerd.sock", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
