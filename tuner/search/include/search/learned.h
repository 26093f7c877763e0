// The strategy "learned": what was measured corrects the analytic model, and the neighbourhood of the best is searched.
//
// The model's error of a variant, log(time / predicted), is taken as a sum: one effect of its template, one of each of
// its parameters' values. The effects are fitted to the measurements so far by a few rounds of backfitting, each shrunk
// towards what other problems of the op have taught (nothing: towards zero). Proposals take turns between variants one
// or two parameters away from the best four, which trusts what was measured there, and the best of the whole space by
// the corrected model, which finds other regions; now and then one at random.
#pragma once

#include "search/strategy.h"

namespace tunerd {

// Proposals start with the winners among `input.priors`, then the corrected model's first choices, then each
// template's. `input.space` must outlive the strategy.
std::unique_ptr<Strategy> make_learned(const StrategyInput& input);

}  // namespace tunerd
