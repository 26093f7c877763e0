// The space of a problem on a device: every variant of every template that serves it, and why the others do not.
#pragma once

#include <string>
#include <vector>

#include "model/catalog.h"
#include "model/device.h"

namespace tunerd {

struct Candidate {
  const Template* source = nullptr;
  Variant variant;
  bool valid = false;
  std::string reason;       // why not, when not valid
  double predicted_us = 0;  // by rank_space
};

// All parameter combinations, invalid ones with the first reason (architecture, dtype, attribute, constraint, validity
// at this size). Templates that cannot serve the problem at all appear once, as a candidate with empty params. At most
// `limit` combinations a template are looked at; more is an error naming the template.
Result<std::vector<Candidate>> enumerate_space(const OpEntry& entry, const Problem& problem, const DeviceSpec& device,
                                               std::int64_t limit = 1'000'000);

// Fills predicted_us of the valid ones from the analytic model and returns their indices, best first. Ties break by
// variant text.
Result<std::vector<std::size_t>> rank_space(std::vector<Candidate>& space, const OpEntry& entry, const Problem& problem,
                                            const DeviceSpec& device);

// The template whose manifest says fallback, as a valid variant; an error when the op has none or it does not fit.
Result<Candidate> fallback_candidate(const OpEntry& entry, const Problem& problem, const DeviceSpec& device);

}  // namespace tunerd
