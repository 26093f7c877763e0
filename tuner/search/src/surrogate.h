// What is known of every point of a space after some were measured: a Gaussian process over log(time / predicted).
//
// Two points of a template are alike as far as their values stand close, one by one (a sum of effects) and all together
// (what effects leave over); those of different templates only in how far the whole model is off, and how steeply.
// The Cholesky factor grows by a row when a point is chosen, before its time is known: the variance around it falls at
// once, so that what is chosen while it compiles lies elsewhere. A row costs rows x points, and so does a new time.
#pragma once

#include <cstddef>
#include <vector>

#include "coded_space.h"

namespace tunerd {

class Surrogate {
 public:
  // `points` must outlive it. `expected`: of each, before anything is measured.
  Surrogate(const std::vector<Point>& points, std::vector<double> expected);
  // The point will be measured. Beyond what memory is set aside for, nothing is learned of it any more.
  void choose(std::size_t point);
  // It was; of a point that was not chosen, nothing happens.
  void measured(std::size_t point, double log_ratio);
  // Brings mean() up to the last measurement.
  void refit();

  double mean(std::size_t point) const { return mean_[point]; }
  double variance(std::size_t point) const { return variance_[point]; }

 private:
  struct Row {
    std::size_t point = 0;
    std::vector<double> factor;      // of the Cholesky factor, up to its diagonal
    std::vector<float> projection;   // the factor's inverse times the covariance with every point
    double log_ratio = 0, step = 0;  // step: the surprise in it, in standard deviations
    bool known = false;
  };

  double covariance(const Point& a, const Point& b) const;

  const std::vector<Point>& points_;
  double least_log_predicted_ = 0;
  std::vector<double> expected_, mean_, variance_;
  std::vector<Row> rows_;
  std::vector<std::size_t> row_of_;
};

}  // namespace tunerd
