// How results and errors are printed: results on stdout, everything else on stderr.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_reader.h"

namespace tunerd::ctl {

void print_json(const Json& json);  // stdout, indented, never throws on bad UTF-8

// "tunerctl: …" or, with `json`, {"error": {…}}, on stderr. Returns the exit code of that kind of error.
int report(const Error& error, bool json);
int exit_code_of(const Error& error);
Json error_json(const Error& error);

std::string format_us(double time_us);         // "12.35", "0.174"; "-" for zero or less
std::string format_fraction(double fraction);  // "0.87"; "-" for zero or less
std::string format_seconds(double seconds);    // "45s", "3m12s", "2h05m"
std::string format_bytes(std::int64_t bytes);  // "138.9 MB"

// Tolerant look-ups in a reply: absent, null or of another type gives the fallback.
std::string text_of(const Json& object, const char* key, const std::string& fallback = {});
double number_of(const Json& object, const char* key, double fallback = 0);

// Columns as wide as their widest cell, counted in code points; the last one ragged. Numbers may be set right.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::vector<bool> right = {});
  void add(std::vector<std::string> row);
  void print(std::ostream& out) const;
  bool empty() const { return rows_.size() == 1; }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

// A JSON value as indented "key: value" lines, for answers without a fixed form.
void print_plain(std::ostream& out, const Json& json, int indent = 0);

}  // namespace tunerd::ctl
