#pragma once

#include "model/strategy/data_parallel/bagua/bagua_groups.hpp"

namespace lockstep {

/// What makes the numbers of a bucket the same on all ranks, in place and on the communication
/// stream.
class BucketOperation {
 public:
  virtual ~BucketOperation() = default;
  virtual Ticket run(Rank& rank, const Slice& flat, Ticket ready) = 0;
  /// How many elements a bucket must be a multiple of.
  virtual int64_t alignment() const { return 1; }
  /// Bytes that this rank puts into its calls for a bucket.
  virtual Bytes bytes_of(const Slice& flat) const = 0;
};

/// comm_ops/centralized_full_precision_synchronous.rs
class AverageOfBucket final : public BucketOperation {
 public:
  AverageOfBucket(const BaguaGroups& groups, bool average) : groups_(&groups), average_(average) {}
  Ticket run(Rank& rank, const Slice& flat, Ticket ready) override;
  Bytes bytes_of(const Slice& flat) const override { return flat.bytes(); }

 private:
  const BaguaGroups* groups_;
  bool average_;
};

/// comm_ops/centralized_low_precision_synchronous.rs: each rank gets all versions of one chunk,
/// and sends what it makes of them to all, compressed both times.
class CompressedAverageOfBucket final : public BucketOperation {
 public:
  /// `error`: where the largest error of a compression is kept; no_buffer: nowhere.
  CompressedAverageOfBucket(const BaguaGroups& groups, bool average, const Slice& error)
      : groups_(&groups), average_(average), error_(error) {}
  Ticket run(Rank& rank, const Slice& flat, Ticket ready) override;
  int64_t alignment() const override { return groups_->all_ranks(); }
  Bytes bytes_of(const Slice& flat) const override;

 private:
  Ticket among_members(Rank& rank, const Slice& flat, Ticket ready);

  const BaguaGroups* groups_;
  bool average_;
  Slice error_;
};

/// The two kernels of MinMaxUInt8 on the communication stream.
Ticket compress(Rank& rank, const Slice& numbers, const Slice& bytes, int64_t chunks,
                const Slice& error, Ticket ready);
Ticket decompress(Rank& rank, const Slice& bytes, const Slice& numbers, int64_t chunks,
                  SiteId site);

}  // namespace lockstep
