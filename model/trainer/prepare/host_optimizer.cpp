// deepspeed/ops/adam and deepspeed/ops/lion, with the defaults of what they stand in for.
#include "model/trainer/prepare/host_optimizer.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace lockstep {

namespace {

struct HostClass {
  std::string_view name;
  std::string_view on_host;
  std::optional<bool> decouples{};  ///< Adam: as `adamw_mode` says
  double weight_decay = 0;          ///< by default
  bool is_of_lion_pytorch = false;  ///< whose defaults are others
};

constexpr auto host_classes = std::to_array<HostClass>({
    {"Adam", "DeepSpeedCPUAdam", false},
    {"AdamW", "DeepSpeedCPUAdam", true, 0.01},
    {"FusedAdam", "DeepSpeedCPUAdam"},
    {"DeepSpeedCPUAdam", "DeepSpeedCPUAdam"},
    {"Lion", "DeepSpeedCPULion", {}, 0, true},
    {"FusedLion", "DeepSpeedCPULion"},
    {"DeepSpeedCPULion", "DeepSpeedCPULion"},
});

// What torch's class takes and DeepSpeed's has no place for: how its kernels work.
constexpr std::array<std::string_view, 6> left_out = {
    "foreach", "fused", "capturable", "differentiable", "set_grad_none", "use_triton"};
constexpr std::array<std::string_view, 3> other_updates = {"amsgrad", "maximize",
                                                           "decoupled_weight_decay"};

bool is_true(const PlainValue& value) {
  const bool* truth = value.get_if<bool>();
  return truth != nullptr && *truth;
}

void add_default(Object& optimizer, const char* name, PlainValue value) {
  if (optimizer.find(name) == nullptr) {
    value.place = optimizer.place;
    optimizer.arguments.push_back({name, std::move(value), optimizer.place});
  }
}

}  // namespace

std::optional<Object> host_optimizer(const Object& optimizer) {
  const auto* const row = std::ranges::find(host_classes, optimizer.name, &HostClass::name);
  if (row == host_classes.end()) {
    return std::nullopt;
  }
  Object made{std::string(row->on_host), {}, optimizer.place};
  for (const ObjectArgument& argument : optimizer.arguments) {
    const bool changes = std::ranges::count(other_updates, argument.name) != 0;
    if (changes && is_true(argument.value)) {
      return std::nullopt;
    }
    if (!changes && std::ranges::count(left_out, argument.name) == 0) {
      made.arguments.push_back(argument);
      std::string& name = made.arguments.back().name;
      name = name == "adam_w_mode" ? "adamw_mode" : name;
    }
  }
  if (row->decouples == false) {
    add_default(made, "adamw_mode", {false});
  }
  if (row->weight_decay > 0) {
    add_default(made, "weight_decay", {row->weight_decay});
  }
  if (row->is_of_lion_pytorch) {
    add_default(made, "lr", {1e-4});
    add_default(made, "betas", {PlainValue::List{{0.9}, {0.99}}});
  }
  return made;
}

}  // namespace lockstep
