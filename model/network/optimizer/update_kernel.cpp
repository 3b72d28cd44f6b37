#include "model/network/optimizer/update_kernel.hpp"

#include <iterator>

#include "model/core/ensure.hpp"

namespace lockstep {

namespace {

using Settings = OptimizerSettings;

constexpr double Settings::*numbers_of_settings[] = {
    &Settings::lr,          &Settings::momentum,     &Settings::beta1,
    &Settings::beta2,       &Settings::eps,          &Settings::weight_decay,
    &Settings::dampening,   &Settings::forgetting,   &Settings::lr_decay,
    &Settings::eta_minus,   &Settings::eta_plus,     &Settings::least_step,
    &Settings::lambd,       &Settings::alpha,        &Settings::momentum_decay,
    &Settings::t0,          &Settings::beta2_decay,  &Settings::least_variance,
    &Settings::least_scale, &Settings::largest_step, &Settings::d,
    &Settings::clamp_value,
};
constexpr bool Settings::*truths_of_settings[] = {
    &Settings::nesterov, &Settings::maximize, &Settings::amsgrad, &Settings::decoupled_weight_decay,
    &Settings::centered, &Settings::is_fused, &Settings::debias,  &Settings::is_on_host};
constexpr size_t of_call = 8;  // kind, step, two numbers, rows, columns, shared norms, use

}  // namespace

std::vector<double> scalars_of(const OptimizerSettings& settings, const UpdateMoment& moment,
                               const Shape& parameter) {
  const size_t dimensions = parameter.size();
  const int64_t rows = dimensions > 1 ? parameter[dimensions - 2] : 1;
  const int64_t columns = dimensions > 0 ? parameter[dimensions - 1] : 1;
  std::vector<double> scalars = {static_cast<double>(settings.kind),
                                 static_cast<double>(moment.step),
                                 moment.numbers[0],
                                 moment.numbers[1],
                                 static_cast<double>(dimensions > 1 ? rows : 0),
                                 static_cast<double>(columns),
                                 0,
                                 0};
  for (const auto number : numbers_of_settings) {
    scalars.push_back(settings.*number);
  }
  for (const auto truth : truths_of_settings) {
    scalars.push_back(settings.*truth ? 1 : 0);
  }
  return scalars;
}

std::vector<double> scalars_of_part(const OptimizerSettings& settings, const UpdateMoment& moment,
                                    int64_t shared_norms, UpdateCall::Use use) {
  std::vector<double> scalars = scalars_of(settings, moment, {});
  scalars[of_call - 2] = static_cast<double>(shared_norms);
  scalars[of_call - 1] = static_cast<double>(use);
  return scalars;
}

UpdateCall update_call_from(std::span<const double> scalars) {
  ensure(scalars.size() == of_call + std::size(numbers_of_settings) + std::size(truths_of_settings),
         "a kernel has its scalars");
  UpdateCall call;
  call.settings.kind = static_cast<OptimizerKind>(static_cast<int>(scalars[0]));
  call.moment = {static_cast<int64_t>(scalars[1]), {scalars[2], scalars[3]}};
  call.rows = static_cast<int64_t>(scalars[4]);
  call.columns = static_cast<int64_t>(scalars[5]);
  call.shared_norms = static_cast<int64_t>(scalars[6]);
  call.use = static_cast<UpdateCall::Use>(static_cast<int>(scalars[7]));
  size_t next = of_call;
  for (const auto number : numbers_of_settings) {
    call.settings.*number = scalars[next++];
  }
  for (const auto truth : truths_of_settings) {
    call.settings.*truth = scalars[next++] != 0;
  }
  return call;
}

}  // namespace lockstep
