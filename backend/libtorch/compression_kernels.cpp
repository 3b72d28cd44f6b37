#include "backend/libtorch/compression_kernels.hpp"

#include <ATen/ATen.h>

#include "backend/libtorch/tensor_values.hpp"
#include "model/core/ensure.hpp"

namespace lockstep::backend {

namespace {

constexpr int64_t chunk_header_bytes = 32;
constexpr int64_t chunk_alignment = 32;

at::ScalarType computing_type(DType dtype) {
  return dtype == DType::fp64 ? at::kDouble : at::kFloat;
}

/// The levels of chunks, a row each.
struct Levels {
  at::Tensor scale;
  at::Tensor upper;
  at::Tensor lower;
};

Levels levels_of(const at::Tensor& smallest, const at::Tensor& largest) {
  const at::Tensor range = largest.sub(smallest).add(static_cast<double>(1e-7F));
  Levels levels;
  levels.scale = at::full_like(range, 255).div(range);
  levels.upper = largest.mul(levels.scale).round();
  levels.lower = levels.upper.sub(255);
  return levels;
}

at::Tensor decoded(const at::Tensor& bytes, const Levels& levels) {
  return bytes.to(levels.lower.scalar_type()).add(levels.lower).div(levels.scale);
}

// The larger of it and what was there.
void note_error(const Slice& to, const at::Tensor& error, TensorOperands& operands) {
  const at::Tensor known = operands.load(to);
  if (known.defined()) {
    operands.store(to, at::maximum(known.to(at::kFloat), error.reshape({1})));
  }
}

void compress(const OpLists& lists, TensorOperands& operands) {
  const at::Tensor numbers = operands.load(lists.reads[0]);
  if (!numbers.defined() || numbers.numel() == 0) {
    return;
  }
  const auto chunks = static_cast<int64_t>(lists.scalars[0]);
  const at::Tensor rows = numbers.reshape({chunks, -1});
  const at::Tensor smallest = rows.amin(1, true);
  const at::Tensor largest = rows.amax(1, true);
  const at::ScalarType type = computing_type(lists.reads[0].dtype);
  const Levels levels = levels_of(smallest.to(type), largest.to(type));
  const at::Tensor level =
      at::fmin(rows.to(type).mul(levels.scale).round(), levels.upper).sub(levels.lower);
  const at::Tensor bytes = level.nan_to_num(0, 255, 0).clamp(0, 255).to(at::kByte);
  const at::Tensor range = at::cat({smallest, largest}, 1).contiguous().view(at::kByte);
  const int64_t padding = (chunk_alignment - rows.size(1) % chunk_alignment) % chunk_alignment;
  operands.store(lists.writes[0],
                 at::cat({at::constant_pad_nd(range, {0, chunk_header_bytes - range.size(1)}),
                          at::constant_pad_nd(bytes, {0, padding})},
                         1)
                     .flatten());
  if (lists.writes.size() > 1) {
    const at::Tensor again = decoded(bytes, levels).to(numbers.scalar_type()).to(at::kDouble);
    note_error(lists.writes[1], rows.to(at::kDouble).sub(again).abs().max().to(at::kFloat),
               operands);
  }
}

void decompress(const OpLists& lists, TensorOperands& operands) {
  const at::Tensor compressed = operands.load(lists.reads[0]);
  const Slice& to = lists.writes[0];
  if (!compressed.defined() || to.elements == 0) {
    return;
  }
  const auto chunks = static_cast<int64_t>(lists.scalars[0]);
  const at::Tensor rows = compressed.reshape({chunks, -1});
  const at::Tensor range = rows.narrow(1, 0, 2 * size_of(to.dtype))
                               .contiguous()
                               .view(scalar_type_of(to.dtype))
                               .to(computing_type(to.dtype));
  const at::Tensor bytes = rows.narrow(1, chunk_header_bytes, to.elements / chunks);
  operands.store(to,
                 decoded(bytes, levels_of(range.narrow(1, 0, 1), range.narrow(1, 1, 1))).flatten());
}

}  // namespace

void execute_compression(const Op& op, TensorOperands& operands) {
  if (op.kernel == Kernel::compress) {
    compress(op.list(), operands);
  } else {
    decompress(op.list(), operands);
  }
}

}  // namespace lockstep::backend
