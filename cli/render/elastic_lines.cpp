#include "cli/render/elastic_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/render/answer_lines.hpp"
#include "cli/render/json_logged.hpp"
#include "properties/finding.hpp"
#include "rehearsal/text/number_text.hpp"

namespace lockstep::cli {

namespace {

constexpr double picoseconds_of_second = 1e12;

std::string long_time_text(double time_s) {
  constexpr double hour = 3600;
  constexpr double day = 24 * hour;
  if (time_s < 2 * hour) {
    return time_text(static_cast<int64_t>(time_s * picoseconds_of_second));
  }
  return time_s < 2 * day ? fmt::format("{:.4g} h", time_s / hour)
                          : fmt::format("{:.4g} d", time_s / day);
}

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string nodes_text(const AttemptResult& attempt) {
  std::string nodes;
  for (const int32_t node : attempt.nodes) {
    nodes += (nodes.empty() ? "" : ", ") + std::to_string(node);
  }
  return fmt::format("{} on node{} {}", plural(attempt.ranks, "rank"),
                     attempt.nodes.size() == 1 ? "" : "s", nodes);
}

std::string attempt_lines(const ElasticResults& elastic, size_t number) {
  const AttemptResult& attempt = elastic.attempts[number];
  const std::string from =
      number == 0 ? ""
      : attempt.resumed_from.empty()
          ? ", begins anew"
          : fmt::format(", from {} (step {})", file_of(attempt.resumed_from), attempt.first_step);
  std::string out = fmt::format("  attempt {:<3} at {:>9}   {}{}\n", number,
                                time_text(attempt.began.count()), nodes_text(attempt), from);
  const std::string end = attempt.failure.empty() ? "comes to its end" : attempt.failure;
  out += fmt::format("              for {:>8}   {} after step {}\n", time_text(attempt.ran.count()),
                     end, attempt.last_step);
  if (attempt.down.whole() > Time{}) {
    out += fmt::format(
        "              then {:>7}   until all run again: {} to see it, {} to end the "
        "others, {} to meet, {} to start\n",
        time_text(attempt.down.whole().count()), time_text(attempt.down.detection.count()),
        time_text(attempt.down.stopping.count()), time_text(attempt.down.rendezvous.count()),
        time_text(attempt.down.start.count()));
  }
  return out;
}

std::string restarts_text(const ElasticResults& elastic) {
  std::string out = "\nRestarts (torchrun)\n";
  for (size_t number = 0; number < elastic.attempts.size(); ++number) {
    out += attempt_lines(elastic, number);
  }
  const Time lost = elastic.wall() - elastic.useful();
  const double share =
      elastic.wall() > Time{} ? seconds(elastic.useful()) / seconds(elastic.wall()) : 0;
  out += line("restarts", std::to_string(elastic.restarts()),
              fmt::format("{} of {} lost, goodput {:.3g}", time_text(lost.count()),
                          time_text(elastic.wall().count()), share));
  for (const ResumedEpoch& epoch : elastic.resumed_epochs) {
    out += line("samples", fmt::format("{} repeated", epoch.repeated),
                fmt::format("{} missed, in epoch {} of {}", epoch.missed, epoch.epoch,
                            plural(epoch.samples, "sample")));
  }
  if (!elastic.ended_by.empty()) {
    out += "  the job ends: " + elastic.ended_by + "\n";
  }
  return out;
}

std::string forecast_text(const FailureForecast& forecast) {
  std::string out =
      fmt::format("\nFailures (one every {} on {})\n", long_time_text(forecast.model.mtbf_s),
                  plural(forecast.nodes, "node"));
  out += line(
      "goodput in a day", fmt::format("{:.4g}", forecast.goodput),
      fmt::format("by drawn failures {:.4g}; {:.3g} failures expected, {} until "
                  "training continues",
                  forecast.drawn, forecast.failures, long_time_text(forecast.model.restart_s)));
  if (forecast.interval_s <= 0) {
    return out + "  no attempt continues from a checkpoint: a failure loses everything\n";
  }
  out += line("checkpoint every", long_time_text(forecast.interval_s),
              fmt::format("it takes {}", long_time_text(forecast.model.checkpoint_s)));
  if (forecast.by_young_s > 0) {
    out +=
        line("best interval", long_time_text(forecast.by_draws_s),
             fmt::format("by drawn failures; Young {}, Daly {}",
                         long_time_text(forecast.by_young_s), long_time_text(forecast.by_daly_s)));
  }
  return out;
}

Json attempt_json(const AttemptResult& attempt) {
  Json json;
  json["ranks"] = attempt.ranks;
  json["nodes"] = attempt.nodes;
  json["began_s"] = seconds(attempt.began);
  json["ran_s"] = seconds(attempt.ran);
  json["failure"] = attempt.failure;
  json["first_step"] = attempt.first_step;
  json["last_step"] = attempt.last_step;
  json["kept_step"] = attempt.kept_step;
  json["useful_s"] = seconds(attempt.useful);
  json["resumed_from"] = attempt.resumed_from;
  json["down_s"] = {{"detection", seconds(attempt.down.detection)},
                    {"stopping", seconds(attempt.down.stopping)},
                    {"rendezvous", seconds(attempt.down.rendezvous)},
                    {"start", seconds(attempt.down.start)}};
  return json;
}

Json forecast_json(const FailureForecast& forecast) {
  Json json;
  json["mtbf_of_job_s"] = forecast.model.mtbf_s;
  json["nodes"] = forecast.nodes;
  json["horizon_s"] = forecast.horizon_s;
  json["failures"] = forecast.failures;
  json["restart_s"] = forecast.model.restart_s;
  json["checkpoint_s"] = forecast.model.checkpoint_s;
  json["interval_s"] = forecast.interval_s;
  json["goodput"] = forecast.goodput;
  json["goodput_drawn"] = forecast.drawn;
  json["best_interval_s"] = {
      {"young", forecast.by_young_s}, {"daly", forecast.by_daly_s}, {"drawn", forecast.by_draws_s}};
  return json;
}

}  // namespace

std::string restarts_line(const Rehearsal& rehearsal) {
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  if (!elastic || elastic->restarts() == 0) {
    return "";
  }
  std::string out = fmt::format("{}:", plural(elastic->restarts(), "restart"));
  for (size_t number = 0; number + 1 < elastic->attempts.size(); ++number) {
    const AttemptResult& next = elastic->attempts[number + 1];
    out +=
        fmt::format("{} {}, then {} from {}", number == 0 ? "" : ";",
                    elastic->attempts[number].failure, nodes_text(next),
                    next.resumed_from.empty()
                        ? "the beginning"
                        : fmt::format("{} (step {})", file_of(next.resumed_from), next.first_step));
  }
  return out + "\n";
}

std::string render_elastic(const Rehearsal& rehearsal) {
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  if (!elastic || is_real(rehearsal.world)) {
    return "";
  }
  const bool failed = elastic->restarts() > 0 || !elastic->ended_by.empty();
  return (failed ? restarts_text(*elastic) : "") +
         (elastic->forecast ? forecast_text(*elastic->forecast) : "");
}

Json elastic_json(const Rehearsal& rehearsal) {
  const std::optional<ElasticResults>& elastic = rehearsal.results.elastic;
  if (!elastic || elastic->attempts.empty()) {
    return nullptr;
  }
  Json json;
  json["restarts"] = elastic->restarts();
  json["ended_by"] = elastic->ended_by;
  json["total_s"] = seconds(elastic->wall());
  json["useful_s"] = seconds(elastic->useful());
  json["attempts"] = Json::array();
  for (const AttemptResult& attempt : elastic->attempts) {
    json["attempts"].push_back(attempt_json(attempt));
  }
  json["resumed_epochs"] = Json::array();
  for (const ResumedEpoch& epoch : elastic->resumed_epochs) {
    json["resumed_epochs"].push_back({{"epoch", epoch.epoch},
                                      {"samples_repeated", epoch.repeated},
                                      {"samples_missed", epoch.missed}});
  }
  json["resumed_epoch"] =
      json["resumed_epochs"].empty() ? Json(nullptr) : json["resumed_epochs"].back();
  json["forecast"] = elastic->forecast ? forecast_json(*elastic->forecast) : Json(nullptr);
  return json;
}

}  // namespace lockstep::cli
