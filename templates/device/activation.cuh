// Activations: fp32 for templates, fp64 for references. gelu is the exact erf form, torch's default.
#pragma once

namespace tunerd::device {

inline __device__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }
inline __device__ double gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440)); }

inline __device__ float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }
inline __device__ double silu(double x) { return x / (1.0 + exp(-x)); }

}  // namespace tunerd::device
