// The sizes that break kernels: just below, just above and past a tile, one, and rows that do not touch.
#include <algorithm>
#include <optional>
#include <set>

#include "model/manifest.h"
#include "model/variant_resolver.h"

namespace tunerd {
namespace {

constexpr std::size_t kMaxProblems = 6;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 22;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What is known of one dimension for this variant.
struct Axis {
  std::string name;
  std::int64_t tile = 0;  // 0: none
  std::int64_t granularity = 1;
  std::int64_t least = 1, most = 1;  // the op's range, `least` rounded up to the granularity
  std::int64_t own = 1;              // of the problem being tuned
};

enum class Size { below, above, past_two, one, own };

// Away from the tile's border where the granularity allows it, since a size on the border is no edge.
std::optional<std::int64_t> size_of(const Axis& axis, Size size) {
  std::int64_t value = 1;
  if (size == Size::own) {
    value = axis.own;
  } else if (size == Size::one) {
    value = axis.least;
  } else if (axis.tile > 0) {
    const std::int64_t below = (axis.tile - 1) / axis.granularity * axis.granularity;
    if (size == Size::below) value = std::max(below, axis.least);
    if (size == Size::above) value = round_up(axis.tile + 1, axis.granularity);
    if (size == Size::past_two) value = round_up(2 * axis.tile + 1, axis.granularity);
  } else {
    value = round_up(size == Size::below ? 7 : size == Size::above ? 13 : 33, axis.granularity);
  }
  value = std::max(value, axis.least);
  if (value > axis.most) return std::nullopt;
  return value;
}

class EdgeCollector {
 public:
  EdgeCollector(const OpSpec& op, const KernelSpec& kernel, const Problem& problem)
      : op_(op), kernel_(kernel), problem_(problem) {
    seen_.insert(problem.key(op));
  }

  bool valid(const Problem& candidate) const {
    const Result<Symbols> symbols = problem_symbols(op_, candidate);
    if (!symbols || !concrete_launch(kernel_.recipe, *symbols)) return false;
    return std::all_of(op_.tensors.begin(), op_.tensors.end(), [&](const TensorSpec& tensor) {
      if (!is_present(tensor, candidate)) return true;
      const Result<std::int64_t> elements = tensor_span_elements(tensor, *symbols);
      return elements && *elements <= kMaxElements;
    });
  }

  void add(const std::vector<Axis>& axes, const std::vector<Size>& sizes, std::size_t most) {
    if (found_.size() >= most) return;
    Problem candidate = problem_;
    candidate.strides.clear();
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::optional<std::int64_t> value = size_of(axes[i], sizes[i]);
      if (!value) return;
      candidate.dims[axes[i].name] = *value;
    }
    add(std::move(candidate));
  }

  // The largest found, with every row padded; the first padding that is valid.
  void add_padded() {
    const auto largest = std::max_element(found_.begin(), found_.end(),
                                          [](const Problem& a, const Problem& b) { return size(a) < size(b); });
    if (largest == found_.end()) return;
    const Problem base = *largest;
    for (const std::int64_t multiple : {1, 8, 16, 64}) {
      const std::optional<Problem> candidate = padded(base, multiple);
      if (candidate && valid(*candidate)) {
        add(*candidate);
        return;
      }
    }
  }

  std::vector<Problem> take() { return std::move(found_); }

 private:
  static double size(const Problem& problem) {
    double product = 1;
    for (const auto& dim : problem.dims) product *= static_cast<double>(dim.second);
    return product;
  }

  std::optional<Problem> padded(Problem base, std::int64_t multiple) const {
    constexpr std::int64_t kPad = 8;
    const Result<Symbols> symbols = problem_symbols(op_, base);
    if (!symbols) return std::nullopt;
    for (const TensorSpec& tensor : op_.tensors) {
      if (tensor.shape.size() != 2 || !is_present(tensor, base)) continue;
      const Result<std::int64_t> columns = tensor.shape[1].eval(*symbols);
      if (!columns) return std::nullopt;
      base.strides[tensor.stride_symbol()] = round_up(*columns + kPad, multiple);
    }
    if (base.strides.empty()) return std::nullopt;
    return base;
  }

  void add(Problem candidate) {
    if (!valid(candidate) || !seen_.insert(candidate.key(op_)).second) return;
    found_.push_back(std::move(candidate));
  }

  const OpSpec& op_;
  const KernelSpec& kernel_;
  const Problem& problem_;
  std::set<std::string> seen_;
  std::vector<Problem> found_;
};

Result<std::vector<Axis>> axes_of(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel,
                                  const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(const Symbols symbols, variant_symbols(manifest, op, kernel.variant, problem, device));
  std::vector<Axis> axes;
  for (const DimSpec& dim : op.dims) {
    Axis axis;
    axis.name = dim.name;
    const auto tile = manifest.tile.find(dim.name);
    if (tile != manifest.tile.end()) {
      TRY_ASSIGN(axis.tile, tile->second.eval(symbols));
    }
    const auto granularity = manifest.granularity.find(dim.name);
    if (granularity != manifest.granularity.end()) {
      TRY_ASSIGN(axis.granularity, granularity->second.eval(symbols));
    }
    if (axis.granularity < 1 || axis.granularity > kMaxElements) {
      return bad_input("granularity." + dim.name, std::to_string(axis.granularity), "1 to 4194304");
    }
    if (axis.tile < 0) return bad_input("tile." + dim.name, std::to_string(axis.tile), "no negative size");
    axis.tile = std::min(axis.tile, kMaxElements);  // past any size that is tried
    axis.most = dim.max;
    axis.least = dim.min > dim.max - axis.granularity ? dim.min : round_up(dim.min, axis.granularity);
    const auto own = problem.dims.find(dim.name);
    if (own == problem.dims.end()) return bad_input(dim.name, "(missing)", "a size of the problem");
    axis.own = own->second;
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace

Result<std::vector<Problem>> edge_problems(const Manifest& manifest, const OpSpec& op, const KernelSpec& kernel,
                                           const Problem& problem, const DeviceSpec& device) {
  TRY_ASSIGN(const std::vector<Axis> axes, axes_of(manifest, op, kernel, problem, device));
  EdgeCollector collector(op, kernel, problem);
  const std::size_t unpadded = kMaxProblems - 1;
  const auto all = [&](Size size) { return std::vector<Size>(axes.size(), size); };
  for (const Size size : {Size::past_two, Size::below, Size::above, Size::one}) {
    collector.add(axes, all(size), unpadded);
  }
  // A variant that is valid only for sizes like the problem's own (a row held in registers, say) keeps them in some
  // dimensions: first where there is no tile, then one dimension at a time.
  for (const Size tiled : {Size::past_two, Size::below, Size::above}) {
    std::vector<Size> sizes;
    for (const Axis& axis : axes) sizes.push_back(axis.tile > 0 ? tiled : Size::own);
    collector.add(axes, sizes, unpadded);
  }
  for (std::size_t kept = 0; kept < axes.size(); ++kept) {
    std::vector<Size> sizes = all(Size::above);
    sizes[kept] = Size::own;
    collector.add(axes, sizes, unpadded);
  }
  collector.add_padded();
  return collector.take();
}

}  // namespace tunerd
