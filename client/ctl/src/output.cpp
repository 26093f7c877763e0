#include "ctl/output.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "ctl/command.h"
#include "wire/messages.h"

namespace tunerd::ctl {
namespace {

template <class... Args>
std::string format(const char* pattern, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, args...);
  return text.data();
}

std::size_t width(std::string_view text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & '\xc0') != '\x80'; }));
}

std::string scalar(const Json& json) {
  return json.is_string() ? json.get<std::string>() : json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
}

int exit_code_of(const Error& error) {
  if (error.code == Code::invalid_argument) return kUsage;
  if (error.code == Code::missing && error.field == "socket") return kNoDaemon;
  return kFailed;
}

Json error_json(const Error& error) { return wire::to_json(error); }

int report(const Error& error, bool json) {
  if (json) {
    std::cerr << Json{{"error", error_json(error)}}.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cerr << "tunerctl: " << error.text() << '\n';
  }
  return exit_code_of(error);
}

std::string format_us(double time_us) {
  if (!(time_us > 0)) return "-";
  return format(time_us < 1 ? "%.3f" : time_us < 100 ? "%.2f" : "%.1f", time_us);
}

std::string format_fraction(double fraction) { return fraction > 0 ? format("%.2f", fraction) : "-"; }

std::string format_seconds(double seconds) {
  const auto whole = static_cast<long long>(seconds < 0 ? 0 : seconds + 0.5);
  if (whole < 60) return format("%llds", whole);
  if (whole < 3600) return format("%lldm%02llds", whole / 60, whole % 60);
  return format("%lldh%02lldm", whole / 3600, whole % 3600 / 60);
}

std::string format_bytes(std::int64_t bytes) {
  const std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  double value = double(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? std::to_string(bytes) + " B" : format("%.1f %s", value, units.at(unit));
}

std::string text_of(const Json& object, const char* key, const std::string& fallback) {
  if (!object.is_object()) return fallback;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return fallback;
  return scalar(*found);
}

double number_of(const Json& object, const char* key, double fallback) {
  if (!object.is_object()) return fallback;
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : fallback;
}

Table::Table(std::vector<std::string> header, std::vector<bool> right) : right_(std::move(right)) {
  right_.resize(header.size());
  rows_.push_back(std::move(header));
}

void Table::add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      const bool last = i + 1 == row.size();
      out << (right_[i] ? padding : "") << row[i] << (right_[i] || last ? "" : padding) << (last ? "\n" : "  ");
    }
  }
  out << std::flush;
}

void print_plain(std::ostream& out, const Json& json, int indent) {
  const std::string margin(std::size_t(indent) * 2, ' ');
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      if (value.is_structured() && !value.empty()) {
        out << margin << key << ":\n";
        print_plain(out, value, indent + 1);
      } else {
        out << margin << key << ": " << (value.is_structured() ? "none" : scalar(value)) << '\n';
      }
    }
  } else if (json.is_array()) {
    for (const Json& value : json) {
      if (value.is_structured()) {
        out << margin << "-\n";
        print_plain(out, value, indent + 1);
      } else {
        out << margin << "- " << scalar(value) << '\n';
      }
    }
  } else {
    out << margin << scalar(json) << '\n';
  }
}

}  // namespace tunerd::ctl
