#include "model/catalog.h"

#include "template_folder.h"

using namespace tunerd;
using namespace tunerd::testing;

namespace {

Error refused(const std::vector<fs::path>& folders) {
  const Result<Catalog> loaded = Catalog::load(folders);
  REQUIRE_FALSE(loaded.has_value());
  return loaded.error();
}

bool mentions(const Error& error, const std::string& word) { return error.text().find(word) != std::string::npos; }

}  // namespace

TEST_CASE("a template folder is read whole, templates by name, without device/") {
  TemporaryFolder folder;
  write_gemm(folder);
  folder.write("gemm/README.md", "no template\n");
  const Catalog catalog = must(Catalog::load({folder.path()}));
  REQUIRE(catalog.ops().size() == 1);
  const OpEntry& entry = *must(catalog.op("gemm"));
  REQUIRE(entry.templates.size() == 4);
  CHECK(entry.templates[0].manifest.name == "gemm_mma");
  CHECK(entry.templates[3].manifest.name == "gemm_tma");
  CHECK(entry.templates[0].closure.headers.size() == 2);
  CHECK(entry.templates[0].manifest.folder == folder.path() / "gemm");
  CHECK(entry.op.folder == folder.path() / "gemm");
  CHECK(entry.reference.name == "reference.cu");
  CHECK(must(catalog.find_template("gemm_tma"))->manifest.name == "gemm_tma");
}

TEST_CASE("an unknown op or template suggests the nearest") {
  TemporaryFolder folder;
  write_gemm(folder);
  const Catalog catalog = must(Catalog::load({folder.path()}));
  CHECK(catalog.op("gem").error().suggestion == "gemm");
  CHECK(catalog.find_template("gemm_mna").error().suggestion == "gemm_mma");
}

TEST_CASE("a user's folder adds a template to an op and sees the first folder's device headers") {
  TemporaryFolder first, second;
  write_gemm(first);
  Json mine = gemm_mma();
  mine["template"] = "gemm_mine";
  second.write_json("gemm/gemm_mine.json", mine);
  second.write("gemm/gemm_mma.cu", "#include \"device/types.cuh\"\n");
  const Catalog catalog = must(Catalog::load({first.path(), second.path()}));
  const Template* added = must(catalog.find_template("gemm_mine"));
  CHECK(added->manifest.folder == second.path() / "gemm");
  CHECK(added->closure.headers.at(0).first == "device/types.cuh");
  CHECK(must(catalog.op("gemm"))->templates.size() == 5);
  // Which folder comes first does not matter for who may add to whom.
  CHECK(must(Catalog::load({second.path(), first.path()})).ops().size() == 1);
}

TEST_CASE("a template or op defined twice is an error that names both files") {
  TemporaryFolder first, second;
  write_gemm(first);
  second.write_json("gemm/again.json", gemm_mma());
  second.write("gemm/gemm_mma.cu", "\n");
  const Error error = refused({first.path(), second.path()});
  CHECK(mentions(error, (first.path() / "gemm/gemm_mma.json").string()));
  CHECK(mentions(error, (second.path() / "gemm/again.json").string()));

  TemporaryFolder third;
  third.write_json("gemm/op.json", gemm_op());
  third.write("gemm/reference.cu", "\n");
  const Error op_error = refused({first.path(), third.path()});
  CHECK(mentions(op_error, (first.path() / "gemm/op.json").string()));
  CHECK(mentions(op_error, (third.path() / "gemm/op.json").string()));
}

TEST_CASE("one folder named twice is read once") {
  TemporaryFolder folder;
  write_gemm(folder);
  const Catalog twice = must(Catalog::load({folder.path(), folder.path() / "gemm" / ".."}));
  CHECK(twice.digest() == must(Catalog::load({folder.path()})).digest());
}

TEST_CASE("a template for an op that no folder defines suggests the nearest op") {
  TemporaryFolder folder;
  write_gemm(folder);
  Json mine = gemm_mma();
  mine["template"] = "mine";
  folder.write_json("gem/mine.json", mine);
  const Error error = refused({folder.path()});
  CHECK(error.suggestion == "gemm");
  CHECK(mentions(error, "mine.json"));
}

TEST_CASE("an op must have its folder's name") {
  TemporaryFolder folder;
  write_gemm(folder);
  folder.write_json("matmul/op.json", gemm_op());
  folder.write("matmul/reference.cu", "\n");
  CHECK(mentions(refused({folder.path()}), "matmul"));
}

TEST_CASE("a broken file is an error that names it") {
  TemporaryFolder folder;
  write_gemm(folder);
  folder.write("gemm/gemm_tma.json", std::string("{ \"template\": "));
  CHECK(mentions(refused({folder.path()}), "gemm_tma.json"));
  Json typo = gemm_tma();
  typo["validty"] = Json::array();
  folder.write_json("gemm/gemm_tma.json", typo);
  const Error error = refused({folder.path()});
  CHECK(error.suggestion == "validity");
  CHECK(mentions(error, "gemm_tma.json"));
}

TEST_CASE("a missing folder, reference or source is an error that says which") {
  TemporaryFolder folder;
  CHECK(refused({folder.path() / "none"}).code == Code::missing);
  CHECK_FALSE(Catalog::load({}).has_value());
  write_gemm(folder);
  fs::remove(folder.path() / "gemm/gemm_tma.cu");
  CHECK(mentions(refused({folder.path()}), "gemm_tma.cu"));
  write_gemm(folder);
  fs::remove(folder.path() / "gemm/reference.cu");
  CHECK(mentions(refused({folder.path()}), "reference.cu"));
}

TEST_CASE("files that link out of the template folder are refused") {
  TemporaryFolder outside;
  write_gemm(outside);
  {
    TemporaryFolder folder;
    write_gemm(folder);
    fs::remove(folder.path() / "gemm/gemm_tma.json");
    fs::create_symlink(outside.path() / "gemm/gemm_tma.json", folder.path() / "gemm/gemm_tma.json");
    CHECK(refused({folder.path()}).code == Code::denied);
  }
  {
    TemporaryFolder folder;
    fs::create_directory_symlink(outside.path() / "gemm", folder.path() / "gemm");
    CHECK(refused({folder.path()}).code == Code::denied);
  }
  TemporaryFolder folder;
  write_gemm(folder);
  fs::remove(folder.path() / "gemm/gemm_tma.cu");
  fs::create_symlink(outside.path() / "gemm/gemm_tma.cu", folder.path() / "gemm/gemm_tma.cu");
  CHECK(refused({folder.path()}).code == Code::denied);
}

TEST_CASE("the digest changes with every file and with nothing else") {
  TemporaryFolder folder;
  write_gemm(folder);
  const auto digest = [&] { return must(Catalog::load({folder.path()})).digest(); };
  const std::string before = digest();
  CHECK(before.size() == 64);
  CHECK(digest() == before);
  for (const char* file : {"device/types.cuh", "gemm/gemm_tma.cu", "gemm/reference.cu"}) {
    CAPTURE(file);
    write_gemm(folder);
    folder.write(file, std::string("// changed\n"));
    CHECK(digest() != before);
  }
  write_gemm(folder);
  Json op = gemm_op();
  op["summary"] = "other";
  folder.write_json("gemm/op.json", op);
  CHECK(digest() != before);
  write_gemm(folder);
  Json manifest = gemm_tma();
  manifest["params"]["bm"] = {64};
  folder.write_json("gemm/gemm_tma.json", manifest);
  CHECK(digest() != before);
  write_gemm(folder);
  CHECK(digest() == before);
  // The same templates elsewhere are the same templates.
  TemporaryFolder copy;
  write_gemm(copy);
  CHECK(must(Catalog::load({copy.path()})).digest() == before);
}
