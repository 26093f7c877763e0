#include "gpu/cubin.h"

#include "fixture.h"
#include "synthetic_cubin.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

SyntheticCubin scale_cubin() {
  SyntheticCubin cubin;
  // As ptxas writes them: last parameter first.
  cubin.parameters = {{3, 24, 4}, {2, 16, 8}, {1, 8, 4}, {0, 0, 8}};
  return cubin;
}

Recipe scale_recipe() {
  Recipe recipe;
  recipe.entry = "scale";
  recipe.arguments = {tensor_argument("y"), scalar_argument("n", "i32"), scalar_argument("ld", "i64"),
                      scalar_argument("factor", "f32")};
  return recipe;
}

}  // namespace

TEST_CASE("a kernel's parameters come in order, with offset and size") {
  const auto kernel = must(gpu::find_kernel(scale_cubin().bytes(), "scale"));
  REQUIRE(kernel.parameters.size() == 4);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{0, 8}, {8, 4}, {16, 8}, {24, 4}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(kernel.parameters[i].ordinal == static_cast<std::int64_t>(i));
    CHECK(kernel.parameters[i].offset_bytes == expected[i].first);
    CHECK(kernel.parameters[i].size_bytes == expected[i].second);
  }
  must(gpu::check_parameters(kernel, scale_recipe()));
}

TEST_CASE("the architecture is read from the flags of the new and of the old ELF version") {
  auto cubin = scale_cubin();
  CHECK(must(gpu::find_kernel(cubin.bytes(), "scale")).cc == 90);
  cubin.flags = 0x6006402;
  const auto blackwell = must(gpu::find_kernel(cubin.bytes(), "scale"));
  CHECK(blackwell.cc == 100);
  must(gpu::check_arch(blackwell, "sm_100a"));
  const Error error = must_fail(gpu::check_arch(blackwell, "sm_90a"));
  CHECK(error.code == Code::corrupt);
  CHECK(contains(error.text(), "sm_100"));
  CHECK(contains(error.text(), "sm_90a"));
  cubin.abi_version = 7;
  cubin.flags = 0x500556;
  CHECK(must(gpu::find_kernel(cubin.bytes(), "scale")).cc == 86);
}

TEST_CASE("an entry that is not there is not found, and those that are get listed") {
  const Error error = must_fail(gpu::find_kernel(scale_cubin().bytes(), "scael"));
  CHECK(error.code == Code::not_found);
  CHECK(contains(error.expected, "scale"));
  CHECK(error.suggestion == "scale");
}

TEST_CASE("too few arguments, too many, and one of another size are refused by name before any launch") {
  const auto kernel = must(gpu::find_kernel(scale_cubin().bytes(), "scale"));
  Recipe recipe = scale_recipe();
  recipe.arguments.pop_back();
  CHECK(contains(must_fail(gpu::check_parameters(kernel, recipe)).text(), "arguments: 3"));
  recipe = scale_recipe();
  recipe.arguments.push_back(tensor_argument("z"));
  CHECK(contains(must_fail(gpu::check_parameters(kernel, recipe)).text(), "arguments: 5"));
  recipe = scale_recipe();
  recipe.arguments[2].type = "i32";
  const Error size = must_fail(gpu::check_parameters(kernel, recipe));
  CHECK(contains(size.text(), "arguments[2] (ld): 4 bytes"));
  CHECK(contains(size.text(), "expected 8 bytes"));
  recipe = scale_recipe();
  recipe.arguments[0].kind = Argument::Kind::tensor_map;
  CHECK(contains(must_fail(gpu::check_parameters(kernel, recipe)).text(), "128 bytes"));
}

TEST_CASE("what is no cubin says so: text, an empty file, an ELF of another machine, 32 bits") {
  CHECK(must_fail(gpu::find_kernel("", "scale")).code == Code::corrupt);
  CHECK(must_fail(gpu::find_kernel("not an ELF, however long it may be: " + std::string(200, 'x'), "scale")).code ==
        Code::corrupt);
  auto cubin = scale_cubin();
  cubin.machine = EM_X86_64;
  CHECK(contains(must_fail(gpu::find_kernel(cubin.bytes(), "scale")).text(), "CUDA"));
  std::string narrow = scale_cubin().bytes();
  narrow[EI_CLASS] = ELFCLASS32;
  CHECK(must_fail(gpu::find_kernel(narrow, "scale")).code == Code::corrupt);
}

TEST_CASE("a cubin cut at any byte is an error, never a crash") {
  const std::string whole = scale_cubin().bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    // The section table is at the end: without all of it nothing is found.
    const std::string cut = whole.substr(0, size);
    const auto kernel = gpu::find_kernel(cut, "scale");
    REQUIRE_FALSE(kernel);
    CHECK(kernel.error().code == Code::corrupt);
  }
}

TEST_CASE("a cubin with any byte changed is parsed or refused, and what is parsed stays inside the file") {
  const std::string whole = scale_cubin().bytes();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      const auto kernel = gpu::find_kernel(damaged, "scale");
      refused += !kernel;
      if (kernel) CHECK(kernel->parameters.size() <= whole.size() / 4);
    }
  CHECK(refused > 100);
}

TEST_CASE("section offsets and counts that overflow are refused") {
  const std::string whole = scale_cubin().bytes();
  const auto with = [&](auto change) {
    std::string bytes = whole;
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  };
  CHECK_FALSE(gpu::find_kernel(with([](auto& h) { h.e_shoff = ~std::uint64_t{0} - 8; }), "scale"));
  CHECK_FALSE(gpu::find_kernel(with([](auto& h) { h.e_shnum = 0xffff; }), "scale"));
  CHECK_FALSE(gpu::find_kernel(with([](auto& h) { h.e_shstrndx = 0xfffe; }), "scale"));
  CHECK_FALSE(gpu::find_kernel(with([](auto& h) { h.e_shentsize = 1; }), "scale"));
  std::string bytes = whole;
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  Elf64_Shdr section;
  const std::size_t at = header.e_shoff + 3 * sizeof section;
  std::memcpy(&section, bytes.data() + at, sizeof section);
  section.sh_offset = ~std::uint64_t{0} - 2;
  std::memcpy(bytes.data() + at, &section, sizeof section);
  CHECK(must_fail(gpu::find_kernel(bytes, "scale")).code == Code::corrupt);
}

TEST_CASE("a parameter record too short for its fields is refused") {
  std::string bytes = scale_cubin().bytes();
  const std::string record = {4, 0x17, 12, 0};
  const auto at = bytes.find(record);
  REQUIRE(at != std::string::npos);
  bytes[at + 2] = 8;
  CHECK(must_fail(gpu::find_kernel(bytes, "scale")).code == Code::corrupt);
}
