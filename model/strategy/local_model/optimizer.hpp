#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "model/program/rank.hpp"
#include "model/strategy/plan.hpp"
#include "model/strategy/update_options.hpp"

namespace lockstep {

/// A tensor that an optimizer updates. Its state is allocated at the first step, as in torch.
struct OptimizedTensor {
  Slice value;
  Slice gradient;  ///< no_buffer: this tensor got no gradient and is left alone
  std::vector<Slice> state;
  int64_t steps = 0;
  std::array<double, 2> numbers{};  ///< OptimizerRule::advance
  const Shape* shape = nullptr;     ///< of the network; null: a vector, as a part of a tensor is
};

/// The optimizer with what schedulers have set for this step.
OptimizerPlan scheduled(OptimizerPlan plan, const UpdateOptions& options);

/// Whether it has a momentum, and whether that is the first of its betas: torch's schedulers cycle
/// either.
bool has_momentum(const OptimizerPlan& plan);
bool has_betas(const OptimizerPlan& plan);
double first_momentum(const OptimizerPlan& plan);
void set_first_momentum(OptimizerPlan& plan, double momentum);
/// As loggers name it.
std::string_view class_name_of(const OptimizerPlan& plan);

/// Slices of state that an elementwise optimizer keeps for every element: none, momentum, two
/// moments ..
int state_tensors(const OptimizerPlan& plan);
/// Elements of all state of a parameter.
int64_t state_elements(const OptimizerPlan& plan, const Shape& parameter);

/// Which of torch's implementations computes an update: foreach is the default on a GPU, and makes
/// each intermediate result of all tensors at once; on the CPU it is one tensor after the other.
enum class OptimizerKernels : uint8_t { for_all_tensors, for_each_tensor, of_values };

/// What torch's functions hold beside parameters, gradients and state while they update tensors of
/// these values that have gradients.
Bytes optimizer_temporaries(const OptimizerPlan& plan, OptimizerKernels kernels,
                            const std::vector<Slice>& values);

/// The same as memory, which the caller releases; none where there is none of it, or with values.
Slice hold_temporaries(Rank& rank, const OptimizerPlan& plan, OptimizerKernels kernels,
                       const std::vector<Slice>& values, DeviceId device);

/// Allocates what the optimizer keeps for the tensor, if it has not been.
void make_optimizer_state(Rank& rank, const OptimizerPlan& plan, OptimizedTensor& tensor,
                          const ComputeOptions& options);

/// Which of them this training's updates take.
OptimizerKernels kernels_of(const TrainingPlan& plan);

/// Updates the tensors on a stream of the device that holds them: one kernel per tensor, or one for
/// all with `for_all_tensors`, priced by the memory it moves.
Ticket optimizer_step(Rank& rank, const OptimizerPlan& plan, OptimizerKernels kernels,
                      const std::vector<OptimizedTensor*>& tensors, const ComputeOptions& options);

}  // namespace lockstep
