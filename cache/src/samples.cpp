#include <algorithm>

#include "store_impl.h"

namespace tunerd::cache {
namespace {

constexpr const char* kSelect =
    "SELECT v.text, v.template_digest, s.median_us, s.samples_us, s.tainted, s.taint, s.status, s.error, s.gates, "
    "s.device_before, s.device_after, s.launches_per_replay, s.copies, s.launch_floor_us, s.at "
    "FROM samples s JOIN problems p ON p.id = s.problem JOIN device_classes d ON d.id = s.device_class "
    "JOIN environments e ON e.id = s.environment JOIN variants v ON v.id = s.variant "
    "WHERE p.key = ? AND d.key = ? AND e.key = ? ORDER BY s.id";

// A sample is provenance: when its JSON is damaged the numbers beside it are still worth showing.
Json json_or_null(std::string_view text) {
  auto json = parse_text(text, "sample");
  return json ? std::move(*json) : Json();
}

Sample read_sample(const Statement& row) {
  Sample sample;
  sample.variant = row.text_at(0);
  sample.template_digest = row.text_at(1);
  sample.median_us = row.real_at(2);
  if (const Json times = json_or_null(row.view_at(3)); times.is_array()) {
    for (const Json& time : times) {
      if (time.is_number()) sample.samples_us.push_back(time.get<double>());
    }
  }
  sample.tainted = row.integer_at(4) != 0;
  sample.taint = row.text_at(5);
  sample.status = row.text_at(6);
  sample.error = row.text_at(7);
  sample.gates = json_or_null(row.view_at(8));
  sample.device_before = json_or_null(row.view_at(9));
  sample.device_after = json_or_null(row.view_at(10));
  sample.launches_per_replay = row.integer_at(11);
  sample.copies = row.integer_at(12);
  sample.launch_floor_us = row.real_at(13);
  sample.at = row.text_at(14);
  return sample;
}

}  // namespace

Status insert_sample(Database& database, const Context& context, const Problem& problem, const std::string& problem_key,
                     const Sample& sample) {
  TRY_ASSIGN(const std::int64_t device_class, intern_device_class(database, context.device_class));
  TRY_ASSIGN(const std::int64_t environment, intern_environment(database, context.environment));
  TRY_ASSIGN(const std::int64_t problem_id, intern_problem(database, problem, problem_key));
  TRY_ASSIGN(const std::int64_t variant, intern_variant(database, sample.variant, sample.template_digest));
  const std::string at = sample.at.empty() ? utc_now() : sample.at;
  const std::string times = dump_text(Json(sample.samples_us));
  const std::string gates = dump_text(sample.gates);
  const std::string before = dump_text(sample.device_before);
  const std::string after = dump_text(sample.device_after);
  TRY_ASSIGN(
      Statement insert,
      database.prepare("INSERT INTO samples (device_class, environment, problem, variant, median_us, samples_us, "
                       "tainted, taint, status, error, gates, device_before, device_after, launches_per_replay, "
                       "copies, launch_floor_us, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.integer(device_class).integer(environment).integer(problem_id).integer(variant).real(sample.median_us);
  insert.text(times).integer(sample.tainted ? 1 : 0).text(sample.taint).text(sample.status).text(sample.error);
  insert.text(gates).text(before).text(after).integer(sample.launches_per_replay).integer(sample.copies);
  return insert.real(sample.launch_floor_us).text(at).run();
}

Status Store::add_sample(const Context& context, const Problem& problem, const std::string& problem_key,
                         const Sample& sample) {
  TRY(impl_->writable());
  TRY_ASSIGN(Transaction transaction, Transaction::begin(*impl_->main));
  TRY(insert_sample(*impl_->main, context, problem, problem_key, sample));
  return transaction.commit();
}

Result<std::vector<Sample>> Store::samples(const Context& context, const std::string& problem_key) {
  const std::string device_class = context.device_class.key();
  const std::string environment = context.environment.key();
  std::vector<Sample> all;
  std::vector<Database*> layers = impl_->layers();
  std::reverse(layers.begin(), layers.end());  // the base's are older
  for (Database* layer : layers) {
    TRY_ASSIGN(Statement select, layer->prepare(kSelect));
    select.text(problem_key).text(device_class).text(environment);
    while (true) {
      TRY_ASSIGN(const bool there, select.row());
      if (!there) break;
      all.push_back(read_sample(select));
    }
  }
  return all;
}

}  // namespace tunerd::cache
