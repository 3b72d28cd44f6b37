#include "cli/render/render_comparison.hpp"

#include <fmt/format.h>

#include "cli/render/render.hpp"
#include "properties/finding.hpp"

namespace lockstep::cli {

namespace {

std::string summary(const Comparison& comparison, const Style& style) {
  if (!comparison.not_compared.empty()) {
    return style.warning("not compared") + ": " + comparison.not_compared;
  }
  std::string text;
  for (const Point& point : comparison.points) {
    text += text.empty() ? "" : " · ";
    if (!point.not_compared.empty()) {
      text += point.name + " not compared (" + point.not_compared + ")";
      continue;
    }
    text += point.name + " " + (point.equal ? style.good("equal") : style.error("differ")) +
            (point.equal && !point.extent.empty() ? " (" + point.extent + ")" : "");
  }
  return text;
}

std::string first_collective(const Comparison& comparison) {
  return comparison.time_to_first_collective
             ? fmt::format("time to first collective: {}\n",
                           time_text(comparison.time_to_first_collective->count()))
             : "";
}

std::string step_times(const Comparison& comparison) {
  if (!comparison.real_step || !comparison.predicted_step ||
      comparison.predicted_step->count() <= 0) {
    return "";
  }
  const double ratio = seconds(*comparison.real_step) / seconds(*comparison.predicted_step);
  if (!comparison.calibration.empty()) {
    return fmt::format("step time {} measured, {} predicted{} with {}, ratio {:.2f}\n",
                       time_text(comparison.real_step->count()),
                       time_text(comparison.predicted_step->count()),
                       range_text(comparison.predicted_low, comparison.predicted_high),
                       comparison.calibration, ratio);
  }
  return fmt::format("step time {} measured, {} predicted for {}, ratio {:.2f}; no calibration\n",
                     time_text(comparison.real_step->count()),
                     time_text(comparison.predicted_step->count()), comparison.predicted_for,
                     ratio);
}

}  // namespace

std::string render_comparison(const Rehearsal& rehearsal, const Comparison& comparison,
                              const Style& style) {
  std::string text = fmt::format("real run: {}, {}\n          {}\n",
                                 plural(rehearsal.run.preparation.options.world_size, "rank"),
                                 fmt::join(rehearsal.run.basis, ", "), summary(comparison, style));
  for (const Point& point : comparison.points) {
    for (const std::string& difference : point.differences) {
      text += fmt::format("  {}: {}\n", point.name, difference);
    }
  }
  return text + step_times(comparison) + first_collective(comparison);
}

Json json_of(const Comparison& comparison) {
  Json json;
  json["not_compared"] = comparison.not_compared;
  json["equal"] = comparison.equal();
  for (const Point& point : comparison.points) {
    const Json equal = point.not_compared.empty() ? Json(point.equal) : Json(nullptr);
    json[point.name] = {{"equal", equal},
                        {"extent", point.extent},
                        {"differences", point.differences},
                        {"not_compared", point.not_compared}};
  }
  json["tensors"] = nullptr;
  if (const auto& tensors = comparison.tensors) {
    json["tensors"] = {{"rank", tensors->rank},
                       {"held_bytes", tensors->held.count()},
                       {"accounted_bytes", tensors->accounted.count()},
                       {"allowance_bytes", tensors->allowance.count()}};
  }
  const auto seconds_or_null = [](const std::optional<Time>& time) {
    return time ? Json(seconds(*time)) : Json(nullptr);
  };
  json["real_step_time_s"] = seconds_or_null(comparison.real_step);
  json["time_to_first_collective_s"] = seconds_or_null(comparison.time_to_first_collective);
  json["predicted_step_time_s"] = seconds_or_null(comparison.predicted_step);
  json["predicted_step_time_low_s"] = seconds_or_null(comparison.predicted_low);
  json["predicted_step_time_high_s"] = seconds_or_null(comparison.predicted_high);
  json["calibration"] = comparison.calibration;
  json["predicted_for"] = comparison.predicted_for;
  return json;
}

}  // namespace lockstep::cli
