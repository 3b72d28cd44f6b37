#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// `main` and every hook of LightningModule and Callback by name, those of 1.x included.
std::span<const std::string_view> hook_names();
bool is_hook(std::string_view name);
/// training_step, validation_step, test_step, predict_step: a forward is put first in them.
bool is_step_hook(std::string_view name);

}  // namespace lockstep
