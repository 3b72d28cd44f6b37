#pragma once

#include <array>

#include "model/program/rank.hpp"
#include "model/strategy/plan.hpp"

namespace lockstep {

/// A loss that compares the views of a batch's samples with each other, and with those of all ranks
/// where it gathers them (lightly, NTXentLoss, and its relatives): what one forward keeps of it.
class SampleComparison {
 public:
  struct Call {
    const TrainingPlan* plan = nullptr;
    const Layer* loss = nullptr;
    int32_t module = 0;  ///< Op::layer of the loss
    DeviceId device{};
    StreamId on{};    ///< the computation of the device
    Slice output{};   ///< of the network: [samples, 2, features]
    Slice targets{};  ///< labels of the samples, where the loss reads them
    int64_t samples = 0;
    bool has_gradient = false;  ///< some layer wants that of the output
  };
  Ticket forward(Rank& rank, const Call& call, bool training, const Slice& loss);
  struct Back {
    Slice gradient;  ///< of the output; without a buffer where no values are computed
    double factor = 1;
    After after{};
  };
  Ticket backward(Rank& rank, const Call& call, const Back& back);
  void forget(Rank& rank);

 private:
  void make_views(Rank& rank, const Call& call, int32_t ranks);
  std::array<Slice, 4> views_to_compare(int32_t ranks) const;
  Ticket reduce_gradients(Rank& rank, const Call& call, std::array<Slice, 2> shared, Ticket done);

  /// Own first, own second, all first, all second views.
  std::array<Slice, 4> views_{};
  Slice kept_;  ///< by autograd, of pairs
};

}  // namespace lockstep
