#include "model/network/optimizer/optimizer_rule.hpp"

#include "model/core/ensure.hpp"
#include "model/network/optimizer/optimizers.hpp"

namespace lockstep {

namespace {

/// What the class of one optimizer says.
template <class Optimizer>
class RuleOf final : public OptimizerRule {
 public:
  std::string_view name() const override { return Optimizer::name; }
  OptimizerSettings defaults() const override { return Optimizer::defaults(); }
  OptimizerArguments arguments() const override { return Optimizer::arguments; }
  std::span<const std::string_view> other_arguments() const override { return Optimizer::further; }
  MomentumArgument momentum() const override { return Optimizer::momentum; }
  std::vector<OptimizerState> state(const OptimizerSettings& settings,
                                    const Shape& parameter) const override {
    return Optimizer::state(settings, parameter);
  }
  int counters() const override { return Optimizer::counters; }
  int group_entries() const override { return Optimizer::group_entries; }
  UpdateTemporaries temporaries(const OptimizerSettings& settings) const override {
    return Optimizer::temporaries(settings);
  }
  bool is_elementwise() const override { return Optimizer::is_elementwise; }
  int further_passes() const override { return Optimizer::further_passes; }
  int gradient_operands(const OptimizerSettings& settings) const override {
    return Optimizer::gradient_operands(settings);
  }
  std::string_view error_of_distributed(size_t dimensions) const override {
    return Optimizer::error_of_distributed(dimensions);
  }
  Kernel kernel() const override {
    if constexpr (requires { Optimizer::own_kernel; }) {
      return Optimizer::own_kernel;
    } else {
      return Kernel::optimizer_step;
    }
  }
  std::vector<double> scalars(const OptimizerSettings& settings, const UpdateMoment& moment,
                              const Shape& parameter) const override {
    if constexpr (requires { Optimizer::own_kernel; }) {
      return Optimizer::scalars(settings, moment);
    } else {
      return scalars_of(settings, moment, parameter);
    }
  }
  std::array<double, 2> advance(const OptimizerSettings& settings, int64_t step,
                                std::array<double, 2>& kept) const override {
    return Optimizer::advance(settings, step, kept);
  }
};

template <class Optimizer>
const RuleOf<Optimizer> rule{};

}  // namespace

const OptimizerRule& rule_of(OptimizerKind kind) {
  const OptimizerRule* found = nullptr;
  const auto take = [&found]<class Optimizer>(Optimizer) { found = &rule<Optimizer>; };
  const bool is_known = visit_optimizer(OptimizersWithKernels{}, kind, take) ||
                        visit_optimizer(OptimizersOfOneKernel{}, kind, take);
  ensure(is_known, "an optimizer has its rule");
  return *found;
}

std::vector<const OptimizerRule*> optimizer_rules() {
  std::vector<const OptimizerRule*> rules;
  const auto take = [&rules]<class... Optimizers>(OptimizerClasses<Optimizers...>) {
    (rules.push_back(&rule<Optimizers>), ...);
  };
  take(OptimizersWithKernels{});
  take(OptimizersOfOneKernel{});
  return rules;
}

}  // namespace lockstep
