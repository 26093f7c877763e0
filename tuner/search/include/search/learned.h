// The strategy "learned": what was measured corrects the analytic model, and the most promising variant is next.
//
// The model's error of a variant, log(time / predicted), is a Gaussian process over templates and parameter values (one
// more of each is alike the nearer it stands). It starts from what other problems of the op have taught: one effect of
// each template, one of each of its parameters' values. Next is the variant with the largest expected improvement on
// the best time, given also what is still being compiled; one in sixteen is drawn by the seed.
#pragma once

#include "search/strategy.h"

namespace tunerd {

// Proposals start with the winners among `input.priors` and the corrected model's first choices, then the best of each
// template; without priors, also variants that cover the parameters' values. `input.space` must outlive the strategy.
// Memory is at most 64 MiB: of spaces over 40,000 variants less than 400 measurements are learned from.
std::unique_ptr<Strategy> make_learned(const StrategyInput& input);

}  // namespace tunerd
