#pragma once

#include <cstdint>

#include <vector>

#include "model/core/values.hpp"
#include "model/network/layer.hpp"

namespace lockstep {

// Layers that only place elements. Sums of gradients run in fp32 (fp64 where an operand is).

/// Images enlarged to the nearest element: torch.nn.Upsample with whole factors.
struct UpsampleShape {
  int64_t planes = 1;  ///< batch times channels
  int64_t height = 1;
  int64_t width = 1;
  int64_t vertical = 1;  ///< factors
  int64_t horizontal = 1;
};
void upsample_forward(const Values& input, const UpsampleShape& shape, Values& output);
void upsample_backward(const Values& output_gradient, const UpsampleShape& shape,
                       Values& input_gradient);

/// [batch, channels, pixels] becomes [batch, pixels, channels], behind a class token [channels]
/// where there is one.
struct PatchSequenceShape {
  int64_t batch = 1;
  int64_t channels = 1;
  int64_t pixels = 1;
};
/// `token` may be null.
void patch_sequence_forward(const Values& input, const Values* token,
                            const PatchSequenceShape& shape, Values& output);
/// Either may be null: not wanted. The token's is added to.
void patch_sequence_backward(const Values& output_gradient, bool has_token,
                             const PatchSequenceShape& shape, Values* input_gradient,
                             Values* token_gradient);

/// `from` is [rows, columns, rest], `to` becomes [columns, rows, rest].
void swap_outer(const Values& from, int64_t rows, int64_t columns, Values& to);

/// Element (i0, i1, ..) of `to` is the element of `from` whose index in dimension order[d] is i_d;
/// both have a batch before.
void permute_forward(const Values& from, const Shape& shape, const std::vector<size_t>& order,
                     Values& to);
/// The reverse; `shape` and `order` as of the forward.
void permute_backward(const Values& output_gradient, const Shape& shape,
                      const std::vector<size_t>& order, Values& input_gradient);

/// [batch, height, width, channels] becomes [batch, height / 2, width / 2, 4 channels], a margin of
/// zeros where a side is odd: of each square the pixels above, then those beside, left before
/// right.
void merge_patches(const Values& from, const Shape& image, Values& to);
/// The reverse.
void part_patches(const Values& output_gradient, const Shape& image, Values& input_gradient);

/// Of `rows` equal parts of `from`, `count` numbers from `begin` of each, one after the other.
void take_columns(const Values& from, int64_t rows, int64_t begin, int64_t count, Values& taken);
/// The reverse: each part of `columns` is put at `begin` of a part of `to`.
void put_columns(const Values& columns, int64_t rows, int64_t begin, Values& to);

}  // namespace lockstep
