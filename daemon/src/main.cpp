// tunerd: reads its configuration, takes the lock, serves until told to stop. Exit codes: 0 stopped, 1 could not serve,
// 2 bad configuration, 3 already running.
#include <csignal>
#include <cstdio>
#include <iostream>

#include "daemon/config.h"
#include "log.h"
#include "runtime.h"
#include "server.h"

using namespace tunerd;
using namespace tunerd::daemon;

namespace {

int fail_with(int code, const Error& error) {
  std::fprintf(stderr, "tunerd: %s\n", error.text().c_str());
  return code;
}

int serve(Config config) {
  // The lock comes first: a second daemon must not start workers or touch the cache.
  auto runtime = Runtime::acquire(config.socket);
  if (!runtime)
    return fail_with(runtime.error().code == Code::busy               ? 3
                     : runtime.error().code == Code::invalid_argument ? 2
                                                                      : 1,
                     runtime.error());
  asio::io_context loop(1);
  Server server(loop, std::move(config));
  Status started;
  const int listener = runtime->release_listener();
  asio::co_spawn(loop, server.start(listener), [&](const std::exception_ptr& failure, Status status) {
    if (failure)
      started = fail(Code::internal, "an unexpected failure while starting");
    else
      started = std::move(status);
    if (!started) loop.stop();
  });
  loop.run();
  if (!started) return fail_with(started.error().code == Code::invalid_argument ? 2 : 1, started.error());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  auto line = read_command_line(argc, argv);
  if (!line) return fail_with(2, line.error());
  if (line->exit_now) return 0;
  if (line->check_only) {
    std::cout << to_json(line->config).dump(2) << '\n';
    return 0;
  }
  set_log_level(line->config.log_level);
  try {
    return serve(std::move(line->config));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tunerd: %s\n", error.what());
    return 1;
  }
}
