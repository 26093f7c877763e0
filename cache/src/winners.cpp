#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <tuple>

#include "model/digest.h"
#include "store_impl.h"

namespace tunerd::cache {
namespace {

#define TUNERD_WINNER_COLUMNS                                                                               \
  "SELECT p.json, p.key, v.text, v.template_digest, w.kernel_key, w.kernel_digest, w.measured, w.time_us, " \
  "w.t_sol_us, "                                                                                            \
  "w.sol_fraction, w.generation, w.recipe, w.at, w.seal, d.json, e.json, d.key, e.key "                     \
  "FROM winners w JOIN problems p ON p.id = w.problem JOIN variants v ON v.id = w.variant "                 \
  "JOIN device_classes d ON d.id = w.device_class JOIN environments e ON e.id = w.environment "

constexpr const char* kSelectOne = TUNERD_WINNER_COLUMNS "WHERE p.key = ? AND d.key = ? AND e.key = ?";
constexpr const char* kSelectContext =
    TUNERD_WINNER_COLUMNS "WHERE d.key = ?1 AND e.key = ?2 AND (?3 = '' OR p.op = ?3) ORDER BY p.key";
constexpr const char* kSelectAll = TUNERD_WINNER_COLUMNS "WHERE (?1 = '' OR p.op = ?1) ORDER BY d.key, e.key, p.key";
#undef TUNERD_WINNER_COLUMNS

std::string exact(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

// Length-prefixed, so that no two different rows run together into the same bytes. Launch-time reals are left out: the
// problem's row is shared, and they may change in it.
std::string seal_of(const Winner& winner, const std::string& recipe) {
  Problem problem = winner.problem;
  problem.reals.clear();
  const std::array<std::string, 15> parts = {dump_text(problem.to_json()),
                                             winner.problem_key,
                                             winner.variant,
                                             winner.template_digest,
                                             winner.kernel_key,
                                             winner.kernel_digest,
                                             winner.measured ? "1" : "0",
                                             exact(winner.time_us),
                                             exact(winner.t_sol_us),
                                             exact(winner.sol_fraction),
                                             std::to_string(winner.generation),
                                             recipe,
                                             winner.at,
                                             winner.device_class_key,
                                             winner.environment_key};
  std::string all;
  for (const std::string& part : parts) all += std::to_string(part.size()) + ":" + part;
  return sha256_hex(all);
}

Result<WinnerRow> read_row(const Statement& row) {
  WinnerRow out;
  Winner& winner = out.winner;
  TRY_ASSIGN(winner.problem, problem_from_row(row.text_at(0)));
  winner.problem_key = row.text_at(1);
  winner.variant = row.text_at(2);
  winner.template_digest = row.text_at(3);
  winner.kernel_key = row.text_at(4);
  winner.kernel_digest = row.text_at(5);
  winner.measured = row.integer_at(6) != 0;
  winner.time_us = row.real_at(7);
  winner.t_sol_us = row.real_at(8);
  winner.sol_fraction = row.real_at(9);
  winner.generation = std::uint64_t(row.integer_at(10));
  winner.at = row.text_at(12);
  winner.device_class_key = row.text_at(16);
  winner.environment_key = row.text_at(17);
  const std::string recipe = row.text_at(11);
  if (seal_of(winner, recipe) != row.view_at(13)) {
    return fail(Code::corrupt, "The stored winner of " + winner.problem_key + " fails its digest; it is not used.");
  }
  TRY_ASSIGN(winner.recipe, parse_text(recipe, "recipe"));
  TRY_ASSIGN(const Json device_class, parse_text(row.view_at(14), "device class"));
  TRY_ASSIGN(out.context.device_class, device_class_from_json(device_class));
  TRY_ASSIGN(const Json environment, parse_text(row.view_at(15), "environment"));
  TRY_ASSIGN(out.context.environment, environment_from_json(environment));
  return out;
}

// Rows that fail their digest are left out and warned of: one bad row must not hide the others.
Status collect(Store::Impl& store, Database& layer, Statement& select, std::vector<WinnerRow>& out) {
  while (true) {
    TRY_ASSIGN(const bool there, select.row());
    if (!there) return {};
    auto row = read_row(select);
    if (!row) {
      store.warn(row.error().message);
      continue;
    }
    row->winner.from_base = &layer == store.base.get();
    out.push_back(std::move(*row));
  }
}

std::string identity(const Winner& winner) {
  return winner.device_class_key + "\n" + winner.environment_key + "\n" + winner.problem_key;
}

// `rows` holds the overlay's first, so the first of an identity is the one that counts.
std::vector<WinnerRow> merged(std::vector<WinnerRow> rows) {
  std::set<std::string> seen;
  std::erase_if(rows, [&](const WinnerRow& row) { return !seen.insert(identity(row.winner)).second; });
  std::stable_sort(rows.begin(), rows.end(), [](const WinnerRow& a, const WinnerRow& b) {
    return std::tie(a.winner.device_class_key, a.winner.environment_key, a.winner.problem_key) <
           std::tie(b.winner.device_class_key, b.winner.environment_key, b.winner.problem_key);
  });
  return rows;
}

std::vector<Winner> winners_of(std::vector<WinnerRow> rows) {
  std::vector<Winner> out;
  out.reserve(rows.size());
  for (WinnerRow& row : rows) out.push_back(std::move(row.winner));
  return out;
}

Result<std::optional<Winner>> find(Store::Impl& store, const std::string& device_class, const std::string& environment,
                                   const std::string& problem_key) {
  for (Database* layer : store.layers()) {
    TRY_ASSIGN(Statement select, layer->prepare(kSelectOne));
    select.text(problem_key).text(device_class).text(environment);
    std::vector<WinnerRow> rows;
    TRY(collect(store, *layer, select, rows));
    if (!rows.empty()) return std::move(rows.front().winner);
  }
  return std::nullopt;
}

}  // namespace

Status insert_winner(Store::Impl& store, const Context& context, const Winner& given) {
  Winner winner = given;
  if (winner.problem_key.empty()) return bad_input("problem_key", "", "the key of a problem");
  if (winner.variant.empty()) return bad_input("variant", "", "a variant");
  if (winner.measured && context.device_class.kind != "cuda") {
    return bad_input("measured", "true on device kind " + context.device_class.kind,
                     "false: only a real device measures");
  }
  winner.device_class_key = context.device_class.key();
  winner.environment_key = context.environment.key();
  if (winner.at.empty()) winner.at = utc_now();
  TRY_ASSIGN(const std::optional<Winner> before,
             find(store, winner.device_class_key, winner.environment_key, winner.problem_key));
  if (before) {
    const bool same_kernel = before->variant == winner.variant && before->kernel_digest == winner.kernel_digest;
    winner.generation = std::max(winner.generation, before->generation + (same_kernel ? 0 : 1));
  }
  Database& database = *store.main;
  TRY_ASSIGN(const std::int64_t device_class, intern_device_class(database, context.device_class));
  TRY_ASSIGN(const std::int64_t environment, intern_environment(database, context.environment));
  TRY_ASSIGN(const std::int64_t problem, intern_problem(database, winner.problem, winner.problem_key));
  TRY_ASSIGN(const std::int64_t variant, intern_variant(database, winner.variant, winner.template_digest));
  const std::string recipe = dump_text(winner.recipe);
  const std::string seal = seal_of(winner, recipe);
  TRY_ASSIGN(
      Statement insert,
      database.prepare("INSERT OR REPLACE INTO winners (problem, device_class, environment, variant, kernel_key, "
                       "kernel_digest, measured, time_us, t_sol_us, sol_fraction, generation, recipe, at, seal) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.integer(problem).integer(device_class).integer(environment).integer(variant).text(winner.kernel_key);
  insert.text(winner.kernel_digest).integer(winner.measured ? 1 : 0).real(winner.time_us).real(winner.t_sol_us);
  insert.real(winner.sol_fraction).integer(std::int64_t(winner.generation)).text(recipe).text(winner.at);
  return insert.text(seal).run();
}

Status Store::put_winner(const Context& context, const Winner& winner) {
  TRY(impl_->writable());
  TRY_ASSIGN(Transaction transaction, Transaction::begin(*impl_->main));
  TRY(insert_winner(*impl_, context, winner));
  return transaction.commit();
}

Result<std::optional<Winner>> Store::winner(const Context& context, const std::string& problem_key) {
  return find(*impl_, context.device_class.key(), context.environment.key(), problem_key);
}

Result<std::vector<Winner>> Store::winners(const Context& context, const std::string& op) {
  const std::string device_class = context.device_class.key();
  const std::string environment = context.environment.key();
  std::vector<WinnerRow> rows;
  for (Database* layer : impl_->layers()) {
    TRY_ASSIGN(Statement select, layer->prepare(kSelectContext));
    select.text(device_class).text(environment).text(op);
    TRY(collect(*impl_, *layer, select, rows));
  }
  return winners_of(merged(std::move(rows)));
}

Result<std::vector<WinnerRow>> Store::Impl::winner_rows(const std::string& op) {
  std::vector<WinnerRow> rows;
  for (Database* layer : layers()) {
    TRY_ASSIGN(Statement select, layer->prepare(kSelectAll));
    select.text(op);
    TRY(collect(*this, *layer, select, rows));
  }
  return merged(std::move(rows));
}

Result<std::vector<Winner>> Store::all_winners() {
  TRY_ASSIGN(std::vector<WinnerRow> rows, impl_->winner_rows({}));
  return winners_of(std::move(rows));
}

}  // namespace tunerd::cache
