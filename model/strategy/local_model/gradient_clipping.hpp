#pragma once

#include <cstdint>
#include <vector>

#include "model/program/rank.hpp"

namespace lockstep {

/// Lightning's `gradient_clip_val` and `gradient_clip_algorithm`: what is done to the gradients of
/// an optimizer between backward and step.
struct GradientClipping {
  enum class Algorithm : uint8_t { none, norm, value };
  Algorithm algorithm = Algorithm::none;
  double limit = 0;  ///< of the norm of all gradients together, or of every element
  bool operator==(const GradientClipping&) const = default;
};

/// The ranks that hold different parts of the gradients, whose squares add up to one norm.
struct SharedNorm {
  /// An all_reduce over the ranks of a group; DTensor sends a number for each parameter.
  struct Sum {
    GroupId group{};
    int64_t elements = 1;
  };
  std::vector<Sum> sums;  ///< one after the other
  SiteId site{};
  /// Of the gradients those whose squares are counted here; null: all of them.
  const std::vector<Slice>* counted = nullptr;
};

/// Clips complete gradients in place, on the compute stream of their device: what every rank does
/// alike where all hold the same gradients (torch.nn.utils.clip_grad). With `shared` every rank of
/// the group calls it with its own parts, each element once: clipping by norm all-reduces their
/// squares.
void clip_gradients(Rank& rank, const GradientClipping& clipping,
                    const std::vector<Slice>& gradients, DeviceId device,
                    const SharedNorm* shared = nullptr);

// Its two parts, for gradients on several devices, on the compute stream of each.

/// The type in which a norm of these is kept: half-precision ones have it in single precision.
DType norm_dtype(const std::vector<Slice>& gradients);
/// `squared_norm`: one element on the device.
Ticket measure_norm(Rank& rank, const std::vector<Slice>& gradients, const Slice& squared_norm,
                    DeviceId device);
/// So that all gradients, of which that is the squared norm, have no larger one than the limit.
void clip_to_norm(Rank& rank, const GradientClipping& clipping, const std::vector<Slice>& gradients,
                  const Slice& squared_norm, DeviceId device);

}  // namespace lockstep
