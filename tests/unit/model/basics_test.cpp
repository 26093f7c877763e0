#include "fixture.h"
#include "model/digest.h"
#include "model/dtype.h"
#include "model/environment.h"

using namespace tunerd;
using namespace tunerd::testing;

TEST_CASE("SHA-256 gives the standard's digests") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sha256_hex(std::string_view("a\0b", 3)) != sha256_hex(std::string_view("a\0c", 3)));
}

TEST_CASE("every dtype has a name that reads back, a size and a rounding error") {
  const struct {
    DType dtype;
    const char* name;
    std::int64_t bytes;
    double epsilon;
  } expected[] = {{DType::bf16, "bf16", 2, 1.0 / 256},
                  {DType::fp16, "fp16", 2, 1.0 / 2048},
                  {DType::fp32, "fp32", 4, 1.0 / (1 << 24)},
                  {DType::fp64, "fp64", 8, 0x1p-53},
                  {DType::int32, "int32", 4, 0}};
  for (const auto& row : expected) {
    CAPTURE(row.name);
    CHECK(to_string(row.dtype) == row.name);
    CHECK(must(dtype_from_string(row.name)) == row.dtype);
    CHECK(size_bytes(row.dtype) == row.bytes);
    CHECK(epsilon(row.dtype) == row.epsilon);
  }
}

TEST_CASE("an unknown dtype names the field, lists the known ones and suggests the nearest") {
  const Error error = error_of(dtype_from_string("fp_16", "tensors[0].dtype"));
  CHECK(error.field == "tensors[0].dtype");
  CHECK(error.value == "fp_16");
  CHECK(error.expected == "one of bf16, fp16, fp32, fp64, int32");
  CHECK(error.suggestion == "fp16");
}

TEST_CASE("an environment survives JSON, and its key differs where it differs") {
  const Environment here{"13.0", "580.65.06", "-std=c++20", kMeasurementProtocol};
  CHECK(must(environment_from_json(to_json(here))) == here);
  for (const Environment& other :
       {Environment{"12.9", here.driver, here.flags, 1}, Environment{here.nvrtc, "none", here.flags, 1},
        Environment{here.nvrtc, here.driver, "-std=c++17", 1}, Environment{here.nvrtc, here.driver, here.flags, 2}}) {
    CHECK(other.key() != here.key());
    CHECK(differences(other, here).size() == 1);
  }
  CHECK(differences(here, here).empty());
}

TEST_CASE("a difference of environments names the field and both values") {
  const Environment there{"12.9", "none", "-a", 2}, here{"13.0", "none", "-a", 1};
  CHECK(differences(there, here) ==
        std::vector<std::string>{"nvrtc: 12.9 there, 13.0 here", "measurement_protocol: 2 there, 1 here"});
}

TEST_CASE("an environment with an unknown field or a protocol out of range is refused") {
  Json json = to_json(Environment{"13.0", "none", "", 1});
  json["measurement_protocol"] = -1;
  CHECK(error_of(environment_from_json(json)).field == "environment.measurement_protocol");
  json["measurement_protocol"] = std::int64_t{1} << 40;
  CHECK(error_of(environment_from_json(json)).value == "1099511627776");
  json["measurement_protocol"] = 1;
  json["nvrct"] = "13.0";
  CHECK(error_of(environment_from_json(json)).suggestion == "nvrtc");
}

TEST_CASE("the fixed options report resources and change neither results nor reproducibility") {
  const auto& options = fixed_nvrtc_options();
  const auto has = [&](const std::string& option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  CHECK(has("--ptxas-options=-v"));
  CHECK(has("-default-device"));
  for (const char* refused : {"--use_fast_math", "-use_fast_math", "-lineinfo", "-G", "--Ofast-compile=mid"})
    CHECK_FALSE(has(refused));
  for (const auto& option : options) CHECK(option.find("arch") == std::string::npos);
}
