#include "model/scenario/hooks.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

// Lightning 1.5 to 2.6: core/hooks.py, core/module.py, callbacks/callback.py.
constexpr auto hooks = std::to_array<HookName>({
    {"main", true},
    {"__init__", true},
    {"prepare_data", true},
    {"setup", true},
    {"teardown", true},
    {"configure_model", true},
    {"configure_sharded_model", true},
    {"configure_optimizers", true},
    {"train_dataloader", true},
    {"val_dataloader", true},
    {"test_dataloader", true},
    {"predict_dataloader", true},
    {"transfer_batch_to_device", true},
    {"on_before_batch_transfer", true},
    {"on_after_batch_transfer", true},
    {"on_fit_start", true},
    {"on_fit_end", true},
    {"on_sanity_check_start", true},
    {"on_sanity_check_end", true},
    {"on_train_start", true},
    {"on_train_end", true},
    {"on_train_epoch_start", true},
    {"on_train_epoch_end", true},
    {"on_train_batch_start", true},
    {"on_train_batch_end", true},
    {"training_step", true},
    {"training_step_end", true},
    {"training_epoch_end", true},
    {"on_before_zero_grad", true},
    {"on_before_backward", true},
    {"on_after_backward", true},
    {"on_before_optimizer_step", true},
    {"configure_gradient_clipping", true},
    {"optimizer_step", true},
    {"optimizer_zero_grad", true},
    {"lr_scheduler_step", true},
    {"on_validation_start", true},
    {"on_validation_end", true},
    {"on_validation_epoch_start", true},
    {"on_validation_epoch_end", true},
    {"on_validation_batch_start", true},
    {"on_validation_batch_end", true},
    {"on_validation_model_zero_grad", true},
    {"on_validation_model_eval", true},
    {"on_validation_model_train", true},
    {"validation_step", true},
    {"validation_step_end", true},
    {"validation_epoch_end", true},
    {"on_test_start", true},
    {"on_test_end", true},
    {"on_test_epoch_start", true},
    {"on_test_epoch_end", true},
    {"on_test_batch_start", true},
    {"on_test_batch_end", true},
    {"on_test_model_eval", true},
    {"on_test_model_train", true},
    {"test_step", true},
    {"test_step_end", true},
    {"test_epoch_end", true},
    {"on_predict_start", true},
    {"on_predict_end", true},
    {"on_predict_epoch_start", true},
    {"on_predict_epoch_end", true},
    {"on_predict_batch_start", true},
    {"on_predict_batch_end", true},
    {"on_predict_model_eval", true},
    {"on_predict_model_train", true},
    {"predict_step", true},
    {"on_epoch_start", true},
    {"on_epoch_end", true},
    {"on_batch_start", true},
    {"on_batch_end", true},
    {"on_exception", true},
    {"on_save_checkpoint", true},
    {"on_load_checkpoint", false},
});

}  // namespace

std::span<const HookName> hook_names() { return hooks; }

bool is_hook(std::string_view name) {
  return std::any_of(hooks.begin(), hooks.end(),
                     [name](const HookName& hook) { return hook.name == name; });
}

bool is_called_hook(std::string_view name) {
  return std::any_of(hooks.begin(), hooks.end(),
                     [name](const HookName& hook) { return hook.called && hook.name == name; });
}

bool is_step_hook(std::string_view name) {
  return name == "training_step" || name == "validation_step" || name == "test_step" ||
         name == "predict_step";
}

}  // namespace lockstep
