#include "gpu/library.h"

#include "fixture.h"
#include "gpu/driver.h"
#include "gpu/timer.h"

using namespace tunerd;
using namespace tunerd::test;

TEST_CASE("a library that is not there is an error that names it and everything tried") {
  const Error error = must_fail(gpu::Library::open("The warp drive", {"libwarp.so.2", "libwarp.so.1"}));
  CHECK(error.code == Code::missing);
  CHECK(contains(error.message, "The warp drive"));
  CHECK(contains(error.message, "libwarp.so.2, libwarp.so.1"));
  CHECK(contains(error.message, "$CUDA_HOME/lib64"));
}

TEST_CASE("the first name that opens is taken, and a symbol it lacks is an error that names both") {
  const auto library = must(gpu::Library::open("The C library", {"libnothing-of-this-name.so", "libm.so.6"}));
  CHECK(contains(library.path(), "libm.so.6"));
  double (*cosine)(double) = nullptr;
  must(library.bind(cosine, "cos"));
  CHECK(cosine(0.0) == 1.0);
  const Error error = must_fail(library.symbol("cuWarp"));
  CHECK(error.code == Code::missing);
  CHECK(contains(error.text(), "cuWarp"));
  CHECK(contains(error.text(), "libm.so.6"));
}

TEST_CASE("only failures that poison the context are fatal") {
  const auto device_error = [](const char* name) {
    Error error;
    error.code = Code::device;
    error.value = name;
    return error;
  };
  CHECK(gpu::is_fatal(device_error("CUDA_ERROR_ILLEGAL_ADDRESS")));
  CHECK(gpu::is_fatal(device_error("CUDA_ERROR_LAUNCH_FAILED")));
  CHECK(gpu::is_fatal(Error{Code::deadline, "The kernel did not end within 10 s", {}, {}, {}, {}}));
  CHECK_FALSE(gpu::is_fatal(device_error("CUDA_ERROR_INVALID_VALUE")));
  CHECK_FALSE(gpu::is_fatal(device_error("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE")));
  CHECK_FALSE(gpu::is_fatal(Error{Code::busy, "out of memory", "cuda", "CUDA_ERROR_OUT_OF_MEMORY", {}, {}}));
}

TEST_CASE("the median of an even number is the mean of the middle two, of none it is 0") {
  CHECK(gpu::median({}) == 0);
  CHECK(gpu::median({5}) == 5);
  CHECK(gpu::median({9, 1, 5}) == 5);
  CHECK(gpu::median({8, 2, 4, 100}) == 6);
}
