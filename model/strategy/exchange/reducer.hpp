#pragma once

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "model/strategy/exchange/bucket.hpp"
#include "model/strategy/exchange/hooks/bucket_hook.hpp"
#include "model/strategy/local_model/replica.hpp"

namespace lockstep {

/// Arguments of torch's DistributedDataParallel that its reducer takes.
struct ReducerOptions {
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  std::optional<Bytes> bucket_cap;  ///< none: 25 MiB, and 1 MiB for the bucket that is ready first
};

/// Ranks that hold the same layers, of which one reducer or more reduce the gradients.
struct ReducingGroup {
  GroupId group = world_group;
  int32_t first_rank = 0;              ///< global: whose order of buckets is everybody's
  StreamId on = communication_stream;  ///< of their communicator
  size_t first_layer = 0;
  size_t end_layer = std::numeric_limits<size_t>::max();

  bool reduces(const Replica& replica, size_t parameter) const {
    const size_t layer = replica.parameters()[parameter].place.layer;
    return replica.holds(parameter) && first_layer <= layer && layer < end_layer;
  }
};

/// The buckets of DDP: how gradients get into them while backward runs, the order in which they are
/// averaged over the ranks, and how the averages get out (PyTorch's Reducer, reducer.cpp).
class Reducer {
 public:
  /// `hook`: exchanges the buckets in place of an all_reduce; null: none.
  Reducer(Replica& replica, const ReducerOptions& options, BucketHook* hook = nullptr);

  /// Of a model that ranks divide among them: before allocate().
  void reduce_within(const ReducingGroup& group) { group_ = group; }
  /// Allocates the buckets of the first iteration. The replica has its memory already.
  void allocate(Rank& rank);
  /// Frees all buckets; gradients that are views of them become None.
  void release(Rank& rank);

  // A synchronised iteration, in this order.
  /// Throws ProgramException where the last backward left a bucket that never filled.
  void raise_if_unfinished() const;
  /// Once, when the order in which gradients come is known: rank 0's order for all.
  Program rebuild_buckets(Rank& rank);
  /// After the forward: the gradients of the next backward are wanted.
  void prepare_for_backward();
  /// The divisor of each gradient.
  void divide_by(int64_t ranks) { divisor_ = static_cast<double>(ranks); }
  /// The gradients of a layer are there, once `done`. Also called in backwards under no_sync, as
  /// torch's hooks are: they fill what an earlier backward has left unfilled. Throws
  /// ProgramException where a parameter is in its bucket already.
  void gradients_ready(Rank& rank, size_t layer, Ticket done);
  /// A backward has ended. Where all buckets are full, their averages become the gradients.
  Program finish(Rank& rank);
  /// Before `finish` of a backward under no_sync. Throws ProgramException where it is the first of
  /// a static graph.
  Program refuse_first_static(Rank& rank);

  /// The host waits until the averages of the last backward are in the gradients. Later work on the
  /// replica's compute stream comes after that by itself.
  Program settle(Rank& rank);
  /// Gradients became None: frees memory that only they were views of.
  void gradients_forgotten(Rank& rank) { free_outlived(rank); }

  /// The all_reduces of an iteration of the others, on a rank whose data have ended.
  Program reduce_zeros(Rank& rank);

  /// Bytes of each bucket that was reduced since the last call.
  std::vector<Bytes> take_reduced_bytes() { return std::exchange(reduced_bytes_, {}); }
  /// Parameters of each bucket, as indices into Replica::parameters(), in bucket order.
  BucketAssignment bucket_assignment() const;

 private:
  struct Bucket {
    std::vector<size_t> parameters;  ///< indices into Replica::parameters()
    Slice flat;
    std::vector<Slice> parts;  ///< of `flat`, one a parameter
    size_t pending = 0;        ///< parameters that have not been put in yet
    Ticket filled;             ///< the last of them is in
    Ticket reduced;            ///< none while the all_reduce has not been launched
  };
  /// Where a parameter stands: in its bucket, and among the trainable ones.
  struct Place {
    size_t bucket = 0;
    size_t part = 0;
    size_t position = 0;
    bool is_put = false;  ///< in its bucket, in this iteration
  };

  bool finds_unused() const { return options_.find_unused_parameters && !options_.static_graph; }
  bool is_first_static() const { return options_.static_graph && iterations_ == 1; }
  bool is_before_first_static() const { return options_.static_graph && iterations_ == 0; }
  bool may_rebuild() const { return !has_rebuilt_ && !finds_unused(); }

  std::vector<BucketedTensor> bucketed_tensors() const;
  BucketAssignment first_assignment() const;
  void make_buckets(Rank& rank, const BucketAssignment& assignment);
  void free_outlived(Rank& rank);
  void raise_if_graph_changed(const std::vector<size_t>& parameters) const;
  void make_view(Rank& rank, size_t index);
  void put(Rank& rank, const std::vector<size_t>& parameters, Ticket done);
  /// One kernel over slices of buckets.
  Ticket put_by(Rank& rank, Kernel kernel, const std::vector<Slice>& reads,
                const std::vector<Slice>& writes, Ticket done);
  void launch_full_buckets(Rank& rank);
  Ticket exchange(Rank& rank, size_t index);
  void empty_buckets();
  Program reduce_first_static(Rank& rank);
  Program reduce_used_map(Rank& rank);
  void launch_used_map(Rank& rank);
  Program learn_usage(Rank& rank);
  Ticket take_out(Rank& rank, Bucket& bucket);

  Replica* replica_;
  ReducerOptions options_;
  ReducingGroup group_;
  BucketHook* hook_;
  std::vector<size_t> trainable_;  ///< indices into Replica::parameters()
  std::vector<Place> places_;      ///< by parameter
  std::vector<Bucket> buckets_;
  std::vector<Slice> outlived_;  ///< replaced buckets that gradients are still views of
  double divisor_ = 1;

  int64_t iterations_ = 0;  ///< synchronised forwards so far
  bool wants_gradients_ = false;
  bool marked_unused_ = false;
  bool unfinished_ = false;
  size_t next_bucket_ = 0;  ///< the first that has not been launched
  std::vector<Ticket> exchanged_;
  std::vector<Bytes> reduced_bytes_;

  bool has_rebuilt_ = false;
  std::vector<size_t> ready_order_;  ///< positions, as their gradients came

  std::vector<size_t> unused_;       ///< parameters that this rank's graph leaves out
  std::vector<bool> used_here_;      ///< by position; over an accumulation window
  std::vector<bool> used_anywhere_;  ///< by position; known where it was asked for
  Slice used_map_;                   ///< int32 a trainable parameter
  Ticket used_map_reduced_;
};

}  // namespace lockstep
