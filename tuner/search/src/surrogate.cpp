#include "surrogate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tunerd {
namespace {

// Standard deviations, in log time. Results change little when any of them is halved or doubled.
constexpr double kShared = 0.5;     // the model's error common to all
constexpr double kSteepness = 0.3;  // for each e-fold that the prediction is above the best
constexpr double kTemplate = 0.6;   // common to a template
constexpr double kParameter = 0.3;  // of each parameter by itself
constexpr double kTogether = 0.2;   // what the parameters do together
constexpr double kReading = 0.02;   // of a measurement
constexpr double kLevels = 3;       // values apart until the likeness has fallen to 1/e
constexpr double kSteepestLog = 2;  // further above the best it grows no more
constexpr std::size_t kMostRows = 400;
constexpr std::size_t kMostCells = std::size_t{16} << 20;  // rows x points: 64 MiB
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kApart = 64;

double likeness(int apart) {
  static const std::array<double, kApart> table = [] {
    std::array<double, kApart> out{};
    for (std::size_t i = 0; i < kApart; ++i) out[i] = std::exp(-static_cast<double>(i) / kLevels);
    return out;
  }();
  return table[std::min(static_cast<std::size_t>(apart), kApart - 1)];
}

}  // namespace

Surrogate::Surrogate(const std::vector<Point>& points, std::vector<double> expected)
    : points_(points), expected_(std::move(expected)), mean_(expected_), row_of_(points.size(), kNone) {
  for (std::size_t p = 0; p < points.size(); ++p)
    if (p == 0 || points[p].log_predicted < least_log_predicted_) least_log_predicted_ = points[p].log_predicted;
  variance_.reserve(points.size());
  for (const Point& point : points) variance_.push_back(covariance(point, point));
}

double Surrogate::covariance(const Point& a, const Point& b) const {
  const auto above = [this](const Point& point) {
    return std::min(point.log_predicted - least_log_predicted_, kSteepestLog);
  };
  const double common = kShared * kShared + kSteepness * kSteepness * above(a) * above(b);
  if (a.family != b.family) return common;
  double each = 0;
  int apart = 0;
  for (std::size_t i = 0; i < a.level.size(); ++i) {
    const int steps = std::abs(a.level[i] - b.level[i]);
    each += likeness(steps);
    apart += steps;
  }
  return common + kTemplate * kTemplate + kParameter * kParameter * each + kTogether * kTogether * likeness(apart);
}

void Surrogate::choose(std::size_t point) {
  if (row_of_[point] != kNone || rows_.size() >= kMostRows || (rows_.size() + 1) * points_.size() > kMostCells) return;
  Row row;
  row.point = point;
  row.factor.reserve(rows_.size() + 1);
  for (const Row& earlier : rows_) row.factor.push_back(earlier.projection[point]);
  const double diagonal = std::sqrt(variance_[point] + kReading * kReading);
  row.projection.resize(points_.size());
  for (std::size_t p = 0; p < points_.size(); ++p)
    row.projection[p] = static_cast<float>(covariance(points_[point], points_[p]));
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const auto weight = static_cast<float>(row.factor[r]);
    const float* earlier = rows_[r].projection.data();
    for (std::size_t p = 0; p < points_.size(); ++p) row.projection[p] -= weight * earlier[p];
  }
  constexpr double kLeast = 1e-8;  // rounding must not make it negative
  const auto scale = static_cast<float>(1 / diagonal);
  for (std::size_t p = 0; p < points_.size(); ++p) {
    row.projection[p] *= scale;
    const double projection = row.projection[p];
    variance_[p] = std::max(variance_[p] - projection * projection, kLeast);
  }
  row.factor.push_back(diagonal);
  row_of_[point] = rows_.size();
  rows_.push_back(std::move(row));
}

void Surrogate::measured(std::size_t point, double log_ratio) {
  if (row_of_[point] == kNone) return;
  rows_[row_of_[point]].log_ratio = log_ratio;
  rows_[row_of_[point]].known = true;
}

void Surrogate::refit() {
  mean_ = expected_;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    row.step = 0;  // a time not known yet is taken for what is expected of it
    if (!row.known) continue;
    double foretold = expected_[row.point];
    for (std::size_t j = 0; j < r; ++j) foretold += row.factor[j] * rows_[j].step;
    row.step = (row.log_ratio - foretold) / row.factor[r];
    for (std::size_t p = 0; p < points_.size(); ++p) mean_[p] += row.step * static_cast<double>(row.projection[p]);
  }
}

}  // namespace tunerd
