#include "fixture.h"
#include "model/digest.h"

using namespace tunerd;
using namespace tunerd::ctl;
using namespace tunerd::ctl::test;

TEST_CASE("help tells every command and exit code") {
  const Ran help = tunerctl({"--help"});
  CHECK(help.code == 0);
  for (const char* word : {"get", "tune", "sweep", "status", "list", "show", "explain", "sol", "variants", "compile",
                           "export", "import", "preload", "quarantine", "stop", "Exit codes", "130"}) {
    CHECK_MESSAGE(help.out.find(word) != std::string::npos, word);
  }
}

TEST_CASE("a mistyped command or option is an error with the nearest one") {
  const Ran command = tunerctl({"--socket", "/nowhere", "statsu"});
  CHECK(command.code == kUsage);
  CHECK(command.err.find("statsu") != std::string::npos);
  CHECK(command.err.find("did you mean status") != std::string::npos);
  const Ran option = tunerctl({"status", "--jsno"});
  CHECK(option.code == kUsage);
  CHECK(option.err.find("did you mean --json") != std::string::npos);
  const Ran json = tunerctl({"get", "--json"});
  CHECK(json.code == kUsage);
  CHECK(Json::parse(json.err)["error"]["code"] == "invalid_argument");
  CHECK(tunerctl({}).code == kUsage);
}

TEST_CASE("sol prints flops, bytes, both times and the bound, with the peaks of a device or by hand") {
  Templates templates;
  const Json sol =
      tunerctl({"sol", "scale", "rows=1000", "cols=1000", "--peak-flops", "1e12", "--bandwidth", "1e12", "--json"})
          .json();
  CHECK(sol["flops"] == 1'000'000);
  CHECK(sol["bytes"] == 8'000'000);
  CHECK(sol["t_compute_us"].get<double>() == doctest::Approx(1));
  CHECK(sol["t_memory_us"].get<double>() == doctest::Approx(8));
  CHECK(sol["t_sol_us"].get<double>() == doctest::Approx(8));
  CHECK(sol["bound"] == "memory");
  CHECK(sol["peaks_source"] == "command line");
  const Json other = tunerctl({"sol", "scale", "rows=1000", "cols=1000", "--peak-flops", "1e9", "--bandwidth", "1e12",
                               "--bytes", "4000000", "--json"})
                         .json();
  CHECK(other["t_memory_us"].get<double>() == doctest::Approx(4));
  CHECK(other["bound"] == "compute");
  const Json h200 = tunerctl({"sol", "scale", "rows=1000", "cols=1000", "--device", "h200-sxm", "--json"}).json();
  CHECK(h200["device"] == "h200-sxm");
  CHECK(h200["memory_bytes_per_s"].get<double>() == doctest::Approx(4.8e12));
  CHECK(tunerctl({"sol", "scale", "rows=8", "cols=8", "--arch", "sm_90"}).out.find("T_SOL") != std::string::npos);
}

TEST_CASE("bad input to sol and variants exits with 2 and names field, value and what was expected") {
  Templates templates;
  const auto check = [](std::vector<std::string> words, std::vector<std::string> parts) {
    const Ran ran = tunerctl(std::move(words));
    CHECK(ran.code == kUsage);
    CHECK(ran.out.empty());
    for (const std::string& part : parts) CHECK_MESSAGE(ran.err.find(part) != std::string::npos, ran.err);
  };
  check({"sol", "scael", "rows=1", "cols=2", "--device", "h200-sxm"}, {"scael", "did you mean scale"});
  check({"sol", "scale", "row=1", "cols=2", "--device", "h200-sxm"}, {"row", "did you mean rows"});
  check({"sol", "scale", "rows=0", "cols=2", "--device", "h200-sxm"}, {"rows", "0"});
  check({"sol", "scale", "rows=-4", "cols=2", "--device", "h200-sxm"}, {"rows", "-4"});
  check({"sol", "scale", "rows=4294967296", "cols=2", "--device", "h200-sxm"}, {"rows", "4294967296"});
  check({"sol", "scale", "rows=1", "cols=2", "dtype=bf17", "--device", "h200-sxm"}, {"dtype", "bf17"});
  check({"sol", "scale", "rows=1", "cols=2", "sign=plsu", "--device", "h200-sxm"},
        {"sign", "plsu", "did you mean plus"});
  check({"sol", "scale", "rows=1", "cols=2", "--device", "h200-sxn"}, {"h200-sxn", "did you mean h200-sxm"});
  check({"sol", "scale", "rows=1", "cols=2"}, {"--device", "neither"});
  check({"sol", "scale", "rows=1", "cols=2", "--device", "h200-sxm", "--arch", "sm_90a"}, {"both"});
  check({"variants", "scale", "rows=1", "cols=2", "--arch", "sm_9x"}, {"sm_9x"});
  check({"variants", "scale", "rows=1", "cols=2", "--arch", "sm_90a", "--templates", "/nonexistent"}, {"/nonexistent"});
}

TEST_CASE("variants lists the whole space, and says why the others are out") {
  Templates templates;
  const Json rows =
      tunerctl({"variants", "scale", "rows=8", "cols=8", "dtype=fp32", "--arch", "sm_90a", "--json"}).json();
  REQUIRE(rows.size() == 3);
  CHECK(rows[0]["valid"] == true);
  CHECK(rows[1]["valid"] == true);
  CHECK(rows[0]["predicted_us"].get<double>() <= rows[1]["predicted_us"].get<double>());
  CHECK(rows[2]["variant"] == "scale_rows{threads=2048}");
  CHECK(rows[2]["valid"] == false);
  CHECK(rows[2]["reason"].get<std::string>().find("at most 1024 threads") != std::string::npos);
  CHECK(
      tunerctl({"variants", "scale", "rows=8", "cols=8", "--device", "h200-sxm", "--valid", "--json"}).json().size() ==
      2);
  const Json odd = tunerctl({"variants", "scale", "rows=8", "cols=7", "--arch", "sm_80", "--json"}).json();
  for (const Json& row : odd) CHECK(row["valid"] == false);
  const Ran human = tunerctl({"variants", "scale", "rows=8", "cols=8", "--arch", "sm_90a"});
  CHECK(human.out.find("2 valid of 3") != std::string::npos);
  CHECK(human.out.find("at most 1024 threads") != std::string::npos);
}

TEST_CASE("compile writes a cubin, and says what is wrong with a variant that is none") {
  Templates templates;
  TemporaryFolder folder;
  const std::string file = folder / "scale.cubin";
  const std::vector<std::string> problem = {"scale", "rows=8", "cols=8", "--arch", "sm_90a", "-o", file, "--json"};
  const auto compile = [&](const std::string& variant) {
    std::vector<std::string> words = {"compile", variant};
    words.insert(words.end(), problem.begin(), problem.end());
    return tunerctl(std::move(words));
  };
  const Ran made = compile("scale_rows{threads=128}");
  REQUIRE_MESSAGE(made.code == 0, made.err);
  const std::string cubin = read_text(file);
  CHECK(cubin.substr(0, 4) ==
        "\x7f"
        "ELF");
  CHECK(made.json()["kernel_digest"] == sha256_hex(cubin));
  CHECK(made.json()["registers"].get<int>() > 0);
  fs::remove(file);
  CHECK(compile("scale_rows{threads=2048}").err.find("at most 1024 threads") != std::string::npos);
  CHECK(compile("scale_rows{threads=65}").code == kUsage);
  CHECK(compile("scale_rosw{threads=64}").err.find("scale_rows") != std::string::npos);
  CHECK(compile("scale_rows{threads").code == kUsage);
  CHECK_FALSE(fs::exists(file));
  write_text(templates.path() / "scale" / "scale_rows.cu", "extern \"C\" __global__ void scale_rows() { nonsense; }");
  const Ran broken = compile("scale_rows{threads=128}");
  CHECK(broken.code == kFailed);
  CHECK(broken.err.find("nonsense") != std::string::npos);
  CHECK_FALSE(fs::exists(file));
}
