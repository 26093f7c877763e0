#include "coded_space.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace tunerd {
namespace {

std::string effect_name(const std::string& source, const std::string& name, std::int64_t value) {
  return source + "/" + name + "=" + std::to_string(value);
}

}  // namespace

CodedSpace::CodedSpace(const std::vector<Candidate>& space, const std::vector<std::size_t>& order) {
  std::map<std::string, std::map<std::string, std::set<std::int64_t>>> values;  // template -> parameter -> values
  std::map<std::string, std::size_t> families;
  for (const std::size_t index : order) {
    const Variant& variant = space[index].variant;
    families.try_emplace(variant.template_name, families.size());
    for (const auto& [name, value] : variant.params) values[variant.template_name][name].insert(value);
  }
  families_ = families.size();
  const auto effect = [this](const std::string& name) {
    return effect_ids_.try_emplace(name, effect_ids_.size()).first->second;
  };
  for (const std::size_t index : order) {
    const Candidate& candidate = space[index];
    const Variant& variant = candidate.variant;
    Point point;
    point.candidate = index;
    point.family = families.at(variant.template_name);
    point.log_predicted = std::log(std::clamp(candidate.predicted_us, 1e-3, 1e12));
    point.effects.push_back(effect(variant.template_name));
    for (const auto& [name, value] : variant.params) {
      const auto& levels = values[variant.template_name][name];
      point.level.push_back(static_cast<int>(std::distance(levels.begin(), levels.find(value))));
      point.effects.push_back(effect(effect_name(variant.template_name, name, value)));
    }
    point_of_[index] = points_.size();
    points_.push_back(std::move(point));
  }
}

std::vector<std::size_t> CodedSpace::effects_of(const Variant& variant) const {
  const auto source = effect_ids_.find(variant.template_name);
  if (source == effect_ids_.end()) return {};
  std::vector<std::size_t> out{source->second};
  for (const auto& [name, value] : variant.params) {
    const auto found = effect_ids_.find(effect_name(variant.template_name, name, value));
    if (found != effect_ids_.end()) out.push_back(found->second);
  }
  return out;
}

std::size_t CodedSpace::point_of(std::size_t candidate) const {
  const auto found = point_of_.find(candidate);
  return found == point_of_.end() ? points_.size() : found->second;
}

}  // namespace tunerd
