#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/connection.h"
#include "ctl/output.h"
#include "ctl/shapes.h"
#include "model/digest.h"
#include "wire/messages.h"

namespace tunerd::ctl {
namespace {

constexpr std::int64_t kMaxCubinBytes = std::int64_t{256} << 20;
// The daemon answers within the deadline; this much later it is a broken daemon.
constexpr int kGraceMs = 5'000;

struct Options {
  std::string op, wait = "now", cubin;
  std::vector<std::string> words;
  std::int64_t deadline_ms = 60'000;
  bool no_tune = false;
};

std::string joined(const Json& values) {
  std::string text;
  for (const Json& value : values)
    text += (text.empty() ? "" : ",") + (value.is_string() ? value.get<std::string>() : value.dump());
  return text;
}

std::string launch_line(const wire::GetAnswer& answer) {
  auto symbols = Symbols();
  if (const auto dims = answer.problem_json.find("dims"); dims != answer.problem_json.end() && dims->is_object()) {
    for (const auto& [name, value] : dims->items()) {
      if (value.is_number_integer()) symbols.set(name, value.get<std::int64_t>());
    }
  }
  Json grid = Json::array();
  for (const Expr& extent : answer.recipe.launch.grid) {
    const Expr bound = extent.bind(symbols);
    const auto value = bound.eval({});
    grid.push_back(value ? Json(*value) : Json(bound.text()));
  }
  const Launch& launch = answer.recipe.launch;
  std::string text = "grid " + joined(grid) + "  block " + joined(Json(launch.block));
  if (launch.cluster != std::array<std::int64_t, 3>{1, 1, 1}) text += "  cluster " + joined(Json(launch.cluster));
  return text + "  shared memory " + std::to_string(launch.dynamic_smem_bytes) + " B" + (launch.pdl ? "  PDL" : "");
}

void print_answer(const wire::GetAnswer& answer) {
  std::cout << answer.problem << "\n  variant  " << answer.variant << "\n  quality  " << wire::to_string(answer.quality)
            << ", " << (answer.measured ? "measured" : "predicted") << ", generation " << answer.generation
            << "\n  T_SOL    " << format_us(answer.sol.t_sol_us) << " us (" << answer.sol.bound << " bound)  time "
            << format_us(answer.time_us) << " us  SOL " << format_fraction(answer.sol_fraction) << "\n  kernel   "
            << answer.recipe.entry << ", " << format_bytes(answer.cubin_bytes) << ", " << answer.arch << ", "
            << answer.kernel_digest.substr(0, 16) << "\n  launch   " << launch_line(answer) << '\n';
  if (!answer.note.empty()) std::cout << "  note     " << answer.note << '\n';
}

Result<int> run(const Globals& globals, const Options& options) {
  wire::GetRequest request;
  request.op = options.op;
  TRY_ASSIGN(request.fields, fields_from_words(options.words));
  TRY_ASSIGN(request.wait, wire::wait_from_string(options.wait));
  if (options.deadline_ms < 1 || options.deadline_ms > 3'600'000) {
    return bad_input("--deadline-ms", std::to_string(options.deadline_ms), "1 to 3600000");
  }
  request.deadline_ms = options.deadline_ms;
  request.tune = !options.no_tune;
  TRY_ASSIGN(Connection connection, Connection::open(globals));
  auto reply = connection.call("get", wire::to_json(request), int(options.deadline_ms) + kGraceMs);
  if (!reply) {
    if (request.wait == wire::Wait::cached && reply.error().code == Code::not_found) {
      report(reply.error(), globals.json);
      return kMiss;
    }
    return Unexpected(std::move(reply.error()));
  }
  TRY_ASSIGN(const wire::GetAnswer answer, wire::get_answer_from_json(reply->fields));
  if (!options.cubin.empty()) {
    TRY_ASSIGN(const std::string cubin, read_descriptor(reply->descriptor, kMaxCubinBytes));
    if (const std::string digest = sha256_hex(cubin); digest != answer.kernel_digest) {
      return Unexpected(Error{Code::corrupt,
                              "The kernel that came is not the one the answer speaks of.",
                              "kernel_digest",
                              digest,
                              answer.kernel_digest,
                              {}});
    }
    TRY(write_file_atomically(options.cubin, cubin));
  }
  if (globals.json) {
    print_json(wire::to_json(answer));
  } else {
    print_answer(answer);
  }
  return kOk;
}

}  // namespace

void add_get(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command =
      app.add_subcommand("get", "Ask for the best kernel known now: get gemm m=16 n=4096 k=4096 dtype=bf16");
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  command
      ->add_option("--wait", options->wait,
                   "now: what is ready; tuned: wait for tuning; cached: never compile, a miss exits with 4")
      ->capture_default_str();
  command->add_option("--deadline-ms", options->deadline_ms, "Longest wait for the answer")->capture_default_str();
  command->add_option("--cubin", options->cubin, "Write the kernel to this file");
  command->add_flag("--no-tune", options->no_tune, "Do not let a miss start background tuning");
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
