// What a caller asks for, as a key that is looked up without an allocation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/json_reader.h"
#include "tuner.h"

namespace tunerd::client {

// Points into the caller's arrays.
struct ProblemView {
  std::string_view op;
  const tuner_dim* dims = nullptr;
  std::size_t dim_count = 0;
  const tuner_attribute* attributes = nullptr;
  std::size_t attribute_count = 0;
};

struct ProblemKey {
  std::string op;
  std::vector<std::pair<std::string, std::int64_t>> dims;
  std::vector<std::pair<std::string, std::string>> attributes;

  Json fields() const;  // as a get request carries them
};

// Null names and pointers, and names given twice, are errors that name them.
Status check(const ProblemView& problem);
ProblemKey to_key(const ProblemView& problem);

// Equal whatever the order of dims and attributes.
struct ProblemHash {
  using is_transparent = void;
  std::size_t operator()(const ProblemView& problem) const;
  std::size_t operator()(const ProblemKey& problem) const;
};
struct ProblemEqual {
  using is_transparent = void;
  bool operator()(const ProblemKey& a, const ProblemKey& b) const;
  bool operator()(const ProblemView& a, const ProblemKey& b) const;
  bool operator()(const ProblemKey& a, const ProblemView& b) const { return (*this)(b, a); }
};

}  // namespace tunerd::client
