#include "search/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tunerd {
namespace {

double distance(const Problem& wanted, const Problem& tuned) {
  double sum = 0;
  for (const auto& [name, size] : wanted.dims) {
    const auto other = tuned.dims.find(name);
    if (other == tuned.dims.end() || size < 1 || other->second < 1) return std::numeric_limits<double>::infinity();
    sum += std::abs(std::log2(static_cast<double>(size) / static_cast<double>(other->second)));
  }
  return sum;
}

}  // namespace

std::vector<std::size_t> by_distance(const Problem& wanted, const std::vector<Problem>& tuned) {
  std::vector<double> distances;
  distances.reserve(tuned.size());
  for (const Problem& problem : tuned) distances.push_back(distance(wanted, problem));
  std::vector<std::size_t> order(tuned.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distances[a] < distances[b]; });
  return order;
}

}  // namespace tunerd
