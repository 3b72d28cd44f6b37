#pragma once

#include <cstdint>
#include <vector>

#include "model/strategy/sharded/fsdp/sharded_unit.hpp"

namespace lockstep {

/// FairScale's ReduceScatterBucketer (fairscale/internal/reduce_scatter_bucketer.py): gradients of
/// several units are collected and reduced by one call.
class ReductionBucket {
 public:
  struct Options {
    GroupId group = world_group;
    int32_t ranks = 1;
    DType dtype = DType::fp32;    ///< of gradients in collectives
    Bytes capacity{};             ///< of all ranks' parts together; 0: nothing is collected
    int64_t most_elements = 0;    ///< of a rank's part, if every unit is in it
    bool carries_values = false;  ///< then no more memory than most_elements is taken
    GradientDivision division{};
  };
  explicit ReductionBucket(const Options& options);

  /// A unit whose shard is larger than a rank's part of the bucket is reduced by itself.
  bool takes(const ShardedUnit& unit) const {
    return unit.layout().shard_elements() <= shard_elements_;
  }
  /// Its divided gradients go into the bucket, which is reduced before if it is too full.
  void add(Rank& rank, ShardedUnit& unit, Ticket done);
  /// Reduces what is in the bucket, if anything is; the units take their sums behind that.
  void flush(Rank& rank);
  /// After a flush.
  void free(Rank& rank);

 private:
  struct Member {
    ShardedUnit* unit = nullptr;
    int64_t offset = 0;  ///< in every rank's part
  };
  void pack(Rank& rank, const Slice& packed) const;

  Options options_;
  int64_t shard_elements_ = 0;  ///< of a rank's part of the bucket
  int64_t held_elements_ = 0;   ///< of it that take memory
  Slice data_;                  ///< unit behind unit, each with one shard for every rank
  int64_t filled_ = 0;
  std::vector<Member> members_;
};

}  // namespace lockstep
