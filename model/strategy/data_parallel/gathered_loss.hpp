#pragma once

#include <span>
#include <vector>

#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/transfers.hpp"

namespace lockstep {

/// The loss of a batch whose outputs come together on the first of the devices that share it, where
/// torch.nn.DataParallel gathers them and Lightning's training_step_end computes it. Its gradient
/// goes back in parts. The labels of the batch are taken from the host once more.
class GatheredLoss {
 public:
  /// What one device has computed.
  struct Part {
    Replica* replica = nullptr;
    int64_t samples = 0;
    Ticket computed{};  ///< its output
  };
  struct Labels {
    std::string_view outputs;           ///< of transfers: to the first device
    std::string_view output_gradients;  ///< from it
    SiteId gather{};
    SiteId scatter{};
  };

  GatheredLoss(const TrainingPlan& plan, const Labels& labels);
  Ticket forward(Rank& rank, const Batch& whole, const StepOptions& options,
                 std::span<const Part> parts, Transfers& transfers);
  /// Each part's replica then goes on with the backward of its layers.
  void backward(Rank& rank, const StepOptions& options, std::span<const Part> parts,
                Transfers& transfers);
  /// Behind the backward of all, or where there was none.
  void forget(Rank& rank);
  Slice loss() const { return head_.loss(); }

 private:
  int64_t elements_of_part(const Part& part) const;
  Slice make(Rank& rank, int64_t elements, DeviceId device) const;

  const TrainingPlan* plan_;
  Labels labels_;
  Replica head_;  ///< the loss alone, on the first device
  Slice outputs_;
  std::vector<Slice> gradients_;  ///< by part, then that of all
  Ticket ready_;
};

}  // namespace lockstep
