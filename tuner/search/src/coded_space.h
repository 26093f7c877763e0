// A space in numbers: each candidate as its template, where its values stand among those of the template, and which
// effects (of a template, of one value of one parameter) it has.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/space.h"

namespace tunerd {

struct Point {
  std::size_t candidate = 0;  // index into the space
  std::size_t family = 0;     // its template
  std::vector<int> level;     // of each parameter: 0 for the least value that occurs
  std::vector<std::size_t> effects;
  double log_predicted = 0;
};

class CodedSpace {
 public:
  CodedSpace() = default;
  // The candidates of `order`, in that order.
  CodedSpace(const std::vector<Candidate>& space, const std::vector<std::size_t>& order);

  const std::vector<Point>& points() const { return points_; }
  std::size_t families() const { return families_; }
  std::size_t effects() const { return effect_ids_.size(); }
  // Those of a variant that occur here; empty when its template does not.
  std::vector<std::size_t> effects_of(const Variant& variant) const;
  // Index into points(); points().size() when the candidate is not among them.
  std::size_t point_of(std::size_t candidate) const;

 private:
  std::vector<Point> points_;
  std::size_t families_ = 0;
  std::map<std::string, std::size_t> effect_ids_;
  std::unordered_map<std::size_t, std::size_t> point_of_;
};

}  // namespace tunerd
