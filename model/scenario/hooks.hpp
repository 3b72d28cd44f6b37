#pragma once

#include <span>
#include <string_view>

namespace lockstep {

/// `main`, or a hook of LightningModule or Callback, those of 1.x included.
struct HookName {
  std::string_view name;
  bool called = true;     ///< by the trainer here; what else a scenario defines would never run
  std::string_view when;  ///< Lightning calls it, as the end of a sentence
};
std::span<const HookName> hook_names();
/// Null where no hook has this name.
const HookName* find_hook(std::string_view name);
bool is_hook(std::string_view name);
bool is_called_hook(std::string_view name);
/// training_step, validation_step, test_step, predict_step: a forward is put first in them.
bool is_step_hook(std::string_view name);

}  // namespace lockstep
