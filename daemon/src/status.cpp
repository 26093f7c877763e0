#include <unistd.h>

#include "requests.h"
#include "server.h"
#include "tuner.h"

namespace tunerd::daemon {

Json status_report(Server& server) {
  auto& core = server.core();
  const auto& counters = core.counters;
  const auto& compiles = core.compile->counters();
  Json out{{"server", std::string("tunerd ") + TUNERD_VERSION},
           {"pid", ::getpid()},
           {"uptime_s", std::chrono::duration<double>(Clock::now() - core.started).count()},
           {"device", core.product_name},
           {"device_class", core.context.device_class.key()},
           {"device_class_fields", to_json(core.context.device_class)},
           {"environment", core.context.environment.key()},
           {"environment_fields", to_json(core.context.environment)},
           {"peaks", core.device.name},
           {"offline", !core.real_device()},
           {"socket", core.config.socket.string()},
           {"cache", core.config.cache.string()},
           {"read_only", core.config.read_only},
           {"clients", server.sessions()},
           {"warnings", core.warnings}};
  out["tuning"] = {{"queued", server.tuner().queued()},
                   {"active", server.tuner().active()},
                   {"tuned", counters.tuned},
                   {"failed", counters.tune_failed},
                   {"untuned", server.tuner().untuned()}};
  out["compile"] = {
      {"workers", core.compile->workers()}, {"active", core.compile->active()}, {"queued", core.compile->queued()},
      {"compiles", compiles.compiles},      {"failed", compiles.failed},        {"rejected", compiles.rejected},
      {"killed", compiles.killed},          {"joined", compiles.joined},        {"seconds", compiles.seconds}};
  if (core.measure) {
    const auto& measured = core.measure->counters();
    out["measure"] = {
        {"running", core.measure->running()}, {"measurements", measured.measurements}, {"wrong", measured.wrong},
        {"faults", measured.faults},          {"tainted", measured.tainted},           {"seconds", measured.seconds}};
  }
  out["served"] = counters.served;
  out["counters"] = {{"connections", counters.connections},
                     {"refused_peers", counters.refused_peers},
                     {"refused_full", counters.refused_full},
                     {"dropped_clients", counters.dropped_clients},
                     {"requests", counters.requests},
                     {"bad_requests", counters.bad_requests},
                     {"denied", counters.denied},
                     {"misses", counters.misses},
                     {"pushes", counters.pushes},
                     {"store_errors", counters.store_errors},
                     {"writes_skipped", counters.writes_skipped}};
  if (const auto counts = core.store->counts())
    out["stored"] = {{"problems", counts->problems},   {"variants", counts->variants},
                     {"samples", counts->samples},     {"winners", counts->winners},
                     {"artifacts", counts->artifacts}, {"quarantined", counts->quarantined},
                     {"bytes", counts->bytes}};
  return out;
}

}  // namespace tunerd::daemon
