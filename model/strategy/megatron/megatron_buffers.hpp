#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/strategy/exchange/reducer.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/megatron/gradient_buckets.hpp"
#include "model/strategy/megatron/megatron_options.hpp"

namespace lockstep {

/// The layers of one stage of this rank: Megatron-LM's model chunk.
struct ModelChunk {
  size_t first_layer = 0;
  size_t end_layer = 0;
};

/// Among whom gradients of the same parameters are averaged.
struct DataRanks {
  ReducingGroup group{};
  int32_t ranks = 1;
  int32_t index = 0;
};

/// The gradients of a rank in one buffer for each model chunk, and with a distributed optimizer its
/// parameters in another: how they are averaged over the replicas, and how updated parameters come
/// back (megatron/core/distributed).
class MegatronBuffers {
 public:
  struct Ranks {
    DataRanks all{};
    std::optional<DataRanks> experts{};  ///< of those that ranks divide; none: no rank divides any
  };

  MegatronBuffers(Replica& replica, const MegatronOptions& options,
                  const std::vector<ModelChunk>& chunks, const Ranks& ranks,
                  bool is_first_of_pipeline);

  struct Bucket {
    GradientBucket layout{};
    Slice gradient{};
    Slice parameters{};  ///< with a distributed optimizer
    size_t chunk = 0;
    bool has_experts = false;
    size_t pending = 0;  ///< uses of its parameters that gave no gradient so far
    Ticket reduced{};
    Ticket gathered{};
    bool is_gathered = true;
  };

  /// With a distributed optimizer: the memory of each parameter of the replica.
  std::vector<Slice> allocate_parameters(Rank& rank);
  /// For a fit: gradients become views of their buffers.
  void allocate_gradients(Rank& rank);

  /// zero_grad_buffer of every chunk.
  void begin_step(Rank& rank);
  /// In the backward of the last micro-batch of its chunk.
  void gradients_ready(Rank& rank, size_t layer, Ticket done);
  /// finish_grad_sync: averages are there for later work on the compute stream, of a distributed
  /// optimizer those of this rank's shards.
  void finish(Rank& rank);
  /// The optimizer has updated this rank's shards: all of them come together, or when the forward
  /// needs them.
  void gather(Rank& rank);
  void gather_before(Rank& rank, size_t layer);
  void gather_all(Rank& rank);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  const MegatronOptions& options() const { return options_; }
  /// Whether it is averaged among the ranks that hold the same experts.
  bool is_expert(size_t parameter) const;
  std::vector<Bytes> take_reduced_bytes() { return std::exchange(reduced_bytes_, {}); }
  std::vector<Bytes> take_gathered_bytes() { return std::exchange(gathered_bytes_, {}); }
  /// The part of a bucket that this rank updates.
  int64_t shard_begin(const Bucket& bucket) const {
    return shard_elements(bucket) * ranks_of(bucket).index;
  }
  int64_t shard_elements(const Bucket& bucket) const {
    return bucket.layout.elements() / ranks_of(bucket).ranks;
  }
  static bool is_in(const ModelChunk& chunk, size_t layer) {
    return chunk.first_layer <= layer && layer < chunk.end_layer;
  }

 private:
  struct Use {
    size_t bucket = 0;
    size_t layer = 0;
  };
  const DataRanks& ranks_of(const Bucket& bucket) const {
    return bucket.has_experts ? *ranks_.experts : ranks_.all;
  }
  void add_chunk(size_t index, bool is_first_of_pipeline);
  void add_buckets(size_t chunk, bool has_experts, bool is_first_of_pipeline);
  void count_uses();
  void reduce(Rank& rank, Bucket& bucket, Ticket ready);
  void begin_gather(Rank& rank, size_t bucket);
  void finish_gather(Rank& rank, size_t bucket);
  bool is_shared(size_t parameter) const;

  Replica* replica_;
  MegatronOptions options_;
  std::vector<ModelChunk> chunks_;
  Ranks ranks_;
  std::vector<Bucket> buckets_;
  std::vector<Use> uses_;             ///< of trainable parameters by layers
  std::vector<size_t> gather_order_;  ///< as forwards need buckets
  std::vector<Bytes> reduced_bytes_;
  std::vector<Bytes> gathered_bytes_;
};

}  // namespace lockstep
