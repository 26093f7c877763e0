#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <map>

#include "ctl/connection.h"
#include "ctl/output.h"
#include "ctl/progress.h"
#include "ctl/shapes.h"
#include "ctl/tuning.h"

namespace tunerd::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// One request waits this long at most, so that an interrupt or a dead daemon is seen; then the problem is asked for
// again.
constexpr std::int64_t kSliceMs = 60'000;
constexpr int kPollMs = 200;
constexpr auto kBusyPause = std::chrono::milliseconds(500);

struct Options {
  std::string file;
  std::int64_t concurrency = 8;
  TuneOptions tuning;
};

struct Item {
  Json problem;
  Json report;  // null until done
  Clock::time_point first_asked{}, not_before{};
};

bool failed(const Json& report) {
  const std::string state = text_of(report, "state");
  return state == "failed" || state == "pending";
}

Json failure(const Json& problem, const Error& error) {
  return {{"problem", describe(problem)}, {"state", "failed"}, {"error", error_json(error)}};
}

class Sweep {
 public:
  Sweep(const Options& options, std::vector<Json> problems, Connection& connection)
      : options_(options), connection_(connection), progress_(problems.size()) {
    for (Json& problem : problems) items_.push_back({std::move(problem), nullptr});
    for (std::size_t i = 0; i < items_.size(); ++i) waiting_.push_back(i);
  }

  // Ends when all are done, or when interrupted. A connection that breaks is the one error.
  Status run() {
    while ((!waiting_.empty() || !in_flight_.empty()) && !interrupted()) {
      TRY(fill());
      TRY_ASSIGN(std::optional<Connection::Numbered> numbered, connection_.next(kPollMs));
      if (numbered) take(std::move(*numbered));
    }
    return {};
  }

  const std::deque<Item>& items() const { return items_; }

 private:
  Status fill() {
    const auto now = Clock::now();
    // What was put off comes back at the end, so only the first round of the queue is looked at.
    for (std::size_t looked = waiting_.size(); looked > 0 && std::int64_t(in_flight_.size()) < options_.concurrency;
         --looked) {
      const std::size_t index = waiting_.front();
      waiting_.pop_front();
      Item& item = items_[index];
      if (item.not_before > now) {
        waiting_.push_back(index);
        continue;
      }
      if (item.first_asked == Clock::time_point{}) item.first_asked = now;
      const std::int64_t slice = std::clamp<std::int64_t>(left_ms(item), 1, kSliceMs);
      TRY_ASSIGN(Json request, tune_request(item.problem, options_.tuning, slice));
      TRY_ASSIGN(const std::uint64_t id, connection_.send("tune", std::move(request)));
      in_flight_[id] = index;
    }
    return {};
  }

  std::int64_t left_ms(const Item& item) const {
    const auto used = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - item.first_asked).count();
    return options_.tuning.wait_s * 1000 - used;
  }

  void take(Connection::Numbered numbered) {
    const auto found = in_flight_.find(numbered.id);
    if (found == in_flight_.end()) return;
    const std::size_t index = found->second;
    in_flight_.erase(found);
    Item& item = items_[index];
    const bool again = left_ms(item) > 0;
    if (!numbered.reply) {
      // A full queue is the daemon asking for patience.
      if (numbered.reply.error().code == Code::busy && again) {
        item.not_before = Clock::now() + kBusyPause;
        waiting_.push_back(index);
        return;
      }
      item.report = failure(item.problem, numbered.reply.error());
    } else if (text_of(numbered.reply->fields, "state") == "pending" && again) {
      waiting_.push_back(index);
      return;
    } else {
      item.report = std::move(numbered.reply->fields);
    }
    progress_.step(report_line(item.report));
  }

  const Options& options_;
  Connection& connection_;
  Progress progress_;
  std::deque<Item> items_;
  std::deque<std::size_t> waiting_;
  std::map<std::uint64_t, std::size_t> in_flight_;
};

void print_table(const std::deque<Item>& items) {
  Table table({"problem", "variant", "T_SOL us", "time us", "SOL", "source", "state"},
              {false, false, true, true, true});
  for (const Item& item : items) {
    if (item.report.is_null()) continue;
    const Json answer = item.report.value("answer", Json::object());
    table.add({text_of(item.report, "problem", "?"), text_of(answer, "variant", "-"),
               format_us(number_of(answer, "t_sol_us")), format_us(number_of(answer, "time_us")),
               format_fraction(number_of(answer, "sol_fraction")), text_of(answer, "source", "-"),
               text_of(item.report, "state", "?")});
  }
  if (!table.empty()) table.print(std::cout);
}

std::string why(const Json& report) {
  if (report.contains("error")) {
    const Json& error = report["error"];
    Error rebuilt{Code::internal,          text_of(error, "message"),  text_of(error, "field"),
                  text_of(error, "value"), text_of(error, "expected"), text_of(error, "suggestion")};
    return rebuilt.text();
  }
  if (text_of(report, "state") == "pending") return "not tuned within --wait-s";
  const std::string reason = text_of(report, "stop_reason");
  const std::string note = report.contains("answer") ? text_of(report["answer"], "note") : "";
  return reason.empty() && note.empty() ? "tuning failed" : reason + (note.empty() ? "" : " " + note);
}

Result<int> run(const Globals& globals, const Options& options) {
  if (options.concurrency < 1 || options.concurrency > 256) {
    return bad_input("--concurrency", std::to_string(options.concurrency), "1 to 256");
  }
  TRY(tune_request(Json::object(), options.tuning, 1));  // bad options are one error, not one a problem
  TRY_ASSIGN(std::vector<Json> problems, read_shapes(options.file));
  TRY_ASSIGN(Connection connection, Connection::open(globals));
  catch_interrupts();
  std::deque<Item> items;
  Status ran;
  {
    Sweep sweep(options, std::move(problems), connection);
    ran = sweep.run();
    items = sweep.items();
  }
  std::size_t done = 0;
  std::vector<const Item*> failures;
  for (const Item& item : items) {
    done += item.report.is_null() ? 0 : 1;
    if (!item.report.is_null() && failed(item.report)) failures.push_back(&item);
  }
  if (globals.json) {
    Json reports = Json::array();
    for (const Item& item : items) {
      if (!item.report.is_null()) reports.push_back(item.report);
    }
    print_json(reports);
  } else {
    print_table(items);
    if (!failures.empty()) std::cout << '\n' << failures.size() << " of " << items.size() << " failed:\n";
    for (const Item* item : failures) std::cout << "  " << describe(item->problem) << ": " << why(item->report) << '\n';
  }
  if (done < items.size() && (interrupted() || !ran)) {
    std::cerr << "tunerctl: " << done << " of " << items.size() << " done; the same command goes on from here.\n";
  }
  if (!ran) return Unexpected(ran.error());
  if (interrupted()) return kInterrupted;
  return failures.empty() ? kOk : kSomeFailed;
}

}  // namespace

void add_sweep(CLI::App& app, const Globals& globals, Run& chosen) {
  auto* command =
      app.add_subcommand("sweep", "Tune every problem of a shape file; what is tuned already is answered at once");
  auto options = std::make_shared<Options>();
  command
      ->add_option("file", options->file,
                   "{\"problems\":[{\"op\":\"gemm\",\"m\":16,…}]}, a list, or JSON lines; - reads standard input")
      ->required();
  command->add_option("--concurrency", options->concurrency, "Requests in flight, 1 to 256")->capture_default_str();
  add_tune_options(*command, options->tuning);
  command->callback([&globals, &chosen, options] { chosen = [&globals, options] { return run(globals, *options); }; });
}

}  // namespace tunerd::ctl
