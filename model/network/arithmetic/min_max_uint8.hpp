#pragma once

#include "model/core/values.hpp"

namespace lockstep {

// Bagua's codec MinMaxUInt8 (bagua_kernels.cu of bagua 0.9.2): 255 levels over the range of a
// chunk. Per chunk 32 bytes that begin with its smallest and its largest number, then a byte for
// each number, padded to 32:
//   scale = 255 / (largest - smallest + 1e-7), upper = rint(largest * scale), lower = upper - 255,
//   byte = min(rint(x * scale), upper) - lower, decoded = (byte + lower) / scale.
// Computed in fp32 (of fp64, which Bagua does not compress, in fp64), halves rounded to even. A
// byte below 0 is 0, as on a GPU: it comes of an `upper` that was rounded up. What Bagua does with
// numbers that are not finite, and with bytes above 255 in chunks of one number, is not known: here
// NaN comes of the former, and the latter are 255.

/// Of so many numbers in equal chunks.
int64_t compressed_bytes(int64_t elements, int64_t chunks);
/// `chunks` divides their number.
Values compress_min_max(const Values& numbers, int64_t chunks);
/// As many numbers as were compressed.
Values decompress_min_max(const Values& compressed, DType dtype, int64_t elements, int64_t chunks);
/// The largest |x - decoded|; 0 of none, NaN where one is.
double compression_error(const Values& numbers, const Values& decoded);

}  // namespace lockstep
