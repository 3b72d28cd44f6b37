#include "cli/render/json_prediction.hpp"

#include "rehearsal/measure/cost.hpp"

namespace lockstep::cli {

namespace {

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json seconds_or_null(const std::optional<Time>& time) {
  return time ? Json(seconds(*time)) : Json(nullptr);
}

Json breakdown_json(const Breakdown& parts) {
  Json json;
  json["compute"] = seconds(parts.compute);
  json["exposed_communication"] = seconds(parts.exposed_communication);
  json["data"] = seconds(parts.data);
  json["optimizer"] = seconds(parts.optimizer);
  json["optimizer_on_host"] = seconds(parts.optimizer_on_host);
  json["host"] = seconds(parts.host);
  json["drive"] = seconds(parts.drive);
  json["offload"] = seconds(parts.offload);
  json["idle"] = seconds(parts.idle);
  json["waiting"] = seconds(parts.waiting);
  return json;
}

}  // namespace

Json prediction_json(const Prediction& prediction) {
  Json json;
  json["step_time_s"] = seconds_or_null(prediction.step_time);
  json["step_time_low_s"] = seconds_or_null(prediction.step_time_low);
  json["step_time_high_s"] = seconds_or_null(prediction.step_time_high);
  if (prediction.steps_of_cycle > 1) {
    json["steps_of_cycle"] = prediction.steps_of_cycle;
    json["mean_step_time_s"] = seconds_or_null(prediction.mean_step_time);
  }
  json["samples_per_s"] = value_or_null(prediction.samples_per_s);
  json["tokens_per_s"] = value_or_null(prediction.tokens_per_s);
  json["mfu"] = value_or_null(prediction.mfu);
  json["breakdown_s"] = breakdown_json(prediction.breakdown);
  if (prediction.bubble) {
    json["bubble"] = *prediction.bubble;
    const auto& ideal = prediction.ideal_bubble;
    json["ideal_bubble"] = ideal ? Json(ideal->of_schedule) : Json();
    json["ideal_bubble_with_messages"] = ideal ? Json(ideal->with_messages) : Json();
  }
  json["steps"] = prediction.steps;
  json["simulated_steps"] = prediction.simulated_steps;
  if (prediction.micro_batches) {
    json["micro_batches"] = prediction.micro_batches->all;
    json["simulated_micro_batches"] = prediction.micro_batches->simulated;
  }
  json["simulated_ranks"] = prediction.simulated_ranks;
  json["first_step_s"] = seconds_or_null(prediction.first_step);
  json["total_time_s"] = seconds(prediction.total_time);
  json["total_time_low_s"] = seconds_or_null(prediction.total_time_low);
  json["total_time_high_s"] = seconds_or_null(prediction.total_time_high);
  return json;
}

Json cost_json(const Rehearsal& rehearsal) {
  const std::optional<Cost> cost = cost_of(rehearsal);
  if (!cost) {
    return nullptr;
  }
  Json json;
  json["currency"] = cost->currency;
  json["total"] = cost->total;
  json["total_with_failures"] = value_or_null(cost->with_failures);
  json["per_million_samples"] = value_or_null(cost->per_million_samples);
  json["per_billion_tokens"] = value_or_null(cost->per_billion_tokens);
  json["per_hour"] = cost->per_hour;
  json["paid_for"] = {{"count", cost->units},
                      {"unit", cost->by_gpu ? "gpu" : "node"},
                      {"amount_per_hour", cost->amount}};
  json["source"] = cost->source;
  return json;
}

Json partial_json(const PartialResults& partial) {
  Json json;
  json["steps"] = partial.steps;
  json["planned_steps"] = value_or_null(partial.planned_steps);
  json["total_time_s"] = seconds(partial.total_time);
  json["step_time_s"] = seconds_or_null(partial.step_time);
  json["memory_peak_bytes"] = partial.memory_peak.count();
  return json;
}

}  // namespace lockstep::cli
