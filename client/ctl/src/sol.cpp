#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "ctl/local.h"
#include "ctl/output.h"
#include "ctl/shapes.h"
#include "model/sol.h"

namespace tunerd::ctl {
namespace {

struct Options {
  std::string op, device, arch;
  std::vector<std::string> words;
  double peak_flops = 0, bandwidth = 0;
  std::int64_t bytes = 0;
};

Result<DeviceSpec> device_of(const Globals& globals, const Options& options) {
  if (options.peak_flops < 0) return bad_input("--peak-flops", std::to_string(options.peak_flops), "flop/s, over 0");
  if (options.bandwidth < 0) return bad_input("--bandwidth", std::to_string(options.bandwidth), "bytes/s, over 0");
  DeviceSpec device;
  const bool by_hand = options.peak_flops > 0 && options.bandwidth > 0;
  if (!by_hand || !options.device.empty() || !options.arch.empty()) {
    TRY_ASSIGN(device, choose_device(globals, options.device, options.arch));
  }
  return device;
}

Result<int> run(const Globals& globals, const Options& options) {
  TRY_ASSIGN(const Json fields, fields_from_words(options.words));
  TRY_ASSIGN(const Catalog catalog, load_catalog(globals));
  TRY_ASSIGN(const OpEntry* entry, catalog.op(options.op));
  TRY_ASSIGN(const Problem problem, make_problem(entry->op, fields));
  TRY_ASSIGN(DeviceSpec device, device_of(globals, options));
  if (options.peak_flops > 0) {
    // Whichever peak the op counts against, the given one is meant.
    for (auto& [dtype, peak] : device.peak_flops) peak = options.peak_flops;
    for (const char* dtype : {"bf16", "fp16", "tf32", "fp32", "fp64", "fp8", "int8"})
      device.peak_flops[dtype] = options.peak_flops;
  }
  if (options.bandwidth > 0) device.memory_bytes_per_s = options.bandwidth;
  TRY_ASSIGN(Sol sol, speed_of_light(entry->op, problem, device));
  if (options.peak_flops > 0 || options.bandwidth > 0) {
    sol.peaks_source =
        options.peak_flops > 0 && options.bandwidth > 0 ? "command line" : sol.peaks_source + ", command line";
  }
  if (options.bytes > 0) {
    sol.bytes = options.bytes;
    sol.t_memory_us = double(sol.bytes) / sol.memory_bytes_per_s * 1e6;
    sol.t_sol_us = std::max(sol.t_compute_us, sol.t_memory_us);
    sol.bound = sol.t_compute_us >= sol.t_memory_us ? "compute" : "memory";
  } else if (options.bytes < 0) {
    return bad_input("--bytes", std::to_string(options.bytes), "over 0");
  }
  const std::string key = problem.key(entry->op);
  const std::string name = device.name.empty() ? "command line" : device.name;
  if (globals.json) {
    Json json = to_json(sol);
    json["problem"] = key;
    json["device"] = name;
    print_json(json);
    return kOk;
  }
  std::cout << key << " on " << name << "\n  flops      " << sol.flops << "\n  bytes      " << sol.bytes << " ("
            << format_bytes(sol.bytes) << ")\n  T_compute  " << format_us(sol.t_compute_us) << " us at "
            << sol.peak_flops_per_s / 1e12 << " TFLOP/s\n  T_memory   " << format_us(sol.t_memory_us) << " us at "
            << sol.memory_bytes_per_s / 1e9 << " GB/s\n  T_SOL      " << format_us(sol.t_sol_us) << " us, " << sol.bound
            << " bound\n  peaks      " << sol.peaks_source << '\n';
  return kOk;
}

}  // namespace

void add_sol(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand("sol", "The Speed-of-Light bound of a problem on a device; asks no daemon");
  auto options = std::make_shared<Options>();
  command->add_option("op", options->op, "Name of the op")->required();
  command->add_option("fields", options->words, "Dimensions, dtype and attributes as name=value");
  command->add_option("--device", options->device, "A name from config/devices, such as h200-sxm");
  command->add_option("--arch", options->arch, "Or the device that stands for an architecture, such as sm_90a");
  command->add_option("--peak-flops", options->peak_flops, "Use this peak, in flop/s");
  command->add_option("--bandwidth", options->bandwidth,
                      "Use this memory bandwidth, in bytes/s; with --peak-flops no device is needed");
  command->add_option("--bytes", options->bytes, "Use this byte count instead of the op's fused bytes");
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
