#include "model/trainer/logging/logging.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/expression/evaluation_error.hpp"

namespace lockstep {

Reduction reduction_of(LogReduction reduction) {
  switch (reduction) {
    case LogReduction::mean: return Reduction::avg;
    case LogReduction::sum: return Reduction::sum;
    case LogReduction::min: return Reduction::min;
    case LogReduction::max: return Reduction::max;
  }
  return Reduction::sum;
}

std::string_view name_of(LogReduction reduction) {
  switch (reduction) {
    case LogReduction::mean: return "mean";
    case LogReduction::sum: return "sum";
    case LogReduction::min: return "min";
    case LogReduction::max: return "max";
  }
  return "";
}

LogRules log_rules(std::string_view hook) {
  constexpr std::string_view by_steps[] = {
      "training_step",       "training_step_end",           "on_train_batch_start",
      "on_train_batch_end",  "on_before_zero_grad",         "on_before_backward",
      "on_after_backward",   "on_before_optimizer_step",    "optimizer_step",
      "optimizer_zero_grad", "configure_gradient_clipping", "on_batch_start",
      "on_batch_end"};
  constexpr std::string_view by_either[] = {
      "validation_step",     "validation_step_end",       "test_step",
      "test_step_end",       "on_validation_batch_start", "on_validation_batch_end",
      "on_test_batch_start", "on_test_batch_end"};
  constexpr std::string_view by_epochs[] = {
      "on_train_start",          "on_validation_start",  "on_test_start",
      "on_train_epoch_start",    "on_train_epoch_end",   "on_validation_epoch_start",
      "on_validation_epoch_end", "on_test_epoch_start",  "on_test_epoch_end",
      "training_epoch_end",      "validation_epoch_end", "test_epoch_end",
      "on_epoch_start",          "on_epoch_end"};
  const auto is_in = [hook](const auto& hooks) { return std::ranges::count(hooks, hook) > 0; };
  if (is_in(by_steps)) {
    return {true, false, true, false};
  }
  if (is_in(by_either)) {
    return {true, false, false, true};
  }
  return {is_in(by_epochs), true, false, true};
}

LoggedResults::Result& LoggedResults::result_of(const LogCall& call) {
  const auto known = std::find_if(results_.begin(), results_.end(), [&](const Result& result) {
    return result.call.key() == call.key() && result.call.hook == call.hook;
  });
  if (known != results_.end() && known->in_use) {
    const LogCall& before = known->call;
    if (before.on_step != call.on_step || before.on_epoch != call.on_epoch ||
        before.reduction != call.reduction || before.to_logger != call.to_logger ||
        before.to_progress_bar != call.to_progress_bar || before.sync != call.sync ||
        known->loader != loader_) {
      throw ProgramException(call.site,
                             fmt::format("You called `self.log({}, ...)` twice in `{}` with "
                                         "different arguments. This is not allowed",
                                         call.name, call.hook));
    }
    known->is_reduced = false;
    return *known;
  }
  Result result;
  result.call = call;
  result.loader = loader_;
  if (known != results_.end()) {
    *known = std::move(result);
    return *known;
  }
  results_.push_back(std::move(result));
  return results_.back();
}

Program LoggedResults::log(const LogCall& call) {
  if (call.metric != nullptr) {
    result_of(call);
    co_return;
  }
  TensorPointer step_value = call.value;
  if (call.on_step && call.sync) {
    const double own = co_await read(call.value, call.site);
    const DType dtype = call.value->slice.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
    const double common =
        co_await synchronised(own, dtype, reduction_of(call.reduction), call.site);
    step_value = interpreter_.expressions().tensor_from(Value(common));
  }
  Result& result = result_of(call);
  if (call.on_step) {
    result.step_value = step_value;
  }
  if (!call.on_epoch) {
    co_return;
  }
  // Lightning adds on the device, and keeps no tensor of earlier batches. Values that the host
  // wrote need no reading; with numerics tensors hold the device's.
  if (program_.repetition.logs && call.value->has_value_of_host()) {
    const double value = number_of(interpreter_, *call.value, call.site);
    log_known(static_cast<size_t>(&result - results_.data()), value, call.batch_size);
    result.follows[call.value->ready_on] = call.value->ready;
  } else {
    result.of_epoch.push_back({0, call.batch_size, call.value});
  }
}

Task<double> LoggedResults::read(TensorPointer tensor, SiteId site) {
  if (tensor->ready) {
    co_await interpreter_.streams().settle(tensor->ready, tensor->ready_on);
  }
  co_return number_of(interpreter_, *tensor, site);
}

double LoggedResults::number_of(Interpreter& interpreter, const DeviceTensor& tensor, SiteId site) {
  const Values values = interpreter.rank().read(tensor.slice);
  if (values.size() != 1) {
    throw ProgramException(site, "self.log wants one number; reduce the value first: mean(x)");
  }
  return values.number(0);
}

// Lightning's strategy.reduce; a mean of versions before 2.0 summed and divided out of place.
Task<double> LoggedResults::synchronised(double value, DType dtype, Reduction reduction,
                                         SiteId site) {
  const bool divides = reduction == Reduction::avg && program_.trainer.lightning < Version{2, 0, 0};
  const TensorPointer data = interpreter_.tensors().make(dtype, {});
  interpreter_.rank().write(data->slice, Values::of(dtype, {value}));
  interpreter_.streams().hand_over_compute();
  co_await strategy_.reduce(interpreter_.rank(), data->slice, divides ? Reduction::sum : reduction,
                            site);
  const double common = interpreter_.rank().read(data->slice).number(0);
  co_return divides ? common / trainers_ : common;
}

double LoggedResults::single_number(const Result& result, const Value& value) const {
  if (!value.is(Value::Kind::tensor)) {
    const std::string message = fmt::format(
        "The `.compute()` return of the metric logged as '{}' must be a tensor. Found {}",
        result.call.key(), type_of(value));
    interpreter_.log().add(
        {"evaluation", result.call.site, message,
         "a curve cannot be logged: log an area under it (BinaryAUROC), or bind the value by "
         "`compute` and log one number of it"});
    throw ProgramException(result.call.site, message);
  }
  if (value.tensor().values.size() != 1) {
    throw ProgramException(result.call.site,
                           fmt::format("The metric `{}` does not contain a single element, thus it "
                                       "cannot be converted to a scalar",
                                       result.call.key()));
  }
  return value.tensor().values.number(0);
}

Task<double> LoggedResults::computed(Result& result) {
  try {
    const Value value = co_await result.call.metric->compute(exchange_.where_distributed(),
                                                             result.call.state_sites);
    co_return single_number(result, value);
  } catch (const OperationError& error) {
    interpreter_.log().add({"evaluation", result.call.site, error.what(), error.remedy()});
    throw ProgramException(result.call.site, error.what());
  }
}

// The mean is sync(S) / sync(C). From 2.0 on C is an int64 that is averaged, so that its fraction
// is lost (lightning issues 21838 and 21859): the value is too large by (C / W) / floor(C / W).
Task<double> LoggedResults::reduced(Result& result) {
  const LogReduction reduction = result.call.reduction;
  if (!result.call.sync) {
    const double count = static_cast<double>(std::max<int64_t>(result.batch_sizes, 1));
    co_return reduction == LogReduction::mean ? result.accumulated / count : result.accumulated;
  }
  const double value = co_await synchronised(result.accumulated, DType::fp32,
                                             reduction_of(reduction), result.call.epoch_site);
  if (reduction != LogReduction::mean) {
    co_return value;
  }
  const double count = co_await synchronised(static_cast<double>(result.batch_sizes), DType::int64,
                                             Reduction::avg, result.call.epoch_site);
  result.common_batch_sizes = static_cast<int64_t>(count);
  co_return value / count;
}

// For whoever asks afterwards whether the value is that of all samples.
void LoggedResults::remember(const Result& result, double value) {
  const LogCall& call = result.call;
  const bool is_mean = call.reduction == LogReduction::mean && call.metric == nullptr;
  const bool divides_in_float = program_.trainer.lightning < Version{2, 0, 0};
  LoggedKey logged;
  logged.key = call.key();
  logged.site = call.site;
  logged.hook = call.hook;
  logged.is_object = call.metric != nullptr;
  logged.synchronised = call.sync;
  logged.rank_zero_only = call.rank_zero_only;
  logged.of_last_batch = !call.on_epoch;
  logged.is_out_of_reach = call.value && call.value->device == host_device &&
                           !interpreter_.settings().gloo &&
                           program_.trainer.lightning >= Version{2, 1, 0};
  logged.reduce_fx = call.metric == nullptr ? name_of(call.reduction) : std::string_view();
  logged.value = value;
  if (logged.of_last_batch) {
    logged.own = value;
    logged.batches = 1;
    interpreter_.log().remember(logged);
    return;
  }
  logged.own =
      is_mean ? result.accumulated / static_cast<double>(std::max<int64_t>(result.batch_sizes, 1))
              : result.accumulated;
  logged.batch_sizes = result.batch_sizes;
  logged.common_batch_sizes = divides_in_float ? 0 : result.common_batch_sizes;
  logged.batches = result.batches;
  interpreter_.log().remember(logged);
}

void LoggedResults::begin_batch(int64_t loader) {
  loader_ = loader;
  in_batches_ = true;
}

Program LoggedResults::refresh() {
  co_await publish_steps();
  if (!in_batches_) {
    co_await reduce_epoch(true);
  }
}

bool LoggedResults::has_step_value(const Result& result) const {
  const MetricObject* const metric = result.call.metric;
  const bool has_batch_value = metric != nullptr && result.call.on_step && metric->batch_value();
  return (result.step_value || has_batch_value) && is_visible(result);
}

Task<double> LoggedResults::step_value(size_t index) {
  const Result& result = results_[index];
  if (result.step_value) {
    co_return co_await read(result.step_value, result.call.site);
  }
  co_return single_number(result, *result.call.metric->batch_value());
}

Task<std::map<std::string, double>> LoggedResults::values_for_loggers() {
  std::map<std::string, double> values;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].call.to_logger && has_step_value(results_[i])) {
      values[results_[i].call.forked_key("_step")] = co_await step_value(i);
    }
  }
  co_return values;
}

Program LoggedResults::show_progress() {
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].call.to_progress_bar && has_step_value(results_[i])) {
      const double value = co_await step_value(i);
      interpreter_.log().progress_bar[results_[i].call.forked_key("_step")] = value;
    }
  }
}

Program LoggedResults::publish_steps() {
  std::map<std::string, double>& metrics = interpreter_.log().metrics;
  for (size_t i = 0; i < results_.size(); ++i) {
    const bool is_kept = training_ || !results_[i].call.on_epoch;
    if (!is_kept || !has_step_value(results_[i])) {
      continue;
    }
    const double value = co_await step_value(i);
    if (training_) {                  // those of evaluation go to loggers alone
      if (!results_[i].is_reduced) {  // else the key has the value of the epoch already
        metrics[results_[i].call.key()] = value;
      }
      metrics[results_[i].call.forked_key("_step")] = value;
    }
    if (!results_[i].call.on_epoch) {
      remember(results_[i], value);
    }
  }
}

Program LoggedResults::reduce_one(Result& result, bool keep) {
  double value = 0;
  if (result.call.metric != nullptr) {
    value = co_await computed(result);
  } else {
    co_await gather(result);
    value = co_await reduced(result);
  }
  result.is_reduced = true;
  if (!keep) {
    co_return;
  }
  std::map<std::string, double>& metrics = interpreter_.log().metrics;
  metrics[result.call.key()] = value;
  metrics[result.call.forked_key("_epoch")] = value;
  if (result.call.to_logger) {
    for_loggers_[result.call.forked_key("_epoch")] = value;
  }
  if (result.call.to_progress_bar) {
    interpreter_.log().progress_bar[result.call.forked_key("_epoch")] = value;
  }
  remember(result, value);
}

Program LoggedResults::reduce_epoch(bool keep) {
  for (size_t i = 0; i < results_.size(); ++i) {
    if (is_visible(results_[i]) && results_[i].call.on_epoch && !results_[i].is_reduced) {
      co_await reduce_one(results_[i], keep);
    }
  }
}

Program LoggedResults::end_epoch(bool keep) {
  if (keep) {
    co_await publish_steps();
  }
  co_await reduce_epoch(keep);
  for (Result& result : results_) {
    if (result.call.metric != nullptr) {
      result.call.metric->reset();
    }
    result.in_use = false;
  }
}

}  // namespace lockstep
