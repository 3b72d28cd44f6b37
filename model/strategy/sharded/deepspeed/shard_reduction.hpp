#pragma once

#include <map>
#include <vector>

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/sharded/deepspeed/deepspeed_options.hpp"
#include "model/strategy/sharded/deepspeed/gradient_bucket.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

/// The gradient buckets of ZeRO stage 3 (deepspeed/runtime/zero/stage3.py): every bucket is one
/// reduce_scatter, after which each rank has the means of its parts, in every micro-batch.
class ShardReduction final : public GradientExchange {
 public:
  ShardReduction(Replica& replica, MasterPartition& partition, const DeepSpeedOptions& options);

  /// The bucket, which stays for good.
  void allocate(Rank& rank);
  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank& rank, size_t layer, Ticket done) override;
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

  /// The same for one parameter.
  void gradient_ready(Rank& rank, size_t parameter);

 private:
  struct UnderWay {
    Slice packed;
    Slice part;
    std::vector<size_t> parameters;
    std::vector<ShardPiece> pieces;
    Ticket reduced;
  };

  void pack_bucket(Rank& rank, const ShardLayout& layout, const Slice& packed);
  void reduce_bucket(Rank& rank);
  void take(Rank& rank, const UnderWay& call);

  Replica* replica_;
  MasterPartition* partition_;
  DeepSpeedOptions options_;
  std::map<size_t, int64_t> position_of_;  ///< by parameter, in the partition
  std::vector<size_t> bucket_;
  int64_t bucket_filled_ = 0;
  GradientBucket memory_;
  std::vector<UnderWay> under_way_;
  Ticket reduced_{};
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
