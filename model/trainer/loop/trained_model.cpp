#include "model/trainer/loop/trained_model.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/expression/evaluation_error.hpp"
#include "model/scenario/hooks.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/strategy/local_model/scaled_step.hpp"

namespace lockstep {

TrainedModel::TrainedModel(const TrainingContext& context, const HookRunner& hooks)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      hooks_(hooks) {}

void TrainedModel::begin() {
  is_set_up_ = true;
  bind_buffers();
}

// register_buffer: what the network holds under a name is `self.NAME`, on the device.
void TrainedModel::bind_buffers() {
  const Network& network = *program_.network;
  for (const Replica::Buffer& buffer : strategy_.replica().buffers()) {
    const Layer& layer = network.layers[buffer.layer];
    if (layer.kind == LayerKind::buffer) {
      const Ticket ready = rank_.event({compute_stream, {}, no_site});
      const std::vector<int64_t> shape(layer.buffers.front().shape.begin(),
                                       layer.buffers.front().shape.end());
      interpreter_.names().register_buffer(
          "self." + layer.name, interpreter_.tensors().borrow(buffer.value, shape, ready));
    }
  }
}

// A wrapper that has a no_sync is that of the whole model, and Lightning calls the step hooks
// through its forward (strategies/strategy.py of 2.x, strategies/fully_sharded_native.py of 1.x).
bool TrainedModel::is_in_wrapper_forward() const {
  return is_step_hook(hooks_.current()) && strategy_.accumulates_without_exchange();
}

namespace {

std::string remedy_for_shard(std::string_view gathers, bool has_statement, bool may_summon) {
  if (has_statement && !may_summon) {
    return "read it in a hook that is no step, such as on_train_batch_end, inside of "
           "summon_full_params, on all ranks; as a part of the loss the wrapped module has to "
           "compute it in its own forward, where it is whole (for a penalty use weight_decay)";
  }
  if (has_statement) {
    return "read it inside of summon_full_params, on all ranks";
  }
  const std::string leave_out =
      "leave it out here, or check it with a strategy that keeps it whole";
  return gathers.empty()
             ? leave_out
             : fmt::format(
                   "{}: a script gathers it by {} on all ranks, for which a scenario has no "
                   "statement",
                   leave_out, gathers);
}
}  // namespace

std::optional<Value> TrainedModel::parameter(std::string_view name) {
  if (!is_set_up_) {
    throw OperationError("parameters have no values before the trainer has set up the model",
                         "read them in a hook from on_fit_start on");
  }
  const std::vector<Slice> values = strategy_.replica().parameter_values();
  size_t index = 0;
  for (const Layer& layer : program_.network->layers) {
    for (const ParameterTensor& tensor : layer.parameters) {
      const size_t here = index++;
      const std::string& module = layer.module.empty() ? layer.name : layer.module;
      if (module + "." + tensor.name != name) {
        continue;
      }
      const Slice value = values[here];
      if (value.buffer == no_buffer || tensor.cut) {
        throw OperationError(
            "the parameter is sharded: no rank holds it whole between steps",
            remedy_for_shard(program_.gathers_parameters, strategy_.has_whole_parameters(),
                             !is_in_wrapper_forward()));
      }
      tell_changing_weights(name);
      Tensor read{{tensor.shape.begin(), tensor.shape.end()}, rank_.read(value)};
      if (read.values.empty() && value.elements > 0) {
        throw OperationError("parameters carry no values here: numerics are off",
                             "write verify: {numerics: true}, or train a smaller model");
      }
      return Value(std::move(read));
    }
  }
  return std::nullopt;
}

// The forward of the strategy's wrapper is all of training_step, what comes before `forward` in it
// as well.
void TrainedModel::tell_changing_weights(std::string_view name) {
  if (hooks_.current() == "training_step") {
    return;
  }
  if (const std::string why = strategy_.weights_change_beside(); !why.empty()) {
    log_.add({"LS203", interpreter_.site(),
              fmt::format("parameter `{}` is read while it may be written: {}", name, why),
              "read it behind `fit`, or take an algorithm that averages in step"});
  }
}

std::vector<KnownDifference> TrainedModel::known_differences(const std::optional<LossScale>& own,
                                                             int64_t micro_batches, int64_t steps) {
  if (!is_set_up_) {
    return {};
  }
  std::vector<KnownDifference> known = strategy_.known_differences();
  if (own) {
    for (KnownDifference& skipped :
         skipped_steps_of(*own,
                          "give MixedPrecision a GradScaler with a smaller init_scale, or use "
                          "bf16-mixed")) {
      known.push_back(std::move(skipped));
    }
  }
  const int64_t window = program_.trainer.accumulate_grad_batches;
  if (micro_batches == 0 || window == 1) {
    return known;
  }
  const bool feels_scale =
      std::ranges::any_of(program_.plan.optimizers, [](const OptimizerPlan& optimizer) {
        return optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::asgd;
      });
  known.push_back(
      {fmt::format("the loss of a micro-batch is divided by accumulate_grad_batches "
                   "twice, by Lightning and by the strategy's engine: gradients are "
                   "1/{} of what they should be",
                   window),
       std::string("accumulate by hand (automatic_optimization: false), where the "
                   "engine does not divide") +
           (feels_scale ? ", or use Adam, whose steps do not depend on the scale" : "")});
  if (steps * window != micro_batches) {
    known.push_back(
        {"the engine counts micro-batches over all epochs, and does not step at the "
         "end of one: what is left goes into the next",
         "let accumulate_grad_batches divide the batches of an epoch "
         "(limit_train_batches)"});
  }
  return known;
}

void TrainedModel::log_strategy() {
  log_.staleness = strategy_.staleness();
  if (log_.staleness) {
    log_.staleness->merge(staleness_left_out_);
  }
  log_.compression_error = strategy_.compression_error(rank_);
  log_.compiled_graphs = strategy_.compiled_graphs();
  log_.missing_loss = strategy_.missing_loss();
}

// What servers hold are parts of what every worker has whole.
void TrainedModel::log_parameters(bool runs_trainer) {
  const std::vector<HeldParameter> all = strategy_.held_parameters();
  if (runs_trainer) {
    const std::vector<Slice> whole = strategy_.replica().parameter_values();
    log_.holds_parts = program_.whole_network != nullptr || all.size() != whole.size() ||
                       std::ranges::any_of(all, [&whole](const HeldParameter& held) {
                         return held.value != whole[held.parameter];
                       });
  }
  if (runs_trainer) {
    log_.expert_loads = strategy_.replica().expert_loads();
  }
  if (!program_.keeps_parameters) {
    return;
  }
  log_.final_parameter_places.clear();  // of steps
  for (const HeldParameter& held : all) {
    log_.final_parameters.push_back(rank_.read(held.value));
    log_.final_parameter_places.push_back(held.value);
    if (log_.holds_parts || !runs_trainer) {
      log_.final_parts.push_back({held.parameter, held.first_element});
    }
  }
}

}  // namespace lockstep
