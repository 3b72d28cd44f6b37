#include "model/trainer/framework/precision_choice.hpp"
#include "model/trainer/framework/lightning_versions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace lockstep {

namespace {

constexpr int volta = 70;
constexpr int ampere = 80;
constexpr int ada = 89;

struct PrecisionRow {
  std::string_view name;
  DType parameters;
  DType activations;
};

constexpr auto precisions = std::to_array<PrecisionRow>({
    {"32-true", DType::fp32, DType::fp32},
    {"64-true", DType::fp64, DType::fp64},
    {"16-true", DType::fp16, DType::fp16},
    {"bf16-true", DType::bf16, DType::bf16},
    {"16-mixed", DType::fp32, DType::fp16},
    {"bf16-mixed", DType::fp32, DType::bf16},
    {"transformer-engine", DType::bf16, DType::bf16},
    {"transformer-engine-float16", DType::fp16, DType::fp16},
});

/// The names of 1.x, which 2.x still takes: 16 and bf16 are mixed.
struct RenamedPrecision {
  std::string_view before_2_0;
  std::string_view name;
};
constexpr auto renamed = std::to_array<RenamedPrecision>({
    {"16", "16-mixed"},
    {"bf16", "bf16-mixed"},
    {"32", "32-true"},
    {"64", "64-true"},
});

std::string_view unified(std::string_view asked) {
  const auto* const row = std::ranges::find(renamed, asked, &RenamedPrecision::before_2_0);
  return row == renamed.end() ? asked : row->name;
}

/// Null: all of them.
const std::vector<std::string_view>* names_of(Precisions set) {
  static const std::vector<std::string_view> no_double = {"32-true", "16-true", "bf16-true",
                                                          "16-mixed", "bf16-mixed"};
  static const std::vector<std::string_view> no_scaler = {"32-true", "16-true", "bf16-true",
                                                          "bf16-mixed"};
  switch (set) {
    case Precisions::no_double: return &no_double;
    case Precisions::no_double_nor_scaler: return &no_scaler;
    case Precisions::all: return nullptr;
  }
  return nullptr;
}

std::string refusal_by_strategy(std::string_view precision, const PrecisionSituation& situation) {
  const std::string& strategy = situation.strategy;
  if (situation.apex && precision == "bf16-mixed") {
    return "bf16 with `amp_backend: apex` is not supported";
  }
  if (situation.apex && precision == "16-mixed" && !situation.traits.takes_apex) {
    return fmt::format("{} does not support `amp_backend: apex`", strategy);
  }
  const std::vector<std::string_view>* legal = names_of(situation.traits.precisions);
  if (legal != nullptr && std::find(legal->begin(), legal->end(), precision) == legal->end()) {
    return fmt::format("{} does not support precision {}; it takes {}", strategy, precision,
                       fmt::join(*legal, ", "));
  }
  return "";
}

// accelerator_connector.py and plugins/precision/tpu.py of 1.4 to 2.0, plugins/precision/xla.py
// from 2.1 on. XLA_USE_BF16 makes every tensor of torch.float one of bf16 on the device.
void hold_against_xla(std::string_view asked, const PrecisionSituation& situation,
                      PrecisionChoice& choice) {
  const bool by_one_plugin = situation.lightning >= v2_1;
  const bool is_mixed = choice.name.ends_with("-mixed");
  const bool is_taken =
      choice.name == "32-true" ||
      (by_one_plugin ? choice.name == "16-true" || choice.name == "bf16-true" : is_mixed);
  if (!is_taken) {
    choice.refusal =
        by_one_plugin
            ? fmt::format(
                  "`precision='{}')` is not supported in XLA. `precision` must be one of: "
                  "('32-true', '16-true', 'bf16-true')",
                  choice.name)
            : fmt::format("`Trainer(accelerator='tpu', precision='{}')` is not implemented", asked);
    choice.remedy = by_one_plugin ? "use precision: bf16-true" : "use precision: bf16";
    return;
  }
  if (choice.name == "16-mixed") {
    choice.warning =
        "16-bit autocast is not supported on TPUs: Lightning takes bf16 instead of fp16";
    choice.name = "bf16-mixed";
  }
  if (is_mixed) {
    choice.parameters = choice.activations = DType::bf16;
    choice.note = "XLA_USE_BF16 makes parameters, gradients and optimizer state bf16, too";
  }
}

// torch/backends/mps: Metal has no type of 64 bits, and MixedPrecision asks for CUDA's autocast.
void hold_against_metal(PrecisionChoice& choice) {
  if (choice.name == "64-true") {
    choice.refusal =
        "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't "
        "support float64";
    choice.remedy = "use precision: 32";
  } else if (choice.name.ends_with("-mixed")) {
    choice.warning =
        "mixed precision is autocast of CUDA, which torch disables without CUDA: MPS computes in "
        "fp32";
    choice.name = "32-true";
    choice.activations = DType::fp32;
  } else if (choice.name.starts_with("transformer-engine")) {
    choice.refusal = "Transformer Engine computes on GPUs of CUDA only";
    choice.remedy = "use precision: 32";
  }
}

void hold_against_hardware(const PrecisionSituation& situation, PrecisionChoice& choice) {
  const int capability = situation.compute_capability;
  const bool known = !situation.cpu && capability > 0;
  if (choice.activations == DType::bf16 && known && capability < ampere) {
    // From 2.4 on torch.cuda.is_bf16_supported counts emulation, and autocast asks it.
    if (choice.name == "bf16-mixed" && situation.torch < Version{2, 4, 0}) {
      choice.refusal = "Current CUDA Device does not support bfloat16: it came with Ampere";
      choice.remedy = "use precision: 16-mixed";
    } else {
      choice.warning = "bf16 came with Ampere: this GPU computes it through fp32, without speed-up";
    }
  }
  if (choice.activations == DType::fp16 && known && capability < volta) {
    choice.warning = "fp16 runs without tensor cores before Volta: less memory, no speed-up";
  }
  if (choice.name.starts_with("transformer-engine")) {
    if (situation.cpu || (known && capability < ada)) {
      choice.refusal = situation.cpu
                           ? "Transformer Engine computes on GPUs only"
                           : "Device compute capability 8.9 or higher required for FP8 execution";
      choice.remedy = "use precision: bf16-mixed";
    } else {
      choice.note = "FP8 is not modelled: times and memory are those of 16 bits";
    }
  }
}

// MixedPrecision makes a GradScaler for 16-mixed alone; strategies that divide gradients have a
// ShardedGradScaler in its place.
void choose_scaler(const PrecisionSituation& situation, PrecisionChoice& choice) {
  if (choice.name != "16-mixed" || situation.cpu) {
    return;
  }
  switch (situation.traits.loss_scaling) {
    case LossScaling::of_trainer: choice.scales_loss = true; return;
    case LossScaling::of_strategy: return;
    case LossScaling::not_modelled:
      choice.note = fmt::format("GradScaler (unscaling and inf check) is not modelled under {}",
                                situation.strategy);
  }
}

}  // namespace

std::string_view precision_before_2_0(std::string_view asked) {
  const auto* const row = std::ranges::find(renamed, asked, &RenamedPrecision::name);
  return row == renamed.end() ? std::string_view() : row->before_2_0;
}

std::vector<std::string_view> precision_spellings() {
  std::vector<std::string_view> spellings;
  for (const PrecisionRow& row : precisions) {
    spellings.push_back(row.name);
  }
  for (const RenamedPrecision& row : renamed) {
    spellings.push_back(row.before_2_0);
  }
  return spellings;
}

PrecisionChoice choose_precision(std::string_view asked, const PrecisionSituation& situation) {
  PrecisionChoice choice;
  const std::string_view name = unified(asked);
  const auto* row = std::find_if(precisions.begin(), precisions.end(),
                                 [name](const PrecisionRow& each) { return each.name == name; });
  if (row == precisions.end()) {
    choice.refusal = fmt::format("no version of Lightning has the precision `{}`", asked);
    choice.remedy = "use 32-true, 16-mixed or bf16-mixed";
    return choice;
  }
  if (situation.lightning < v2_0 && name == asked) {
    choice.refusal = fmt::format("the precision `{}` came with Lightning 2.0", asked);
    choice.remedy = "1.x has 16, bf16, 32 and 64";
    return choice;
  }
  choice.name = name;
  choice.parameters = row->parameters;
  choice.activations = row->activations;
  choice.refusal = refusal_by_strategy(name, situation);
  if (!choice.refusal.empty()) {
    return choice;
  }
  if (!situation.cpu && situation.device == DeviceType::tpu) {
    hold_against_xla(asked, situation, choice);
    return choice;
  }
  if (!situation.cpu && situation.device == DeviceType::mps) {
    hold_against_metal(choice);
    return choice;
  }
  if (name == "16-mixed" && situation.cpu) {
    choice.name = "bf16-mixed";
    choice.activations = DType::bf16;
    choice.warning = "fp16 has no autocast on CPU: Lightning takes bf16-mixed instead";
  }
  if (situation.traits.drives_all_devices() && choice.activations != choice.parameters) {
    choice.note =
        fmt::format("Lightning's documentation keeps {} to 32 bit; its code does not check",
                    situation.strategy);
  }
  hold_against_hardware(situation, choice);
  choose_scaler(situation, choice);
  return choice;
}

}  // namespace lockstep
