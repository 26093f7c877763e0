#include "store_impl.h"

namespace tunerd::cache {
namespace {

Result<std::int64_t> one_id(Statement statement) {
  TRY_ASSIGN(const bool there, statement.row());
  if (!there) return fail(Code::internal, "A row that was just written cannot be read back.");
  return statement.integer_at(0);
}

}  // namespace

Result<std::int64_t> intern_device_class(Database& database, const DeviceClass& device_class) {
  const std::string key = device_class.key();
  const std::string json = dump_text(to_json(device_class));
  TRY_ASSIGN(Statement insert, database.prepare("INSERT INTO device_classes (key, json) VALUES (?, ?) "
                                                "ON CONFLICT (key) DO NOTHING"));
  TRY(insert.text(key).text(json).run());
  TRY_ASSIGN(Statement select, database.prepare("SELECT id FROM device_classes WHERE key = ?"));
  select.text(key);
  return one_id(std::move(select));
}

Result<std::int64_t> intern_environment(Database& database, const Environment& environment) {
  const std::string key = environment.key();
  const std::string json = dump_text(to_json(environment));
  TRY_ASSIGN(Statement insert, database.prepare("INSERT INTO environments (key, json) VALUES (?, ?) "
                                                "ON CONFLICT (key) DO NOTHING"));
  TRY(insert.text(key).text(json).run());
  TRY_ASSIGN(Statement select, database.prepare("SELECT id FROM environments WHERE key = ?"));
  select.text(key);
  return one_id(std::move(select));
}

Result<std::int64_t> intern_problem(Database& database, const Problem& problem, const std::string& key) {
  const std::string family = problem.family();
  const std::string json = dump_text(problem.to_json());
  TRY_ASSIGN(Statement insert, database.prepare("INSERT INTO problems (key, op, family, json) VALUES (?, ?, ?, ?) "
                                                "ON CONFLICT (key) DO UPDATE SET json = excluded.json "
                                                "WHERE json <> excluded.json"));
  TRY(insert.text(key).text(problem.op).text(family).text(json).run());
  TRY_ASSIGN(Statement select, database.prepare("SELECT id FROM problems WHERE key = ?"));
  select.text(key);
  return one_id(std::move(select));
}

Result<std::int64_t> intern_variant(Database& database, const std::string& text, const std::string& template_digest) {
  TRY_ASSIGN(Statement insert, database.prepare("INSERT INTO variants (text, template_digest) VALUES (?, ?) "
                                                "ON CONFLICT (text, template_digest) DO NOTHING"));
  TRY(insert.text(text).text(template_digest).run());
  TRY_ASSIGN(Statement select, database.prepare("SELECT id FROM variants WHERE text = ? AND template_digest = ?"));
  select.text(text).text(template_digest);
  return one_id(std::move(select));
}

}  // namespace tunerd::cache
