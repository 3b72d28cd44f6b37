#include "model/scenario/hooks.hpp"

#include <algorithm>
#include <array>

namespace lockstep {

namespace {

// Lightning 1.5 to 2.6: core/hooks.py, core/module.py, callbacks/callback.py.
constexpr auto known_hooks = std::to_array<HookName>({
    {"main", true, "the script: what calls the trainer"},
    {"__init__", true, "once on every rank, before the trainer; tensors are on the CPU"},
    {"prepare_data", true, "once on each node, before the others continue"},
    {"setup", true, "at the beginning of every stage, on every rank"},
    {"teardown", true, "at the end of every stage"},
    {"configure_model", true, "after setup, from 2.1 on"},
    {"configure_sharded_model", true, "after setup; since 2.1 configure_model is to be used"},
    {"configure_optimizers", true, "after the strategy has wrapped the model, in fit"},
    {"train_dataloader", true, "once, before the barrier of the training loader"},
    {"val_dataloader", true, "once, before the barrier of the validation loaders"},
    {"test_dataloader", true, "once, before the barrier of the test loaders"},
    {"predict_dataloader", true, "once, before the barrier of the predict loaders"},
    {"transfer_batch_to_device", true,
     "for every batch, between the two around it; refused under dp"},
    {"on_before_batch_transfer", true,
     "for every batch, before it goes to the device; refused under dp"},
    {"on_after_batch_transfer", true,
     "for every batch, once it is on the device; refused under dp"},
    {"on_fit_start", true, "at the beginning of fit, before its loops"},
    {"on_fit_end", true, "at the end of fit"},
    {"on_pretrain_routine_start", true, "before the sanity check, up to 1.7"},
    {"on_pretrain_routine_end", true, "before the sanity check, up to 1.7"},
    {"on_sanity_check_start", true, "before the validation batches that come before training"},
    {"on_sanity_check_end", true, "after them"},
    {"on_train_start", true, "before the first epoch"},
    {"on_train_end", true, "after the last epoch"},
    {"on_train_epoch_start", true, "before the batches of an epoch"},
    {"on_train_epoch_end", true, "after the batches and the validation of an epoch"},
    {"on_train_batch_start", true, "before training_step, with the columns of its batch"},
    {"on_train_batch_end", true, "after the step, with the columns of its batch"},
    {"training_step", true, "for every training batch; forward is put first where it has none"},
    {"training_step_end", true,
     "after training_step, up to 1.9: under dp with what all replicas returned"},
    {"training_epoch_end", true,
     "at the end of an epoch, up to 1.9, with the outputs of all steps"},
    {"on_before_zero_grad", true, "before Lightning's zero_grad, under automatic optimization"},
    {"on_before_backward", true, "before every backward"},
    {"on_after_backward", true, "after every backward"},
    {"on_before_optimizer_step", true, "before every step, after the backward"},
    {"configure_gradient_clipping", true,
     "takes the place of the clipping before a step: clip_gradients"},
    {"optimizer_step", true, "takes the place of a step: optimizer_step, or optimizer_closure"},
    {"optimizer_zero_grad", true, "takes the place of zero_grad"},
    {"lr_scheduler_step", true,
     "takes the place of the step of a scheduler; `metric` is what it monitors"},
    {"on_validation_start", true, "before a validation"},
    {"on_validation_end", true, "after a validation"},
    {"on_validation_epoch_start", true, "before the batches of a validation"},
    {"on_validation_epoch_end", true, "after the batches of a validation"},
    {"on_validation_batch_start", true, "before validation_step, with the columns of its batch"},
    {"on_validation_batch_end", true, "after validation_step, with the columns of its batch"},
    {"on_validation_model_zero_grad", true,
     "takes the place of emptying gradients before a validation, from 2.1 on"},
    {"on_validation_model_eval", true, "before a validation: the model goes to evaluation"},
    {"on_validation_model_train", true, "after a validation: the model goes back to training"},
    {"validation_step", true, "for every validation batch; forward is put first where it has none"},
    {"validation_step_end", true,
     "after validation_step, up to 1.9: under dp with what all replicas returned"},
    {"validation_epoch_end", true,
     "at the end of a validation, up to 1.9, with the outputs of all steps"},
    {"on_test_start", true, "before the test loop"},
    {"on_test_end", true, "after the test loop"},
    {"on_test_epoch_start", true, "before the batches of the test loop"},
    {"on_test_epoch_end", true, "after the batches of the test loop"},
    {"on_test_batch_start", true, "before test_step, with the columns of its batch"},
    {"on_test_batch_end", true, "after test_step, with the columns of its batch"},
    {"on_test_model_eval", true, "before the test loop: the model goes to evaluation"},
    {"on_test_model_train", true, "after the test loop: the model goes back to training"},
    {"test_step", true, "for every test batch; forward is put first where it has none"},
    {"test_step_end", true, "after test_step, up to 1.9: under dp with what all replicas returned"},
    {"test_epoch_end", true,
     "at the end of the test loop, up to 1.9, with the outputs of all steps"},
    {"on_predict_start", true, "before the predict loop"},
    {"on_predict_end", true, "after the predict loop"},
    {"on_predict_epoch_start", true, "before the batches of the predict loop"},
    {"on_predict_epoch_end", true, "after the batches of the predict loop"},
    {"on_predict_batch_start", true, "before predict_step, with the columns of its batch"},
    {"on_predict_batch_end", true, "after predict_step, with the columns of its batch"},
    {"on_predict_model_eval", true, "before the predict loop: the model goes to evaluation"},
    {"on_predict_model_train", true, "after the predict loop: the model goes back to training"},
    {"predict_step", true, "for every predict batch; without it Lightning's own runs forward"},
    {"on_epoch_start", true, "before an epoch of training, validation or test, up to 1.7"},
    {"on_epoch_end", true, "after an epoch of training, validation or test, up to 1.7"},
    {"on_batch_start", true, "before a training batch, up to 1.7"},
    {"on_batch_end", true, "after a training batch, up to 1.7"},
    {"on_exception", true, "on the rank that raised, before it ends"},
    {"on_save_checkpoint", true, "when a checkpoint is written"},
    {"on_load_checkpoint", true, "when a checkpoint is read"},
});

}  // namespace

std::span<const HookName> hook_names() { return known_hooks; }

const HookName* find_hook(std::string_view name) {
  const auto* const found = std::ranges::find(known_hooks, name, &HookName::name);
  return found == known_hooks.end() ? nullptr : found;
}

bool is_hook(std::string_view name) { return find_hook(name) != nullptr; }

bool is_called_hook(std::string_view name) {
  const HookName* const hook = find_hook(name);
  return hook != nullptr && hook->called;
}

bool is_step_hook(std::string_view name) {
  return name == "training_step" || name == "validation_step" || name == "test_step" ||
         name == "predict_step";
}

}  // namespace lockstep
