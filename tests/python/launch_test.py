#!/usr/bin/env python3
"""What a launch hands to the driver, for every kind of tensor; fake_driver.c stands in for libcuda."""
import ctypes as c
import os
import struct
import subprocess
import tempfile
import threading
import unittest
import weakref

from support import offline_daemon

import tuner

ROWS, COLS = 64, 256
X, Y = 1 << 40, 1 << 41


class Driver:
    """The stand-in; the loader gives it to libtuner too, because it is loaded first and has libcuda's name."""

    def __init__(self, folder):
        path = os.path.join(folder, "libcuda.so.1")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_driver.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", path, source], check=True)
        self.library = c.CDLL(path)

    def get(self, name, kind=c.c_int):
        return kind.in_dll(self.library, "fake_" + name).value

    def set(self, name, value, kind=c.c_int):
        kind.in_dll(self.library, "fake_" + name).value = value

    def params(self):
        return list((c.c_uint64 * 64).in_dll(self.library, "fake_params"))[:self.get("param_count")]


class CudaArray:
    """__cuda_array_interface__, as CuPy and Numba have it."""

    def __init__(self, data, shape, strides=None, typestr="<f4"):
        self.__cuda_array_interface__ = {"data": (data, False), "shape": shape, "strides": strides, "typestr": typestr, "version": 3}


class Torchlike:
    """What of a torch tensor is read."""

    class Dtype:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return "torch." + self.name

    def __init__(self, data, shape, stride=None, dtype="float32", is_cuda=True):
        self.data, self.shape, self.is_cuda, self.device, self.dtype = data, shape, is_cuda, "cuda:0" if is_cuda else "cpu", self.Dtype(dtype)
        self.strides = stride or tuple(shape[1:]) + (1,)

    def data_ptr(self):
        return self.data

    def stride(self):
        return self.strides

    def element_size(self):
        return 2 if self.dtype.name in ("bfloat16", "float16") else 4


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("byte_offset", c.c_uint64)]


class DLPackArray:
    def __init__(self, data, shape, byte_offset=0, device=2):
        self.shape = (c.c_int64 * len(shape))(*shape)
        self.device = device
        self.tensor = DLTensor(data, device, 0, len(shape), 2, 32, 1, self.shape, None, byte_offset)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        new = c.pythonapi.PyCapsule_New
        new.restype, new.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
        return new(c.addressof(self.tensor), b"dltensor", None)


class Launch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.driver = Driver(folder.name)
        cls.client = tuner.Client(offline_daemon(cls).socket)
        cls.addClassCleanup(cls.client.close)
        cls.kernel = cls.client.get("twice", {"rows": ROWS, "cols": COLS}, "fp32")

    def setUp(self):
        self.driver.set("launch_result", 0)
        self.launches = self.driver.get("launches")

    def refused(self, field, *tensors, **options):
        with self.assertRaises(tuner.Error) as caught:
            self.kernel.launch(list(tensors), **options)
        self.assertEqual((caught.exception.code, caught.exception.field), ("invalid_argument", field), str(caught.exception))
        self.assertEqual(self.driver.get("launches"), self.launches)
        return str(caught.exception)

    def launched(self, *tensors, **options):
        """The parameters that the driver saw: x, y, rows, cols, ld_x, ld_y."""
        self.kernel.launch(list(tensors), **options)
        self.launches += 1
        self.assertEqual(self.driver.get("launches"), self.launches)
        return self.driver.params()

    def test_every_kind_of_tensor_gives_its_pointer(self):
        dense = [X, Y, ROWS, COLS, COLS, COLS]
        for kind in (lambda data: data, lambda data: CudaArray(data, (ROWS, COLS)), lambda data: CudaArray(data, (ROWS, COLS), (4 * COLS, 4)),
                     lambda data: Torchlike(data, (ROWS, COLS)), lambda data: DLPackArray(data, (ROWS, COLS)),
                     lambda data: DLPackArray(data - 4096, (ROWS, COLS), byte_offset=4096)):
            self.assertEqual(self.launched(kind(X), kind(Y)), dense)
            self.kernel.launch({"y": kind(Y), "x": kind(X)})
            self.launches += 1
            self.assertEqual(self.driver.params(), dense)

    def test_padded_rows_and_more_dimensions_come_through(self):
        self.assertEqual(self.launched(CudaArray(X, (ROWS, COLS), (4 * 320, 4)), Y), [X, Y, ROWS, COLS, 320, COLS])
        self.assertEqual(self.launched(Torchlike(X, (4, ROWS // 4, COLS), (ROWS // 4 * 512, 512, 1)), Y), [X, Y, ROWS, COLS, 512, COLS])
        self.assertEqual(self.launched(Torchlike(X, (1, ROWS, COLS), (7, COLS, 1)), Y), [X, Y, ROWS, COLS, COLS, COLS])

    def test_a_dense_tensor_is_dense_also_where_the_problem_is_padded(self):
        padded = self.client.get("twice", {"rows": ROWS, "cols": COLS}, "fp32", strides={"x": 320})
        padded.launch([Torchlike(X, (ROWS, COLS)), Y])
        self.assertEqual(self.driver.params(), [X, Y, ROWS, COLS, COLS, COLS])
        padded.launch([X, Y])
        self.assertEqual(self.driver.params(), [X, Y, ROWS, COLS, 320, COLS])
        self.launches += 2

    def test_another_size_within_the_validity(self):
        self.assertEqual(self.launched(CudaArray(X, (8, COLS)), Y, dims={"rows": 8}), [X, Y, 8, COLS, COLS, COLS])
        self.assertIn("expected [8,256]", self.refused("tensor x", CudaArray(X, (ROWS, COLS)), Y, dims={"rows": 8}))

    def test_what_does_not_fit_is_named(self):
        self.assertIn("bf16", self.refused("tensor x", Torchlike(X, (ROWS, COLS), dtype="bfloat16"), Y))
        self.assertIn("expected fp32", self.refused("tensor y", X, CudaArray(Y, (ROWS, COLS), typestr="<i4")))
        self.assertIn("little-endian", self.refused("tensor y", X, CudaArray(Y, (ROWS, COLS), typestr=">f4")))
        self.assertIn("elements of 2 bytes", self.refused("tensor y", X, CudaArray(Y, (ROWS, COLS), typestr="<V2")))
        self.assertIn("on cpu", self.refused("tensor x", Torchlike(X, (ROWS, COLS), is_cuda=False), Y))
        self.assertIn("device 1", self.refused("tensor x", DLPackArray(X, (ROWS, COLS), device=1), Y))
        self.assertIn("[64,255]", self.refused("tensor x", CudaArray(X, (ROWS, COLS - 1)), Y))
        self.assertIn("side by side", self.refused("tensor x", Torchlike(X, (ROWS, COLS), (1, ROWS)), Y))
        self.assertIn("one distance", self.refused("tensor x", Torchlike(X, (4, ROWS // 4, COLS), (COLS, 512, 1)), Y))
        self.assertIn("overlap", self.refused("tensor x", Torchlike(X, (ROWS, COLS), (0, 1)), Y))
        self.assertIn("a str", self.refused("tensor x", "x", Y))
        self.refused("stream", X, Y, stream="main")
        self.assertIn("aligned to 4", self.refused("tensor x", Torchlike(X + 2, (ROWS, COLS)), Y))

    def test_streams(self):
        class Stream:
            cuda_stream = 0x77

        class CupyStream:
            ptr = 0x88

        for stream, seen in ((0, 0), (None, 0), (0x55, 0x55), (Stream(), 0x77), (CupyStream(), 0x88)):
            self.launched(X, Y, stream=stream)
            self.assertEqual(self.driver.get("stream", c.c_uint64), seen)

    def test_eps_is_what_get_asked_for_unless_the_launch_says_otherwise(self):
        kernel = self.client.get("rmsnorm", {"rows": 4, "cols": 64}, "bf16", {"eps": 0.5})
        floats = lambda: [struct.unpack("f", struct.pack("Q", word)[:4])[0] for word in self.driver.params()]  # noqa: E731
        kernel.launch([X, Y, 1 << 42])
        self.assertEqual(floats()[-1], 0.5)
        kernel.launch([X, Y, 1 << 42], reals={"eps": 0.25})
        self.assertEqual(floats()[-1], 0.25)
        self.launches += 2

    def test_a_plan_may_be_called_from_many_threads(self):
        distance = 1 << 20
        plan = self.kernel.plan(["x", "y"])
        before = self.driver.get("apart")
        self.driver.set("distance", distance, c.c_uint64)

        def work(base):
            for i in range(3000):
                plan(0, base + 256 * i, base + 256 * i + distance)

        threads = [threading.Thread(target=work, args=(X * (i + 1),)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.driver.set("distance", 0, c.c_uint64)
        self.assertEqual(self.driver.get("apart"), before)
        self.assertEqual(self.driver.get("launches"), self.launches + 4 * 3000)

    def test_a_plan_takes_pointers_in_the_order_it_was_given(self):
        self.kernel.plan(["y", "x"])(0, Y, X)
        self.assertEqual(self.driver.params()[:2], [X, Y])

    def test_what_the_driver_refuses_is_a_device_error_with_its_name(self):
        self.driver.set("launch_result", 700)
        with self.assertRaises(tuner.Error) as caught:
            self.kernel.launch([X, Y])
        self.assertEqual((caught.exception.code, caught.exception.value), ("device", "CUDA_ERROR_ILLEGAL_ADDRESS"))
        self.driver.set("launch_result", 0)
        self.kernel.launch([X, Y])  # the plan is as good as before

    def test_a_kernel_goes_with_its_last_user(self):
        kernel = self.client.get("twice", {"rows": 16, "cols": 512}, "fp32")
        kernel.launch([X, Y])
        plan, gone = kernel.plan(), weakref.ref(kernel)
        del kernel
        plan(0, X, Y)
        self.assertIsNotNone(gone())
        del plan
        self.assertIsNone(gone())

    def test_load_loads_once(self):
        kernel = self.client.get("twice", {"rows": 32, "cols": 512}, "fp32")
        before = self.driver.get("loads")
        kernel.load()
        kernel.load()
        kernel.launch([X, Y])
        self.assertLessEqual(self.driver.get("loads"), before + 1)


if __name__ == "__main__":
    unittest.main()
