#include "tests/fleet/training_scenario.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "tests/property/generators.hpp"

namespace lockstep::test {

namespace {

/// Layers between an input of four numbers and an output of two.
struct LayersEntry {
  std::string_view name;
  std::string_view layers;
  std::string_view input = "[4]";
};
constexpr std::array<LayersEntry, 10> layers_entries{{
    {"linear", "{Linear: [4, 2]}"},
    {"relu",
     "{Linear: [4, H]}, ReLU, {Linear: {in_features: H, out_features: H, name: middle}}, "
     "{Linear: [H, 2]}"},
    {"gelu",
     "{Linear: [4, H]}, GELU, {Linear: {in_features: H, out_features: H, name: middle}}, "
     "{GELU: {approximate: tanh}}, {Linear: [H, 2]}"},
    {"layer norm",
     "{Linear: [4, H]}, {LayerNorm: H}, ReLU, "
     "{Linear: {in_features: H, out_features: H, name: middle}}, {Linear: [H, 2]}"},
    {"batch norm",
     "{Linear: [4, H]}, {BatchNorm1d: H}, ReLU, "
     "{Linear: {in_features: H, out_features: H, name: middle}}, {Linear: [H, 2]}"},
    {"embedding", "{Embedding: [16, H]}, Flatten, {Linear: [3 * H, 2]}", "[3]"},
    {"residual",
     "{Linear: [4, H]}, {Residual: {layers: [{LayerNorm: H}, {Linear: [H, H]}, GELU]}}, "
     "{Linear: {in_features: H, out_features: H, bias: false, name: middle}}, "
     "{Linear: [H, 2]}"},
    {"checkpointed",
     "{Linear: {in_features: 4, out_features: H, checkpoint: true}}, "
     "{GELU: {checkpoint: true}}, "
     "{Linear: {in_features: H, out_features: H, name: middle}}, {Linear: [H, 2]}"},
    {"checkpointed block",
     "{Linear: [4, H]}, {Sequential: {checkpoint: true, layers: [{BatchNorm1d: H}, ReLU, "
     "{Linear: [H, H]}]}}, {Linear: {in_features: H, out_features: H, name: middle}}, "
     "{Linear: [H, 2]}"},
    {"checkpointed by FairScale",
     "{Linear: [4, H]}, {Residual: {checkpoint: fairscale, layers: [{BatchNorm1d: H}, "
     "{Linear: [H, H]}, ReLU]}}, {Linear: {in_features: H, out_features: H, name: middle}}, "
     "{Linear: [H, 2]}"},
}};

constexpr int32_t sgd_optimizers = 3;  ///< that come first
constexpr std::array<std::string_view, 16> optimizers{
    "{SGD: {lr: 0.125}}",
    "{SGD: {lr: 0.0625, momentum: 0.5}}",
    "{SGD: {lr: 0.125, weight_decay: 0.25}}",
    "{Adam: {lr: 0.01}}",
    "{Adam: {lr: 0.01, weight_decay: 0.1, betas: [0.8, 0.9]}}",
    "{AdamW: {lr: 0.01, eps: 1e-6}}",
    "{SGD: {lr: 0.0625, momentum: 0.5, nesterov: true, weight_decay: 0.125}}",
    "{AdamW: {lr: 0.01, amsgrad: true}}",
    "{Adagrad: {lr: 0.05, lr_decay: 0.1}}",
    "{Adadelta: {lr: 0.5}}",
    "{Adamax: {lr: 0.01}}",
    "{NAdam: {lr: 0.01}}",
    "{RAdam: {lr: 0.01, betas: [0.5, 0.9]}}",
    "{RMSprop: {lr: 0.01, momentum: 0.5}}",
    "{ASGD: {lr: 0.05, t0: 1.0}}",
    "{Lion: {lr: 0.01, weight_decay: 0.1}}"};

constexpr std::array<std::string_view, 3> precisions{"32-true", "64-true", "bf16-true"};
// dp ended with 1.9, whose bf16 is mixed precision.
constexpr std::array<std::string_view, 3> precisions_of_dp{"32", "64", "32"};

struct HookEntry {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<HookEntry, 6> hooks{{
    {"none", ""},
    {"logs on every rank",
     "  training_step:\n"
     "    - forward\n    - log: {name: train_loss, value: loss, on_step: true, sync_dist: true}\n"},
    {"gathers at the end of a batch",
     "  on_train_batch_end:\n    - let: {mine: \"full(2, 1.0 * rank)\"}\n"
     "    - all_gather: {tensor: mine, as: all}\n    - item: sum(all)\n"},
    {"reduces its loss",
     "  training_step:\n    - forward\n    - let: {shown: loss}\n"
     "    - all_reduce: {tensor: shown, as: total}\n    - item: total\n"},
    {"decides together",
     "  on_train_batch_end:\n"
     "    - reduce_boolean_decision: {value: global_step > 1, as: late}\n"
     "    - if: late\n      then: [barrier]\n"},
    {"steps by hand",
     "  automatic_optimization: false\n  training_step:\n    - forward\n    - zero_grad\n"
     "    - backward\n    - optimizer_step\n"},
}};

constexpr std::array<std::string_view, 6> faults{
    "none", "exception", "lost_rank", "lost_message", "corrupted_value", "out_of_memory"};

int32_t draw(int32_t below) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int32_t>(0, below));
}

template <class Entries>
const auto& of(const Entries& entries, int32_t index) {
  return entries[static_cast<size_t>(index) % entries.size()];
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Several replicas of dp do not step by hand.
const HookEntry& hook_of(const TrainingScenario& scenario) {
  const HookEntry& drawn = of(hooks, scenario.hook);
  const bool replicas = scenario.training.strategy == Trained::dp && scenario.training.devices > 1;
  return replicas && drawn.name == "steps by hand" ? hooks.front() : drawn;
}

bool has_fault(const TrainingScenario& scenario) {
  return scenario.fault != 0 && scenario.training.ranks > 1 &&
         scenario.training.strategy == Trained::ddp;
}

TrainingFlaw flaw_of(const TrainingScenario& scenario) {
  const TrainingFlaw flaw = has_fault(scenario) ? TrainingFlaw::none : planted(scenario.training);
  const bool has_middle = layers_name(scenario) != "linear" && layers_name(scenario) != "embedding";
  return flaw == TrainingFlaw::skipped_layer && !has_middle ? TrainingFlaw::none : flaw;
}

std::string bool_text(bool value) { return value ? "true" : "false"; }

std::string strategy_text(const TrainingCase& training) {
  if (training.strategy == Trained::single || training.ranks * training.devices == 1) {
    return "auto";
  }
  if (training.strategy == Trained::dp) {
    return "dp";
  }
  const DataParallelOptions& ddp = training.options;
  std::string text = fmt::format(
      "{{DDPStrategy: {{find_unused_parameters: {}, static_graph: {}, gradient_as_bucket_view: {}, "
      "broadcast_buffers: {}, join: {}, divide_by_initial_world_size: {}",
      bool_text(ddp.find_unused_parameters), bool_text(ddp.static_graph),
      bool_text(ddp.gradient_as_bucket_view), bool_text(ddp.broadcast_buffers), bool_text(ddp.join),
      bool_text(ddp.divide_by_initial_world_size));
  if (ddp.bucket_cap) {
    text += fmt::format(", bucket_cap_mb: {:.9f}",
                        static_cast<double>(ddp.bucket_cap->count()) / (1 << 20));
  }
  return text + "}}";
}

std::string program_text(const TrainingScenario& scenario) {
  const int32_t last = scenario.training.ranks - 1;
  const std::string last_rank = fmt::format("rank == {}", last);
  switch (flaw_of(scenario)) {
    case TrainingFlaw::skipped_layer:
      return fmt::format(
          "program:\n  training_step:\n    - if: {}\n      then: [{{forward: {{skip: "
          "[middle]}}}}]\n      else: [forward]\n",
          last_rank);
    case TrainingFlaw::foreign_call:
      return "program:\n  training_step:\n    - forward\n    - if: rank == 0\n      then: "
             "[{all_reduce: {tensor: loss, as: total}}]\n";
    case TrainingFlaw::raised:
      return fmt::format(
          "program:\n  training_step:\n    - if: {} and batch_idx == 1\n      then: "
          "[{{raise: a planted exception}}]\n",
          last_rank);
    default: break;
  }
  const HookEntry& hook = hook_of(scenario);
  return hook.text.empty() ? "" : "program:\n" + std::string(hook.text);
}

std::string fault_text(const TrainingScenario& scenario) {
  if (!has_fault(scenario)) {
    return "";
  }
  const std::string_view name = of(faults, scenario.fault);
  const int32_t rank = scenario.fault_rank % scenario.training.ranks;
  std::string where = fmt::format("call: {}", scenario.fault_call);
  if (name == "exception" || name == "out_of_memory") {
    where = fmt::format("at: step {}", scenario.fault_call % 2);
  }
  if (name == "lost_rank") {
    where = fmt::format("call: {}", 1 + scenario.fault_call * 7);
  }
  return fmt::format("faults: [{{{}: {{rank: {}, {}}}}}]\n", name, rank, where);
}

std::string data_text(const TrainingScenario& scenario) {
  const TrainingCase& training = scenario.training;
  const int64_t batches = training.steps * training.accumulate;
  if (flaw_of(scenario) == TrainingFlaw::uneven_data) {
    return fmt::format("{{batches: {} + (rank == {}), batch_size: {}}}", batches,
                       training.ranks - 1, training.batch);
  }
  const int64_t devices = training.strategy == Trained::ddp ? training.ranks : 1;
  return fmt::format("{{samples: {}, batch_size: {}}}", batches * training.batch * devices,
                     training.batch);
}

}  // namespace

std::string layers_name(const TrainingScenario& scenario) {
  return std::string(of(layers_entries, scenario.layers).name);
}
std::string optimizer_name(const TrainingScenario& scenario) {
  // The gradient before a batch norm of few samples is all but 0, and Adam divides it by its size:
  // of such a step only rounding is left, in every world another.
  const bool has_batch_norm =
      of(layers_entries, scenario.layers).layers.find("BatchNorm") != std::string_view::npos;
  return std::string(
      of(optimizers, has_batch_norm ? scenario.optimizer % sgd_optimizers : scenario.optimizer));
}
std::string precision_name(const TrainingScenario& scenario) {
  const bool is_dp = scenario.training.strategy == Trained::dp;
  return std::string(of(is_dp ? precisions_of_dp : precisions, scenario.precision));
}
std::string hook_name(const TrainingScenario& scenario) {
  return flaw_of(scenario) == TrainingFlaw::none || flaw_of(scenario) == TrainingFlaw::uneven_data
             ? std::string(hook_of(scenario).name)
             : "none";
}
std::string defect_name(const TrainingScenario& scenario) {
  return has_fault(scenario)
             ? "fault " + std::string(of(faults, scenario.fault))
             : std::string(training_flaw_names[static_cast<size_t>(flaw_of(scenario))]);
}

std::string scenario_text(const TrainingScenario& scenario) {
  const TrainingCase& training = scenario.training;
  const LayersEntry& entry = of(layers_entries, scenario.layers);
  const std::string hidden = std::to_string(training.hidden);
  std::string layers =
      replaced(std::string(entry.layers), "3 * H", std::to_string(3 * training.hidden));
  layers = replaced(std::move(layers), "H]", hidden + "]");
  layers = replaced(std::move(layers), "H,", hidden + ",");
  layers = replaced(std::move(layers), "H}", hidden + "}");
  layers = replaced(std::move(layers), "[H", "[" + hidden);
  const int32_t devices = training.strategy == Trained::single ? 1
                          : training.strategy == Trained::dp   ? training.devices
                                                               : training.ranks;
  // Lightning accumulates gradients in automatic optimization alone.
  const bool by_hand = hook_name(scenario) == "steps by hand";
  return fmt::format(
      "version: 1\nseed_everything: {}\ncluster: {{preset: dgx-a100, nodes: 1}}\n"
      "model: {{layers: [{}], input: {}, loss: {}}}\noptimizer: {}\n"
      "trainer: {{accelerator: gpu, devices: {}, strategy: {}, max_epochs: 1, precision: {}, "
      "num_sanity_val_steps: 0, limit_val_batches: {}{}}}\ndata: {{train: {}, val: {{samples: {}, "
      "batch_size: {}}}}}\n{}{}",
      scenario.seed, layers, entry.input, scenario.layers % 2 == 0 ? "MSELoss" : "CrossEntropyLoss",
      optimizer_name(scenario), devices, strategy_text(training), precision_name(scenario),
      scenario.validates ? 1 : 0,
      by_hand || training.accumulate == 1
          ? ""
          : fmt::format(", accumulate_grad_batches: {}", training.accumulate),
      data_text(scenario), training.batch * training.ranks, training.batch, program_text(scenario),
      fault_text(scenario));
}

rc::Gen<TrainingScenario> training_scenarios() {
  return rc::gen::exec([] {
    TrainingScenario scenario;
    scenario.training = *training_cases();
    scenario.layers = draw(static_cast<int32_t>(layers_entries.size()));
    scenario.optimizer = draw(static_cast<int32_t>(optimizers.size()));
    scenario.precision = *rc::gen::weightedElement<int32_t>({{6, 0}, {2, 1}, {2, 2}});
    scenario.hook = draw(static_cast<int32_t>(hooks.size()));
    scenario.fault = draw(3) == 0 ? 1 + draw(static_cast<int32_t>(faults.size()) - 1) : 0;
    scenario.fault_rank = draw(4);
    scenario.fault_call = 1 + draw(6);
    scenario.validates = draw(4) == 0;
    scenario.seed = draw(1000);
    return scenario;
  });
}

std::ostream& operator<<(std::ostream& out, const TrainingScenario& scenario) {
  return out << scenario_text(scenario);
}

}  // namespace lockstep::test
