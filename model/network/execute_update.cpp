// The kernel optimizer_step in the reference arithmetic.
#include "model/network/execute_update.hpp"

#include <algorithm>
#include <cmath>

#include "model/network/arithmetic/numbers.hpp"
#include "model/network/optimizer/optimizers.hpp"
#include "model/network/optimizer/update_numbers.hpp"

namespace lockstep {

namespace {

double largest_number(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

std::vector<double> doubles_of(const Values& values) { return numbers_of<double>(values); }

bool adds_decay_to_gradient(OptimizerKind kind) {
  return kind != OptimizerKind::lion && kind != OptimizerKind::lamb &&
         kind != OptimizerKind::adafactor;
}

/// The gradient as the update takes it, before the update.
std::vector<double> decayed_gradient(const UpdateCall& call, const Values& gradient,
                                     const Values& parameter) {
  std::vector<double> numbers = doubles_of(gradient);
  const std::vector<double> weights = doubles_of(parameter);
  const double decay =
      call.settings.decoupled_weight_decay || !adds_decay_to_gradient(call.settings.kind)
          ? 0
          : call.settings.weight_decay;
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = (call.settings.maximize ? -numbers[i] : numbers[i]) + decay * weights[i];
  }
  return numbers;
}

// torch.finfo(dtype).eps
double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::fp64: return 0x1p-52;
    case DType::bf16: return 0x1p-7;
    case DType::fp16: return 0x1p-10;
    default: return 0x1p-23;
  }
}

template <class Optimizer, class T>
void update_in(const UpdateCall& call, const Values& gradient, std::vector<Values>& state,
               Values& parameter, SharedNorms* shared) {
  using Numbers = ReferenceNumbers<T>;
  Numbers weights(numbers_of<T>(parameter), epsilon_of(parameter.dtype()));
  Numbers direction(numbers_of<T>(gradient));
  std::vector<Numbers> kept;
  for (const Values& one : state) {
    kept.emplace_back(numbers_of<T>(one));
  }
  Optimizer::update(call.settings, call.moment,
                    Updated<Numbers>{weights, direction, kept, call.rows, call.columns, shared});
  for (size_t i = 0; i < state.size(); ++i) {
    store_numbers(kept[i].numbers(), state[i]);
  }
  store_numbers(weights.numbers(), parameter);
}

void note_sensitivity(const UpdateCall& call, const std::vector<double>& gradient,
                      const std::vector<double>& before, const std::vector<Values>& state,
                      UpdateSensitivity& sensitivity) {
  visit_optimizer(OptimizersOfOneKernel{}, call.settings.kind, [&]<class Optimizer>(Optimizer) {
    if constexpr (Optimizer::has_sensitivity) {
      std::vector<std::vector<double>> kept;
      for (const Values& one : state) {
        kept.push_back(doubles_of(one));
      }
      sensitivity.by_error.resize(gradient.size());
      sensitivity.largest_gradient =
          std::max(sensitivity.largest_gradient, largest_number(gradient));
      OptimizerSettings settings = call.settings;
      settings.lr = std::abs(settings.lr);  // schedulers may go below 0
      Optimizer::add_sensitivity(
          settings, call.moment,
          SensitivityOfStep{gradient, before, kept, sensitivity, call.rows, call.columns});
    }
  });
}

}  // namespace

void update_values(const UpdateCall& call, const Values& gradient, std::vector<Values>& state,
                   Values& parameter, UpdateSensitivity* sensitivity, SharedNorms* shared) {
  const std::vector<double> taken =
      sensitivity == nullptr ? std::vector<double>() : decayed_gradient(call, gradient, parameter);
  const std::vector<double> before =
      sensitivity == nullptr ? std::vector<double>() : doubles_of(parameter);
  with_accumulator({&gradient, &parameter}, [&]<class T>(T) {
    const bool is_known = visit_optimizer(
        OptimizersOfOneKernel{}, call.settings.kind, [&]<class Optimizer>(Optimizer) {
          update_in<Optimizer, T>(call, gradient, state, parameter, shared);
        });
    ensure(is_known, "the kernel optimizer_step knows this optimizer");
  });
  if (sensitivity != nullptr) {
    note_sensitivity(call, taken, before, state, *sensitivity);
  }
}

namespace {

std::vector<Values> load_values(std::span<const Slice> slices, Operands& operands) {
  std::vector<Values> values;
  for (const Slice& slice : slices) {
    values.push_back(operands.load(slice));
  }
  return values;
}

/// What the ranks have added up is the square of a norm.
SharedNorms norms_from(const std::vector<Values>& squares) {
  SharedNorms norms;
  for (const Values& square : squares) {
    norms.known.push_back(std::sqrt(square.number(0)));
  }
  return norms;
}

/// Reads the gradient, the norms that are known, the parameter and its state.
void measure_norm(const UpdateCall& call, const OpLists& lists, Operands& operands) {
  const auto known = static_cast<size_t>(call.shared_norms);
  const Values gradient = operands.load(lists.reads[0]);
  SharedNorms norms = norms_from(load_values(lists.reads.subspan(1, known), operands));
  Values parameter = operands.load(lists.reads[1 + known]);
  std::vector<Values> state = load_values(lists.reads.subspan(2 + known), operands);
  update_values(call, gradient, state, parameter, nullptr, &norms);
  Values square(lists.writes[0].dtype, 1);
  square.set(0, norms.own * norms.own);
  operands.store(lists.writes[0], square);
}

}  // namespace

void execute_update(const OpLists& lists, Operands& operands) {
  const Values gradient = operands.load(lists.reads[0]);
  if (gradient.empty()) {
    return;
  }
  const UpdateCall call = update_call_from(lists.scalars);
  if (call.use == UpdateCall::Use::measure) {
    measure_norm(call, lists, operands);
    return;
  }
  Values parameter = operands.load(lists.writes[0]);
  if (parameter.empty()) {
    return;
  }
  std::vector<Values> state = load_values(lists.writes.subspan(1), operands);
  SharedNorms norms;
  if (call.shared_norms > 0) {
    norms = norms_from(load_values(lists.reads.subspan(1), operands));
  }
  update_values(
      call, gradient, state, parameter,
      call.use == UpdateCall::Use::whole ? operands.sensitivity_of(lists.writes[0]) : nullptr,
      call.shared_norms > 0 ? &norms : nullptr);
  operands.store(lists.writes[0], parameter);
  for (size_t i = 0; i < state.size(); ++i) {
    operands.store(lists.writes[i + 1], state[i]);
  }
}

}  // namespace lockstep
