#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

/// A contiguous part of a tensor, and where the shard of its rank holds it. In elements.
struct ShardPiece {
  size_t tensor = 0;
  int64_t first_element = 0;  ///< in the tensor
  int64_t elements = 0;
  int64_t position = 0;  ///< in the shard
  bool operator==(const ShardPiece&) const = default;
};

/// How tensors are cut over the ranks of a group: pure arithmetic. All shards have the same size,
/// padding included, so that one all_gather brings them together.
class ShardLayout {
 public:
  /// One flat tensor is cut in equal parts: FSDP1's flat parameter. Each tensor begins at a
  /// multiple of `alignment` elements (torch/distributed/fsdp/_flat_param.py), and a part has a
  /// multiple of `part_multiple` elements (2 in DeepSpeed's stage_1_and_2.py).
  static ShardLayout flat(const std::vector<int64_t>& sizes, int32_t ranks, int64_t alignment = 1,
                          int64_t part_multiple = 1);

  /// A tensor of `rows` times `row_elements`, whose rows stay whole.
  struct Rows {
    int64_t rows = 0;
    int64_t row_elements = 1;
  };
  /// Every tensor is cut by itself in parts of ceil(rows / ranks) rows; later ranks may get fewer
  /// or none, and their storage is padded: FSDP2 (rows: the first dimension), ZeRO-3 (rows of one
  /// element).
  static ShardLayout by_rows(const std::vector<Rows>& tensors, int32_t ranks);
  /// By rows: the same for some of the tensors, in ascending order.
  ShardLayout of_tensors(const std::vector<size_t>& tensors) const;
  /// By rows: what is padded for all ranks, cut over fewer of them: those of a smaller group.
  ShardLayout over_fewer(int32_t ranks) const;

  int32_t ranks() const { return ranks_; }
  int64_t shard_elements() const { return shard_elements_; }
  int64_t gathered_elements() const { return shard_elements_ * ranks_; }
  /// Elements of the tensors themselves, without padding.
  int64_t tensor_elements() const;
  /// The gathered shards are the tensors one behind the other: nothing is copied out of them.
  bool is_flat() const { return is_flat_; }
  /// Flat: where a tensor begins among the gathered elements.
  int64_t offset_of(size_t tensor) const { return tensors_[tensor].offset; }
  /// The ranks that hold some of a tensor.
  struct Ranks {
    int32_t first = 0;
    int32_t end = 0;
  };
  Ranks ranks_with(size_t tensor) const;
  /// The largest number of pieces that a rank holds.
  int64_t most_pieces() const;
  /// What a rank holds, in the order of its shard.
  std::vector<ShardPiece> pieces_of(int32_t rank) const;

 private:
  struct Tensor {
    int64_t elements = 0;
    int64_t offset = 0;         ///< flat: among all; else in every shard
    int64_t part_elements = 0;  ///< by rows: of a rank that has its full share, padded
  };

  std::vector<Tensor> tensors_;
  int32_t ranks_ = 1;
  int64_t shard_elements_ = 0;
  bool is_flat_ = true;
};

}  // namespace lockstep
