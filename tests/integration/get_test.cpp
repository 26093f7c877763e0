#include <fcntl.h>
#include <sys/stat.h>

#include "gpu/cubin.h"
#include "harness/check.h"
#include "model/digest.h"
#include "model/recipe.h"
#include "wire/messages.h"
#include "wire/symbols.h"

using namespace tunerd;
using namespace tunerd::test;

namespace {

// The file holds what the answer says it holds, and nobody can change it.
void check_kernel(const Reply& reply) {
  REQUIRE(reply.file.valid());
  CHECK(::fcntl(reply.file.get(), F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  const std::string cubin = reply.file.bytes();
  const auto answer = must(wire::get_answer_from_json(reply.fields));
  CHECK(static_cast<std::int64_t>(cubin.size()) == answer.cubin_bytes);
  CHECK(sha256_hex(cubin) == answer.kernel_digest);
  const auto kernel = must(gpu::find_kernel(cubin, answer.recipe.entry));
  must(gpu::check_parameters(kernel, answer.recipe));
}

}  // namespace

TEST_CASE("a miss is answered with the model's choice: predicted, sealed, and launchable by its recipe") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 256, 1024));
  CHECK(reply.fields["op"] == "twice");
  CHECK(reply.fields["problem"] == "twice{rows=256,cols=1024,dtype=fp32,sign=plus}");
  CHECK(reply.fields["quality"] == "default");
  CHECK(reply.fields["source"] == "predicted");
  CHECK(reply.fields["time_us"].is_null());
  CHECK(reply.fields["sol_fraction"].is_null());
  CHECK(reply.fields["t_sol_us"].get<double>() > 0);
  CHECK(reply.fields["arch"] == "sm_90a");
  check_kernel(reply);

  const auto answer = must(wire::get_answer_from_json(reply.fields));
  const auto symbols = must(wire::recipe_symbols(answer.recipe, answer.problem_json));
  const auto launch = must(concrete_launch(answer.recipe, symbols));
  CHECK(launch.grid[0] == 256);
  CHECK(daemon.stop() == 0);
}

TEST_CASE("a shape that no fast template takes is served by the fallback") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 3, 1021));
  CHECK(reply.fields["quality"] == "fallback");
  CHECK(reply.fields["variant"].get<std::string>().rfind("twice_any{", 0) == 0);
  check_kernel(reply);
}

TEST_CASE("tuning makes the answer exact, a restart keeps it, and without a device it is never called measured") {
  TemporaryFolder home;
  std::string digest;
  {
    Daemon daemon(home.path(), with_twice({"--no-tune"}));
    Client client = daemon.client();
    const Reply report = must(tune_twice(client, 512, 4096));
    CHECK(report.fields["state"] == "predicted");
    CHECK(report.fields["answer"]["source"] == "predicted");
    CHECK(report.fields["compiled"].get<std::int64_t>() >= 1);
    CHECK(report.fields["measured"] == 0);
    CHECK(must(tune_twice(client, 512, 4096)).fields["state"] == "already");
    const Reply reply = must(get_twice(client, 512, 4096));
    CHECK(reply.fields["quality"] == "exact");
    CHECK(reply.fields["source"] == "predicted");
    CHECK(reply.fields["time_us"].is_null());
    digest = reply.fields["kernel_digest"];
    CHECK(daemon.stop() == 0);
  }
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 512, 4096, "cached"));
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.fields["kernel_digest"] == digest);
  check_kernel(reply);
  CHECK(daemon.status().at("compile").at("compiles") == 0);
}

TEST_CASE("a neighbour's winner is served where it is valid, and named") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  must(tune_twice(client, 256, 4096));
  must(tune_twice(client, 16, 64));
  const Reply near = must(get_twice(client, 300, 4096));
  CHECK(near.fields["quality"] == "near");
  CHECK(contains(near.fields["note"], "twice{rows=256,cols=4096,dtype=fp32,sign=plus}"));
  // Its columns break the winner's validity: the neighbour must not be served.
  const Reply odd = must(get_twice(client, 300, 4097));
  CHECK(odd.fields["quality"] != "near");
  check_kernel(odd);
}

TEST_CASE("a cached miss compiles nothing and names the field that differed") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const Error empty = must_fail(get_twice(client, 128, 1024, "cached"));
  CHECK(empty.code == Code::not_found);
  CHECK(daemon.status().at("compile").at("compiles") == 0);
  must(tune_twice(client, 128, 1024));
  const Error other = must_fail(get_twice(client, 129, 1024, "cached"));
  CHECK(other.code == Code::not_found);
  CHECK(contains(other.text(), "rows"));
  CHECK(contains(other.text(), "128"));
  CHECK(contains(other.text(), "129"));
}

TEST_CASE("wait tuned answers with the tuned kernel") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice());
  Client client = daemon.client();
  const Reply reply = must(get_twice(client, 640, 2048, "tuned", true));
  CHECK(reply.fields["quality"] == "exact");
  CHECK(reply.fields["generation"].get<std::uint64_t>() >= 1);
  check_kernel(reply);
}

TEST_CASE("the same question again has the same answer and kernel, to every client, until the winner changes") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client first = daemon.client(), second = daemon.client();
  CHECK(must(get_twice(first, 512, 4096)).fields["quality"] == "default");
  must(tune_twice(first, 512, 4096));
  Json before;
  for (Client* client : {&first, &first, &second, &first}) {
    Reply reply = must(get_twice(*client, 512, 4096));  // its own id, or call() would not take it
    check_kernel(reply);
    CHECK(reply.fields["quality"] == "exact");
    reply.fields.erase("id");
    if (!before.is_null()) CHECK(reply.fields == before);
    before = reply.fields;
  }
  // Many at once, answered in turn, each under its own id.
  Json fields = get_fields("twice", twice(512, 4096));
  for (std::uint64_t id = 1000; id < 1200; ++id) must(first.send(id, "get", fields));
  for (std::uint64_t id = 1000; id < 1200; ++id) {
    const Reply reply = must(first.receive());
    CHECK(reply.fields["id"] == id);
    CHECK(reply.file.valid());
  }
  fields["want_cubin"] = false;
  CHECK_FALSE(must(first.call("get", fields)).file.valid());
  const Json counted = daemon.status();
  CHECK(counted.at("served").at("exact").get<std::int64_t>() >= 205);
  CHECK(daemon.stop() == 0);
}

TEST_CASE("no file comes when no cubin is wanted") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  Json fields = get_fields("twice", twice(64, 64));
  fields["want_cubin"] = false;
  const Reply reply = must(client.call("get", fields));
  CHECK_FALSE(reply.file.valid());
  CHECK(reply.fields["cubin_bytes"].get<std::int64_t>() > 0);
}

TEST_CASE("a tensor of more than 2^32 bytes keeps 64-bit sizes up to the launch") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  const std::int64_t rows = (std::int64_t{1} << 21) + 4, cols = 4096;
  const Reply reply = must(get_twice(client, rows, cols));
  CHECK(reply.fields["bytes"].get<std::int64_t>() == 2 * rows * cols * 4);
  const auto answer = must(wire::get_answer_from_json(reply.fields));
  const auto symbols = must(wire::recipe_symbols(answer.recipe, answer.problem_json));
  must(concrete_launch(answer.recipe, symbols));
  for (const Argument& argument : answer.recipe.arguments) {
    if (argument.kind == Argument::Kind::scalar) CHECK(argument.type == "i64");
    if (argument.name == "rows") CHECK(must(argument.expr.eval(symbols)) == rows);
  }
}

TEST_CASE("two dtypes or attributes are two kernels") {
  TemporaryFolder home;
  Daemon daemon(home.path(), with_twice({"--no-tune"}));
  Client client = daemon.client();
  Json minus = twice(256, 1024);
  minus["sign"] = "minus";
  const Reply a = must(get_twice(client, 256, 1024));
  const Reply b = must(client.call("get", get_fields("twice", minus)));
  CHECK(a.fields["kernel_digest"] != b.fields["kernel_digest"]);
  CHECK(b.fields["problem"] == "twice{rows=256,cols=1024,dtype=fp32,sign=minus}");
}

TEST_CASE("the shipped gemm is served offline for the architecture that was named") {
  TemporaryFolder home;
  DaemonOptions options;
  options.flags = {"--no-tune"};
  Daemon daemon(home.path(), options);
  Client client = daemon.client();
  const Reply reply =
      must(client.call("get", get_fields("gemm", {{"m", 16}, {"n", 4096}, {"k", 4096}, {"dtype", "bf16"}})));
  CHECK(reply.fields["source"] == "predicted");
  CHECK(reply.fields["flops"] == 2LL * 16 * 4096 * 4096);
  check_kernel(reply);
}
