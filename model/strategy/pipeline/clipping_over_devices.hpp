#pragma once

#include <vector>

#include "model/strategy/local_model/gradient_clipping.hpp"

namespace lockstep {

/// The gradients of one process on one of its devices.
struct GradientsOnDevice {
  DeviceId device{};
  std::vector<Slice> gradients;
};

/// Clips all of them as one list (torch.nn.utils.clip_grad_norm_): norms meet on the first device,
/// and what comes of them goes back to the others. Nothing where there is no gradient.
void clip_gradients_over_devices(Rank& rank, const GradientClipping& clipping,
                                 const std::vector<GradientsOnDevice>& all);

}  // namespace lockstep
