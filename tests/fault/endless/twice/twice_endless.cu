// Two to the fortieth instantiations: no compiler ends this.
template <int Depth, long long Path>
struct Tree {
  static constexpr long long value = Tree<Depth - 1, 2 * Path>::value + Tree<Depth - 1, 2 * Path + 1>::value;
};
template <long long Path>
struct Tree<0, Path> {
  static constexpr long long value = Path;
};

extern "C" __global__ void twice_endless(const float* x, float* y, long long rows, long long cols, long long ld_x, long long ld_y) {
  y[0] = x[0] * (float)Tree<40, 1>::value;
}
