#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/kernel_job.h"
#include "ctl/local.h"
#include "ctl/output.h"
#include "ctl/shapes.h"
#include "model/digest.h"

namespace tunerd::ctl {
namespace {

struct Options {
  std::string variant, op, device, arch, output;
  std::vector<std::string> words;
};

Result<wire::CompileResult> compile_one(const wire::CompileJob& job) {
  wire::CompileResult result;
  TRY(worker_host::compile_all(compile_pool_options(1), {job},
                               [&](std::size_t, wire::CompileResult done) { result = std::move(done); }));
  if (result.ok) return result;
  Error error{Code::compile_failed,
              "The kernel does not compile: " + result.error + "\n" + result.log,
              "variant",
              job.name,
              "a variant that compiles for " + job.arch,
              {}};
  return Unexpected(std::move(error));
}

Result<int> run(const Globals& globals, const Options& options) {
  TRY_ASSIGN(const Variant variant, Variant::parse(options.variant));
  TRY_ASSIGN(const Json fields, fields_from_words(options.words));
  TRY_ASSIGN(const Catalog catalog, load_catalog(globals));
  TRY_ASSIGN(const OpEntry* entry, catalog.op(options.op));
  TRY_ASSIGN(const Template* source, catalog.find_template(variant.template_name));
  if (source->manifest.op != entry->op.name) {
    return bad_input("variant", options.variant, "a variant of a template of op " + entry->op.name);
  }
  TRY_ASSIGN(const Problem problem, make_problem(entry->op, fields));
  TRY_ASSIGN(const DeviceSpec device, choose_device(globals, options.device, options.arch));
  TRY_ASSIGN(const KernelJob made, make_kernel_job(*source, entry->op, variant, problem, device));
  TRY_ASSIGN(const wire::CompileResult result, compile_one(made.job));
  TRY(write_file_atomically(options.output, result.cubin));
  if (!result.rejected.empty()) {
    std::cerr << "tunerctl: compiled, but the tuner would not use it: " << result.rejected << '\n';
  }
  const Json json{{"variant", variant.text()},
                  {"problem", problem.key(entry->op)},
                  {"arch", device.arch},
                  {"file", options.output},
                  {"entry", made.job.entry},
                  {"kernel_digest", sha256_hex(result.cubin)},
                  {"cubin_bytes", result.cubin.size()},
                  {"registers", result.registers},
                  {"spill_bytes", result.spill_bytes},
                  {"stack_bytes", result.stack_bytes},
                  {"static_smem_bytes", result.static_smem_bytes},
                  {"dynamic_smem_bytes", made.spec.recipe.launch.dynamic_smem_bytes},
                  {"rejected", result.rejected},
                  {"compile_ms", result.compile_ms},
                  {"log", result.log}};
  if (globals.json) {
    print_json(json);
  } else {
    std::cout << variant.text() << " for " << device.arch << " in " << options.output << ": "
              << format_bytes(std::int64_t(result.cubin.size())) << ", " << result.registers << " registers, "
              << result.spill_bytes << " B spilled, " << result.static_smem_bytes << " + "
              << made.spec.recipe.launch.dynamic_smem_bytes << " B shared memory, " << std::int64_t(result.compile_ms)
              << " ms\n";
  }
  return kOk;
}

}  // namespace

void add_compile(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand("compile", "Compile one variant to a cubin file; asks no daemon and needs no GPU");
  auto options = std::make_shared<Options>();
  command->add_option("variant", options->variant, "As `variants` prints it: 'gemm_mma{bk=32,bm=128,…}'")->required();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  command->add_option("--arch", options->arch, "Architecture, such as sm_90a");
  command->add_option("--device", options->device, "Or a device of config/devices");
  command->add_option("-o,--output", options->output, "The cubin to write")->required();
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
