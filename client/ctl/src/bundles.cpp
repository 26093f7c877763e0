#include <CLI/CLI.hpp>
#include <iostream>

#include "cache/bundle.h"
#include "ctl/connection.h"
#include "ctl/output.h"

namespace tunerd::ctl {
namespace {

constexpr std::int64_t kMaxBundleBytes = std::int64_t{2} << 30;
constexpr int kBundleDeadlineMs = 120'000;

struct Options {
  std::string file, cache, device_class;
  bool no_kernels = false;
};

Result<int> run_export(const Globals& globals, const Options& options) {
  std::string bytes;
  if (options.cache.empty()) {
    if (options.no_kernels) return bad_input("--no-kernels", "without --cache", "--cache DIR beside it");
    TRY_ASSIGN(Connection connection, Connection::open(globals));
    TRY_ASSIGN(const Reply reply, connection.call("export", Json::object(), kBundleDeadlineMs));
    TRY_ASSIGN(bytes, read_descriptor(reply.descriptor, kMaxBundleBytes));
  } else {
    cache::OpenOptions open;
    open.folder = options.cache;
    open.read_only = true;
    TRY_ASSIGN(cache::Store store, cache::Store::open(open));
    TRY_ASSIGN(const cache::Bundle bundle, cache::export_bundle(store, !options.no_kernels));
    bytes = cache::encode_bundle(bundle);
  }
  TRY_ASSIGN(const cache::Bundle bundle, cache::decode_bundle(bytes));
  TRY(write_file_atomically(options.file, bytes));
  if (globals.json) {
    print_json({{"file", options.file}, {"winners", bundle.winners.size()}, {"bytes", bytes.size()}});
  } else {
    std::cout << bundle.winners.size() << " winners, " << format_bytes(std::int64_t(bytes.size())) << ", in "
              << options.file << '\n';
  }
  return kOk;
}

Result<int> run_import(const Globals& globals, const Options& options) {
  TRY_ASSIGN(const std::string bytes, read_text_file(options.file, kMaxBundleBytes));
  TRY_ASSIGN(const cache::Bundle bundle, cache::decode_bundle(bytes));
  Json result;
  if (options.cache.empty()) {
    if (!options.device_class.empty()) {
      return bad_input("--device-class", options.device_class,
                       "--cache DIR beside it: a daemon takes its own device class");
    }
    TRY_ASSIGN(const Descriptor memory, sealed_memory("tunerd-bundle", bytes));
    TRY_ASSIGN(Connection connection, Connection::open(globals));
    TRY_ASSIGN(Reply reply, connection.call("import", Json::object(), kBundleDeadlineMs, memory.get()));
    result = std::move(reply.fields);
  } else {
    cache::OpenOptions open;
    open.folder = options.cache;
    TRY_ASSIGN(cache::Store store, cache::Store::open(open));
    for (const std::string& warning : store.warnings()) std::cerr << "tunerctl: " << warning << '\n';
    TRY_ASSIGN(const cache::ImportReport imported, cache::import_bundle(store, bundle, options.device_class));
    result = {{"imported", imported.imported}, {"kept", imported.kept}, {"skipped", imported.skipped}};
  }
  if (globals.json) {
    print_json(result);
    return kOk;
  }
  std::cout << text_of(result, "imported", "0") << " imported, " << text_of(result, "kept", "0") << " kept\n";
  for (const Json& why : result.value("skipped", Json::array())) {
    std::cout << "  skipped " << (why.is_string() ? why.get<std::string>() : why.dump()) << '\n';
  }
  return kOk;
}

}  // namespace

void add_export(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command = app.add_subcommand("export", "Write the winners, their samples and kernels to one file");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "The bundle to write")->required();
  command->add_option("--cache", options->cache, "Read this cache folder instead of asking the daemon that owns it");
  command->add_flag("--no-kernels", options->no_kernels,
                    "With --cache: leave the kernels out; preload compiles them again");
  command->callback(
      [&globals, &chosen, options] { chosen = [&globals, options] { return run_export(globals, *options); }; });
}

void add_import(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command =
      app.add_subcommand("import", "Take the winners of a bundle over, where they are better; all of it or nothing");
  auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "The bundle to read")->required();
  command->add_option("--cache", options->cache, "Write to this cache folder instead of asking a daemon");
  command->add_option("--device-class", options->device_class, "With --cache: only the winners of this device class");
  command->callback(
      [&globals, &chosen, options] { chosen = [&globals, options] { return run_import(globals, *options); }; });
}

}  // namespace tunerd::ctl
