#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/core/device_type.hpp"
#include "model/core/dtype.hpp"
#include "model/core/version.hpp"
#include "model/strategy/traits.hpp"

namespace lockstep {

struct PrecisionSituation {
  Version lightning{2, 6, 0};
  Version torch{2, 11, 0};
  std::string strategy = "ddp";  ///< its name in messages
  StrategyTraits traits{};
  bool cpu = false;
  DeviceType device = DeviceType::cuda;  ///< where it is not the CPU
  int compute_capability = 0;            ///< of the GPU, times 10 (80 = A100); 0: not known
  bool apex = false;                     ///< amp_backend: apex, of 1.x
};

/// The resolved `precision`.
struct PrecisionChoice {
  std::string name = "32-true";  ///< by the names of 2.x
  DType parameters = DType::fp32;
  DType activations = DType::fp32;
  std::string refusal{};  ///< not empty: Lightning or PyTorch raises
  std::string remedy{};
  std::string warning{};  ///< something else happens than what is asked for
  std::string note{};
  bool scales_loss = false;  ///< the precision plugin has a GradScaler, which is modelled
};

/// Reads `precision` as the version does, and compares it with strategy and hardware (Lightning's
/// accelerator_connector.py, plugins/precision/*.py; torch/amp/autocast_mode.py).
PrecisionChoice choose_precision(std::string_view asked, const PrecisionSituation& situation);

/// What 1.x calls a precision that only 2.x calls like that. Empty: there is no such name.
std::string_view precision_before_2_0(std::string_view asked);

/// Every spelling that a version of Lightning takes.
std::vector<std::string_view> precision_spellings();

}  // namespace lockstep
