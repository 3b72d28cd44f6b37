#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/strategy/exchange/hooks/bucket_hook.hpp"

namespace lockstep {

/// PowerSGDState's arguments.
struct PowerSgdOptions {
  int64_t rank = 1;                ///< matrix_approximation_rank
  int64_t start_iteration = 1000;  ///< start_powerSGD_iter
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;
  uint64_t random_seed = 0;
  bool batches_alike = false;  ///< batch_tensors_with_same_shape
  /// batched_powerSGD_hook: all of a bucket is one square matrix, with zeros behind it.
  bool is_batched = false;
  /// torch from 1.12 on makes batches of matrices orthonormal alone, and that hook gives it one
  /// matrix (pytorch pull request 75157): it raises as soon as it compresses.
  bool takes_batches_alone = true;
  /// What follows an all_reduce runs in a thread of its own: Gloo's futures call back from there,
  /// NCCL's at once.
  bool calls_back_in_threads = false;
  bool writes_values = false;
};

/// The rank to which a gradient of this shape is compressed; 0: it is not worth it. Vectors never
/// are.
int64_t compressed_rank(const PowerSgdOptions& options, int64_t rows, int64_t columns);

/// powerSGD_hook: a gradient M of n x m is sent as P = M Q (n x k) and Q = M^T P (m x k), P made
/// orthonormal in between; what that loses is added to the next gradient (Vogels et al., 2019;
/// powerSGD_hook.py). Three all_reduces one after the other: of all that is not compressed, of all
/// P, of all Q.
class PowerSgdHook final : public BucketHook {
 public:
  explicit PowerSgdHook(const PowerSgdOptions& options) : options_(options) {}
  Ticket start(Rank& rank, const FullBucket& bucket) override;
  Program finish(Rank& rank) override;
  bool counts_steps() const override { return place(0) != 0; }
  int64_t kind_of_step(int64_t ahead) const override {
    return kind_beside(iteration_ + ahead, options_.start_iteration);
  }
  int64_t place(int64_t ahead) const override {
    return place_beside(iteration_ + ahead, options_.start_iteration);
  }
  void leave_out(int64_t steps) override { iteration_ += steps; }

 private:
  /// One gradient as a matrix, or several of one shape that kernels take at once, and what stands
  /// for them.
  struct Matrix {
    Slice gradient;
    std::vector<Slice> stacked;  ///< of several: those that `gradient` is a copy of, in a row
    int64_t rows = 0;
    int64_t columns = 0;
    int64_t rank = 0;
    Slice p;
    Slice q;
    int64_t count() const { return std::max<int64_t>(1, std::ssize(stacked)); }
  };
  static Matrix stack(Rank& rank, const std::vector<Matrix>& alike);
  /// What is kept of a bucket from one iteration to the next.
  struct Kept {
    Slice error;
    Slice ps;
    Slice qs;
    bool has_low_rank = false;
  };
  /// One bucket of one iteration.
  struct Exchange {
    FullBucket bucket;
    Slice input;               ///< with the error of before; none without feedback
    std::vector<Slice> whole;  ///< parts that are not compressed
    Slice whole_flat;
    std::vector<Matrix> matrices;
    Slice ps;
    Slice qs;
  };

  Ticket square(Rank& rank, Exchange& exchange) const;
  Ticket add_error(Rank& rank, Exchange& exchange, Kept& kept);
  void divide(Rank& rank, Exchange& exchange) const;
  void hold_low_rank(Rank& rank, Exchange& exchange, Kept& kept);
  void draw(Rank& rank, const Exchange& exchange);
  Ticket multiply_ps(Rank& rank, const Exchange& exchange, Ticket after);
  Ticket reduce_whole(Rank& rank, Exchange& exchange, Ticket after);
  Ticket reduce_ps(Rank& rank, const Exchange& exchange, Ticket after);
  Ticket reduce_qs(Rank& rank, const Exchange& exchange, Ticket after);
  Ticket decompress(Rank& rank, const Exchange& exchange, Ticket after);
  /// `first`: the all_reduce that has been submitted.
  Program call_back(Rank& rank, const Exchange& exchange, Ticket first, Ticket promise);

  PowerSgdOptions options_;
  int64_t iteration_ = 0;
  uint64_t draws_ = 0;
  int64_t threads_ = 0;
  std::map<size_t, Kept> kept_;  ///< by bucket
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<Ticket> promises_;
};

}  // namespace lockstep
