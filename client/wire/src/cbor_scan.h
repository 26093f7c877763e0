// A bounded walk over a CBOR body before it is decoded: the decoder recurses, this does not.
#pragma once

#include <string_view>

#include "model/result.h"

namespace tunerd::wire {

// Ok when `body` is one map (text keys) of at most kMaxDepth nested containers that ends with the last byte. Refuses
// what the messages never use: tags, undefined, other simple values, reserved lengths, negative integers below -2^63,
// text that is not UTF-8, nested string chunks. Errors (Code::corrupt) give the byte offset. No recursion, no
// allocation by a length.
Status scan_cbor(std::string_view body);

}  // namespace tunerd::wire
