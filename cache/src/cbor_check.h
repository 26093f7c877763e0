// A look at CBOR before it is decoded: well-formed, one item, no deeper than a limit. Without recursion, so that a
// hostile bundle cannot exhaust the stack of a decoder that recurses.
#pragma once

#include <string_view>

#include "model/result.h"

namespace tunerd::cache {

Status check_cbor(std::string_view bytes, int max_depth);

}  // namespace tunerd::cache
