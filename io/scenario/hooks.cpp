#include "io/scenario/hooks.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

// Lightning 1.5 to 2.6: core/hooks.py, core/module.py, callbacks/callback.py.
constexpr auto hooks = std::to_array<std::string_view>({
    "main",
    "__init__",
    "prepare_data",
    "setup",
    "teardown",
    "configure_model",
    "configure_sharded_model",
    "configure_optimizers",
    "train_dataloader",
    "val_dataloader",
    "test_dataloader",
    "predict_dataloader",
    "transfer_batch_to_device",
    "on_before_batch_transfer",
    "on_after_batch_transfer",
    "on_fit_start",
    "on_fit_end",
    "on_sanity_check_start",
    "on_sanity_check_end",
    "on_train_start",
    "on_train_end",
    "on_train_epoch_start",
    "on_train_epoch_end",
    "on_train_batch_start",
    "on_train_batch_end",
    "training_step",
    "training_step_end",
    "training_epoch_end",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "configure_gradient_clipping",
    "optimizer_step",
    "optimizer_zero_grad",
    "lr_scheduler_step",
    "on_validation_start",
    "on_validation_end",
    "on_validation_epoch_start",
    "on_validation_epoch_end",
    "on_validation_batch_start",
    "on_validation_batch_end",
    "on_validation_model_eval",
    "on_validation_model_train",
    "validation_step",
    "validation_step_end",
    "validation_epoch_end",
    "on_test_start",
    "on_test_end",
    "on_test_epoch_start",
    "on_test_epoch_end",
    "on_test_batch_start",
    "on_test_batch_end",
    "test_step",
    "test_step_end",
    "test_epoch_end",
    "on_predict_start",
    "on_predict_end",
    "on_predict_epoch_start",
    "on_predict_epoch_end",
    "on_predict_batch_start",
    "on_predict_batch_end",
    "predict_step",
    "on_epoch_start",
    "on_epoch_end",
    "on_batch_start",
    "on_batch_end",
    "on_exception",
    "on_save_checkpoint",
    "on_load_checkpoint",
});

}  // namespace

std::span<const std::string_view> hook_names() { return hooks; }

bool is_hook(std::string_view name) {
  return std::find(hooks.begin(), hooks.end(), name) != hooks.end();
}

bool is_step_hook(std::string_view name) {
  return name == "training_step" || name == "validation_step" || name == "test_step" ||
         name == "predict_step";
}

}  // namespace lockstep
