#include "model/source.h"
#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

struct Fixture {
  TemporaryFolder folder;
  fs::path op() const { return folder.path() / "gemm"; }

  SourceClosure closure(const std::string& text) const {
    folder.write("gemm/a.cu", text);
    return must(load_closure(op(), "a.cu", {folder.path()}));
  }
  Error refused(const std::string& text) const {
    folder.write("gemm/a.cu", text);
    const Result<SourceClosure> loaded = load_closure(op(), "a.cu", {folder.path()});
    REQUIRE_FALSE(loaded.has_value());
    return loaded.error();
  }
};

bool mentions(const Error& error, const std::string& word) { return error.text().find(word) != std::string::npos; }

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a closure holds every header by the name it is included by") {
  folder.write("device/mma.cuh", "#include \"device/types.cuh\"\n");
  folder.write("device/types.cuh", "#include \"device/mma.cuh\"\n");  // a circle is no endless loop
  folder.write("gemm/tile.cuh", "\n");
  const SourceClosure found = closure("#include \"device/mma.cuh\"\n  #  include\t\"tile.cuh\" // ours\n");
  REQUIRE(found.headers.size() == 3);
  CHECK(found.headers[0].first == "device/mma.cuh");
  CHECK(found.headers[1].first == "device/types.cuh");
  CHECK(found.headers[2].first == "tile.cuh");
  CHECK(found.digest.size() == 64);
}

TEST_CASE_FIXTURE(Fixture, "the op's folder is looked in before the template folders") {
  folder.write("tile.cuh", "far\n");
  folder.write("gemm/tile.cuh", "near\n");
  CHECK(closure("#include \"tile.cuh\"\n").headers[0].second == "near\n");
}

TEST_CASE_FIXTURE(Fixture, "what only looks like an include is none") {
  const SourceClosure found = closure(
      "// #include \"gone1.cuh\"\n"
      "/* #include \"gone2.cuh\"\n"
      "#include \"gone3.cuh\" */\n"
      "const char* a = \"\\\n#include \\\"gone4.cuh\\\"\";\n"
      "const char* b = R\"x(\n#include \"gone5.cuh\"\n)x\";\n"
      "// continued \\\n#include \"gone6.cuh\"\n"
      "int including = 1'000'000; /* */\n"
      "asm volatile(\"// \\\"\");\n");
  CHECK(found.headers.empty());
}

TEST_CASE_FIXTURE(Fixture, "an include is found however it is disguised") {
  for (const char* text : {"#include \"gone.cuh\"\n", "/* a */ # /* b */ include /* c */ \"gone.cuh\"\n",
                           "#inc\\\nlude \"gone.cuh\"\n", "%:include \"gone.cuh\"\n", "#include \"gone.cuh\"",
                           "char c = '\"';\n#include \"gone.cuh\"\n", "\"/*\";\n#include \"gone.cuh\"\n",
                           "#if 0\n#include \"gone.cuh\"\n#endif\n", "\"unclosed\n#include \"gone.cuh\"\n",
                           "int x = 1'0;\n#include \"gone.cuh\"\n", "\xEF\xBB\xBF\n#include \"gone.cuh\"\n"}) {
    CAPTURE(text);
    CHECK(refused(text).value == "gone.cuh");
  }
}

TEST_CASE_FIXTURE(Fixture, "an error names the file and the line of the include") {
  const Error error = refused("int a;\n/* two\nlines */\n#include \"gone.cuh\"\n");
  CHECK(error.field == (op() / "a.cu").string() + ":4");
  folder.write("device/mma.cuh", "\n\n#include \"gone.cuh\"\n");
  CHECK(refused("#include \"device/mma.cuh\"\n").field == (folder.path() / "device/mma.cuh").string() + ":3");
}

TEST_CASE_FIXTURE(Fixture, "system headers, computed names and other ways to read a file are refused") {
  for (const char* text : {"#include <cuda_bf16.h>\n", "#include HEADER\n", "#include \"\"\n", "#include\n",
                           "#include \"open\n", "#include_next \"a.cuh\"\n", "#embed \"/etc/passwd\"\n",
                           "#import \"a.cuh\"\n", "import \"a.cuh\";\n", "import <vector>;\n"}) {
    CAPTURE(text);
    CHECK(mentions(refused(text), "a.cu:1"));
  }
}

TEST_CASE_FIXTURE(Fixture, "an include that leaves the template folders is refused, also through a link") {
  TemporaryFolder outside;
  outside.write("secret.cuh", "secret\n");
  fs::create_directories(op());
  fs::create_symlink(outside.path() / "secret.cuh", op() / "link.cuh");
  fs::create_directory_symlink(outside.path(), op() / "dir");
  const std::string absolute = (outside.path() / "secret.cuh").string();
  for (const std::string& name : {std::string("../../secret.cuh"), absolute, std::string("link.cuh"),
                                  std::string("dir/secret.cuh"), std::string("x/../link.cuh")}) {
    CAPTURE(name);
    const Error error = refused("#include \"" + name + "\"\n");
    CHECK(mentions(error, "a.cu:1"));
    CHECK_FALSE(mentions(error, "does not exist"));
  }
  CHECK(refused("#include \"link.cuh\"\n").code == Code::denied);
}

TEST_CASE_FIXTURE(Fixture, "a link that stays inside is followed, as mounted configuration does") {
  folder.write("gemm/..data/tile.cuh", "tile\n");
  fs::create_symlink("..data/tile.cuh", op() / "tile.cuh");
  CHECK(closure("#include \"tile.cuh\"\n").headers[0].second == "tile\n");
}

TEST_CASE_FIXTURE(Fixture, "a source that leaves its folder, is missing, or is a folder is refused") {
  folder.write("outside.cu", "\n");
  fs::create_directories(op());
  fs::create_symlink(folder.path() / "outside.cu", op() / "link.cu");
  for (const char* file : {"../outside.cu", "link.cu", "gone.cu", ".", ""}) {
    CAPTURE(file);
    CHECK_FALSE(load_closure(op(), file, {folder.path()}).has_value());
  }
}

TEST_CASE_FIXTURE(Fixture, "a closure is bounded in files and in bytes") {
  std::string all;
  for (int i = 0; i < 64; ++i) {
    folder.write("gemm/h" + std::to_string(i) + ".cuh", "\n");
    all += "#include \"h" + std::to_string(i) + ".cuh\"\n";
  }
  CHECK(mentions(refused(all), "64 files"));
  folder.write("gemm/half.cuh", std::string(600'000, ' '));
  CHECK(mentions(refused("#include \"half.cuh\"\n" + std::string(600'000, ' ')), "1 MiB"));
  CHECK_FALSE(load_closure(op(), "a.cu", {}).has_value());
}

TEST_CASE_FIXTURE(Fixture, "the digest changes with the source, a header's text and a header's name") {
  folder.write("gemm/h.cuh", "1\n");
  const std::string first = closure("#include \"h.cuh\"\n").digest;
  CHECK(closure("#include \"h.cuh\"\n").digest == first);
  CHECK(closure("#include \"h.cuh\"\n\n").digest != first);
  folder.write("gemm/h.cuh", "2\n");
  const std::string second = closure("#include \"h.cuh\"\n").digest;
  CHECK(second != first);
}

TEST_CASE_FIXTURE(Fixture, "a kernel's key covers source, entry, defines, architecture and compiler") {
  const SourceClosure one = closure("int a;\n");
  const std::string key = kernel_key(one, "k", {"-DA=1", "-DB=2"}, "sm_90a", "13.0");
  CHECK(key == kernel_key(one, "k", {"-DB=2", "-DA=1"}, "sm_90a", "13.0"));
  CHECK(key != kernel_key(one, "j", {"-DA=1", "-DB=2"}, "sm_90a", "13.0"));
  CHECK(key != kernel_key(one, "k", {"-DA=1"}, "sm_90a", "13.0"));
  CHECK(key != kernel_key(one, "k", {"-DA=1-DB=2"}, "sm_90a", "13.0"));
  CHECK(key != kernel_key(one, "k", {"-DA=1", "-DB=2"}, "sm_90", "13.0"));
  CHECK(key != kernel_key(one, "k", {"-DA=1", "-DB=2"}, "sm_90a", "12.9"));
  CHECK(key != kernel_key(closure("int b;\n"), "k", {"-DA=1", "-DB=2"}, "sm_90a", "13.0"));
}
