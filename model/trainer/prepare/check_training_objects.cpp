// What the constructors of torch/optim and torch/optim/lr_scheduler.py raise, with torch's reason,
// whatever world runs the scenario.
#include <limits>
#include <optional>
#include <vector>

#include "model/trainer/prepare/object_refusal.hpp"
#include "model/trainer/prepare/scheduler_arguments.hpp"

namespace lockstep {

namespace {

constexpr double beyond_all = std::numeric_limits<double>::infinity();

// ---- torch.optim ----

void check_betas(const Refuser& optimizer) {
  const PlainValue* const value = optimizer.object().find("betas");
  const auto* const betas = value == nullptr ? nullptr : value->get_if<PlainValue::List>();
  for (size_t i = 0; betas != nullptr && i < betas->size(); ++i) {
    const std::optional<double> beta = (*betas)[i].number();
    if (beta && !(*beta >= 0 && *beta < 1)) {
      const bool is_whole = (*betas)[i].get_if<int64_t>() != nullptr;
      optimizer.refuse("betas", fmt::format("Invalid beta parameter at index {}: {}", i,
                                            python_text(*beta, is_whole)));
    }
  }
}

void check_adafactor(const Refuser& optimizer) {
  const PlainValue* const eps = optimizer.object().find("eps");
  const auto* const both = eps == nullptr ? nullptr : eps->get_if<PlainValue::List>();
  for (size_t i = 0; both != nullptr && i < both->size(); ++i) {
    const std::optional<double> value = (*both)[i].number();
    if (value && !(*value >= 0)) {
      const bool is_whole = (*both)[i].get_if<int64_t>() != nullptr;
      optimizer.refuse("eps", fmt::format("epsilon{} should be >= 0 but is: {}", i + 1,
                                          python_text(*value, is_whole)));
    }
  }
  optimizer.check("lr", 0, beyond_all, "Learning rate should be >= 0 but is: ");
  optimizer.check("d", 1, beyond_all, "Clipping threshold d should be >= 1 but is: ");
  optimizer.check("weight_decay", 0, beyond_all, "weight_decay should be >= 0 but is: ");
  if (optimizer.has("beta2_decay") && !(optimizer.number("beta2_decay", 0) <= 0)) {
    optimizer.refuse("beta2_decay", fmt::format("beta2_decay should be <= 0 but is: {}",
                                                optimizer.written("beta2_decay")));
  }
}

void check_etas(const Refuser& optimizer) {
  const PlainValue* const value = optimizer.object().find("etas");
  const auto* const etas = value == nullptr ? nullptr : value->get_if<PlainValue::List>();
  if (etas == nullptr || etas->size() != 2 || !(*etas)[0].number() || !(*etas)[1].number()) {
    return;
  }
  const double minus = *(*etas)[0].number();
  const double plus = *(*etas)[1].number();
  if (!(minus > 0 && minus < 1 && plus > 1)) {
    const auto written = [&](size_t i, double eta) {
      return python_text(eta, (*etas)[i].get_if<int64_t>() != nullptr);
    };
    optimizer.refuse(
        "etas", fmt::format("Invalid eta values: {}, {}", written(0, minus), written(1, plus)));
  }
}

// lion_pytorch/lion_pytorch.py asserts.
void check_lion(const Refuser& optimizer) {
  if (optimizer.has("lr") && !(optimizer.number("lr", 1) > 0)) {
    optimizer.refuse("lr", "AssertionError: lr > 0.");
  }
  check_betas(optimizer);
}

}  // namespace

void check_optimizer(Preparation& preparation, const Object& object) {
  const Refuser optimizer(preparation, object, "write a value that torch accepts");
  if (object.name == "Lion") {
    check_lion(optimizer);
    return;
  }
  if (object.name == "Adafactor") {
    check_adafactor(optimizer);
    return;
  }
  optimizer.check("lr", 0, beyond_all, "Invalid learning rate: ");
  optimizer.check("eps", 0, beyond_all, "Invalid epsilon value: ");
  check_betas(optimizer);
  constexpr std::string_view at_least_0[] = {"momentum",       "weight_decay",
                                             "lr_decay",       "initial_accumulator_value",
                                             "momentum_decay", "alpha"};
  check_etas(optimizer);
  for (const std::string_view name : at_least_0) {
    if (name == "alpha" && object.name == "ASGD") {
      continue;  // of which torch checks neither sign nor size
    }
    optimizer.check(name, 0, beyond_all, fmt::format("Invalid {} value: ", name));
  }
  if (optimizer.has("rho") &&
      !(optimizer.number("rho", 0) >= 0 && optimizer.number("rho", 0) <= 1)) {
    optimizer.refuse("rho", fmt::format("Invalid rho value: {}", optimizer.written("rho")));
  }
  if (optimizer.boolean("nesterov") &&
      (optimizer.number("momentum", 0) <= 0 || optimizer.number("dampening", 0) != 0)) {
    optimizer.refuse("nesterov", "Nesterov momentum requires a momentum and zero dampening",
                     "write momentum: 0.9 beside it, and no dampening");
  }
}

namespace {

// ---- torch.optim.lr_scheduler: what prepare_schedulers does not check ----

void check_one_cycle(const Refuser& scheduler) {
  const bool has_epochs = scheduler.has("epochs") && scheduler.has("steps_per_epoch");
  if (!scheduler.has("total_steps") && !has_epochs) {
    scheduler.refuse("total_steps",
                     "You must define either total_steps OR (epochs AND steps_per_epoch)");
  }
  for (const std::string_view name : {"total_steps", "epochs", "steps_per_epoch"}) {
    scheduler.check(name, 1, beyond_all,
                    fmt::format("Expected positive integer {}, but got ", name));
  }
  const double part = scheduler.number("pct_start", 0.3);
  if (!(part >= 0 && part <= 1)) {
    scheduler.refuse("pct_start",
                     fmt::format("Expected float between 0 and 1 pct_start, but got {}",
                                 scheduler.written("pct_start")));
  }
  const std::string anneal = scheduler.text("anneal_strategy", "cos");
  if (anneal != "cos" && anneal != "linear") {
    scheduler.refuse(
        "anneal_strategy",
        fmt::format("anneal_strategy must be one of 'cos' or 'linear', instead got {}", anneal));
  }
}

}  // namespace

void check_scheduler(Preparation& preparation, const Object& object) {
  const Refuser scheduler(preparation, object, "write a value that torch accepts");
  for (const Object& held : held_schedulers(object)) {
    check_scheduler(preparation, held);
  }
  if (object.name == "ConstantLR" && scheduler.number("factor", 0) < 0) {
    scheduler.refuse("factor", "Constant multiplicative factor expected to be between 0 and 1.");
  }
  const double end = scheduler.number("end_factor", 1);
  if (object.name == "LinearLR" && !(end >= 0 && end <= 1)) {
    scheduler.refuse("end_factor", "Ending multiplicative factor expected to be between 0 and 1.");
  }
  if (object.name == "CosineAnnealingWarmRestarts") {
    scheduler.check("T_mult", 1, beyond_all, "Expected integer T_mult >= 1, but got ");
  }
  if (object.name == "OneCycleLR") {
    check_one_cycle(scheduler);
  }
  const std::string mode = scheduler.text("mode", "triangular");
  if (object.name == "CyclicLR" && mode != "triangular" && mode != "triangular2" &&
      mode != "exp_range") {
    scheduler.refuse("mode", "mode is invalid and scale_fn is None");
  }
}

}  // namespace lockstep
