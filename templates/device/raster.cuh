// The order in which blocks take tiles: columns of `GROUP` tile rows, so that blocks in flight share rows of x and of w in L2.
#pragma once

namespace tunerd::device {

struct Tile {
  long long row, col;
};

template <int GROUP>
inline __device__ Tile raster(long long index, long long tiles_m, long long tiles_n) {
  const long long width = GROUP * tiles_n, group = index / width, inside = index - group * width;
  const long long first = group * GROUP, height = tiles_m - first < GROUP ? tiles_m - first : GROUP;
  const long long col = inside / height;
  return {first + (inside - col * height), col};
}

}  // namespace tunerd::device
