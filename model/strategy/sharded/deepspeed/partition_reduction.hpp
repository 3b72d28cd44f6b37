#pragma once

#include <optional>
#include <vector>

#include "model/strategy/exchange/gradient_exchange.hpp"
#include "model/strategy/sharded/deepspeed/engine_division.hpp"
#include "model/strategy/sharded/deepspeed/gradient_bucket.hpp"
#include "model/strategy/sharded/deepspeed/master_partition.hpp"

namespace lockstep {

/// How DeepSpeed reduces gradients in stages 1 and 2. Sizes are in elements.
struct PartitionReductionOptions {
  int64_t bucket_elements = 500'000'000;
  /// Gradients enter buckets as they come; else in definition order when backward has ended.
  bool during_backward = true;
  /// Only where gradients are synchronised; else in every micro-batch, as stage 2 does.
  bool at_boundary_only = false;
  bool overlap_comm = false;  ///< a second bucket fills while the first is being reduced
  bool contiguous_gradients = true;
  enum class Call : uint8_t {
    all_reduce_of_parts,   ///< parts of the ranks one behind the other, split at the bucket's size
    reduce_to_owners,      ///< a reduce for each rank whose partition is in the bucket
    all_reduce_of_owners,  ///< as many calls, of which every rank gets the sum
    reduce_of_slices,  ///< a reduce for each slice of one rank, neighbours in the bucket counting
                       ///< as one
    all_reduce,        ///< the bucket as it is
  };
  Call call = Call::all_reduce_of_parts;
  std::optional<DType> communicated;  ///< none: the type of the gradients
  EngineDivision division{.comes_before = true};
};

/// The buckets of DeepSpeed's ZeRO stages 1 and 2 (deepspeed/runtime/zero/stage_1_and_2.py):
/// gradients are averaged over all ranks, of which each keeps its partition.
class PartitionReduction final : public GradientExchange {
 public:
  PartitionReduction(Replica& replica, MasterPartition& partition,
                     const PartitionReductionOptions& options);

  void begin(Rank& rank, bool synchronise) override;
  void gradients_ready(Rank& rank, size_t layer, Ticket done) override;
  Program finish(Rank& rank) override;
  Program settle(Rank& rank) override;
  std::vector<Bytes> take_exchanged_bytes() override { return std::exchange(exchanged_bytes_, {}); }

 private:
  /// A part of one gradient in one rank's partition.
  struct Part {
    size_t parameter = 0;
    int64_t first_element = 0;
    int64_t elements = 0;
    int32_t owner = 0;
    int64_t position = 0;  ///< in the owner's partition
  };

  /// A call under way, whose result this rank has not taken yet.
  struct UnderWay {
    Slice packed;
    bool owns_packed = true;  ///< else it lies in a bucket
    std::vector<Slice> own_parts;
    std::vector<int64_t> positions;
    Ticket reduced;
  };

  bool reduces() const { return synchronises_ || !options_.at_boundary_only; }
  void add(Rank& rank, size_t parameter);
  void reduce_bucket(Rank& rank);
  std::vector<std::vector<Part>> calls_of(const std::vector<size_t>& parameters) const;
  bool travels_in_place() const;
  void reduce_parts(Rank& rank, const std::vector<Part>& parts);
  void take(Rank& rank, const UnderWay& call);

  Replica* replica_;
  MasterPartition* partition_;
  PartitionReductionOptions options_;
  std::vector<std::vector<Part>> parts_of_;  ///< by parameter, in the order of its elements
  bool synchronises_ = true;
  std::vector<size_t> bucket_;  ///< parameters in it
  int64_t bucket_filled_ = 0;
  std::vector<GradientBucket> memory_;  ///< during a backward
  size_t filling_ = 0;                  ///< which of these
  std::vector<UnderWay> under_way_;
  Ticket reduced_{};  ///< the last call
  std::vector<Bytes> exchanged_bytes_;
};

}  // namespace lockstep
