#include "model/strategy/layout/shard_layout.hpp"

#include <algorithm>

namespace lockstep {

namespace {
int64_t quotient_up(int64_t dividend, int64_t divisor) {
  return (dividend + divisor - 1) / divisor;
}
}  // namespace

ShardLayout ShardLayout::flat(const std::vector<int64_t>& sizes, int32_t ranks, int64_t alignment,
                              int64_t part_multiple) {
  ShardLayout layout;
  layout.ranks_ = ranks;
  int64_t end = 0;
  for (const int64_t elements : sizes) {
    const int64_t begin = quotient_up(end, alignment) * alignment;
    layout.tensors_.push_back({elements, begin, 0});
    end = begin + elements;
  }
  layout.shard_elements_ = quotient_up(end, ranks * part_multiple) * part_multiple;
  return layout;
}

ShardLayout ShardLayout::by_rows(const std::vector<Rows>& tensors, int32_t ranks) {
  ShardLayout layout;
  layout.ranks_ = ranks;
  layout.is_flat_ = false;
  for (const Rows& tensor : tensors) {
    const int64_t part = quotient_up(tensor.rows, ranks) * tensor.row_elements;
    layout.tensors_.push_back({tensor.rows * tensor.row_elements, layout.shard_elements_, part});
    layout.shard_elements_ += part;
  }
  return layout;
}

ShardLayout ShardLayout::of_tensors(const std::vector<size_t>& tensors) const {
  ShardLayout layout;
  layout.ranks_ = ranks_;
  layout.is_flat_ = false;
  for (const size_t index : tensors) {
    layout.tensors_.push_back(tensors_[index]);
    layout.tensors_.back().offset = layout.shard_elements_;
    layout.shard_elements_ += tensors_[index].part_elements;
  }
  return layout;
}

ShardLayout ShardLayout::over_fewer(int32_t ranks) const {
  ShardLayout layout = *this;
  layout.ranks_ = ranks;
  layout.shard_elements_ = 0;
  for (Tensor& tensor : layout.tensors_) {
    tensor.offset = layout.shard_elements_;
    tensor.part_elements = tensor.part_elements * ranks_ / ranks;
    layout.shard_elements_ += tensor.part_elements;
  }
  return layout;
}

int64_t ShardLayout::tensor_elements() const {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors_) {
    sum += tensor.elements;
  }
  return sum;
}

ShardLayout::Ranks ShardLayout::ranks_with(size_t tensor) const {
  const Tensor& held = tensors_[tensor];
  if (held.elements == 0) {
    return {};
  }
  const int64_t part = is_flat_ ? shard_elements_ : held.part_elements;
  const int64_t begin = is_flat_ ? held.offset : 0;
  return {static_cast<int32_t>(begin / part),
          static_cast<int32_t>(quotient_up(begin + held.elements, part))};
}

int64_t ShardLayout::most_pieces() const {
  std::vector<int64_t> pieces(static_cast<size_t>(ranks_), 0);
  for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    const Ranks ranks = ranks_with(tensor);
    for (int32_t rank = ranks.first; rank < ranks.end; ++rank) {
      ++pieces[static_cast<size_t>(rank)];
    }
  }
  return *std::max_element(pieces.begin(), pieces.end());
}

std::vector<ShardPiece> ShardLayout::pieces_of(int32_t rank) const {
  std::vector<ShardPiece> pieces;
  for (size_t index = 0; index < tensors_.size(); ++index) {
    const Tensor& tensor = tensors_[index];
    // The part of the tensor that this rank's shard covers.
    const int64_t first =
        is_flat_ ? shard_elements_ * rank - tensor.offset : tensor.part_elements * rank;
    const int64_t covered = is_flat_ ? shard_elements_ : tensor.part_elements;
    const int64_t begin = std::clamp<int64_t>(first, 0, tensor.elements);
    const int64_t end = std::clamp<int64_t>(first + covered, 0, tensor.elements);
    if (end > begin) {
      const int64_t shard_begin = is_flat_ ? 0 : tensor.offset;
      pieces.push_back({index, begin, end - begin, shard_begin + begin - first});
    }
  }
  return pieces;
}

}  // namespace lockstep
