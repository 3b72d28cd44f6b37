#include "cli/render/json_logged.hpp"

#include "rehearsal/findings/compiled_graphs.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/logger_keys.hpp"
#include "rehearsal/findings/staleness.hpp"
#include "rehearsal/findings/weight_spread.hpp"

#include <cmath>
#include <map>

namespace lockstep::cli {

namespace {

Json checkpoint_json(const CheckpointLog& checkpoint) {
  Json json;
  json["best"] = checkpoint.best;
  json["best_score"] = checkpoint.best_score ? number(*checkpoint.best_score) : Json(nullptr);
  json["last"] = checkpoint.last;
  json["kept"] = Json::object();
  for (const auto& [file, score] : checkpoint.kept) {
    json["kept"][file] = number(score);
  }
  return json;
}

Json numbers(const std::map<std::string, double>& values, const std::vector<GlobalMetric>& logged) {
  Json json = Json::object();
  for (const auto& [key, value] : values) {
    json[key] = value_json(logged, key, value);
  }
  return json;
}

}  // namespace

Json value_json(const std::vector<GlobalMetric>& logged, const std::string& key, double value) {
  return is_of_stand_in(logged, key) ? Json(nullptr) : number(value);
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json told_together(const std::vector<Json>& by_rank) {
  std::map<std::string, RankSet> ranks;
  std::vector<size_t> firsts;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto [entry, fresh] = ranks.try_emplace(by_rank[rank].dump());
    entry->second.add(static_cast<int32_t>(rank));
    if (fresh) {
      firsts.push_back(rank);
    }
  }
  Json all = Json::array();
  for (const size_t first : firsts) {
    Json json;
    json["ranks"] = ranks[by_rank[first].dump()].text();
    json.update(by_rank[first]);
    all.push_back(std::move(json));
  }
  return all;
}

Json checkpoints_json(const ByRank<RankLog>& ranks) {
  Json all = Json::array();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    size_t index = 0;
    for (const CheckpointLog& checkpoint : ranks[rank].checkpoints) {
      if (checkpoint.added_by_trainer) {
        continue;
      }
      if (index == all.size()) {
        all.push_back({{"monitor", checkpoint.monitor}, {"by_rank", Json::object()}});
      }
      all[index++]["by_rank"][std::to_string(rank)] = checkpoint_json(checkpoint);
    }
  }
  return all;
}

Json learning_rates_json(const ByRank<RankLog>& ranks) {
  Json all = Json::object();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const std::vector<double>& of_optimizer : ranks[rank].learning_rates) {
      Json rates = Json::array();
      for (const double rate : of_optimizer) {
        rates.push_back(number(rate));
      }
      all["by_rank"][std::to_string(rank)].push_back(std::move(rates));
    }
  }
  return all;
}

Json logged_json(const std::vector<GlobalMetric>& logged) {
  Json all = Json::array();
  for (const GlobalMetric& metric : logged) {
    Json json;
    json["key"] = metric.key;
    json["is_metric_object"] = metric.is_object;
    json["synchronised"] = metric.synchronised;
    json["rank_zero_only"] = metric.rank_zero_only;
    json["of_last_batch"] = metric.of_last_batch;
    json["by_rank"] = Json::object();
    for (const RankMetric& rank : metric.ranks) {
      json["by_rank"][std::to_string(rank.rank)] =
          metric.is_stand_in ? Json(nullptr) : number(rank.value);
    }
    const std::optional<bool> agrees = agrees_with_one_device(metric);
    json["single_device"] = metric.single_device ? number(*metric.single_device) : Json(nullptr);
    json["agrees"] = agrees ? Json(*agrees) : Json(nullptr);
    json["error"] = metric.single_device
                        ? number(metric.ranks.front().value - *metric.single_device)
                        : Json(nullptr);
    json["averaging_rule"] = metric.averaging;
    json["is_stand_in"] = metric.is_stand_in;
    json["fix"] =
        agrees.value_or(true) || metric.remedy.empty() ? Json(nullptr) : Json(metric.remedy);
    all.push_back(std::move(json));
  }
  return all;
}

Json loggers_json(const ByRank<RankLog>& ranks, const std::vector<GlobalMetric>& logged) {
  std::vector<Json> by_rank;
  for (const RankLog& log : ranks) {
    Json json;
    json["row_count"] = log.logger.row_count;
    json["last_rows"] = Json::array();
    for (size_t at = log.logger.rows_before_gap; at < log.logger.rows.size(); ++at) {
      const LoggerRow& row = log.logger.rows[at];
      json["last_rows"].push_back({{"step", row.step}, {"values", numbers(row.values, logged)}});
    }
    json["progress_bar"] = numbers(log.progress_bar, logged);
    by_rank.push_back(std::move(json));
  }
  return told_together(by_rank);
}

Json of_step(const WeightSpreads::OfStep& one) {
  return {{"step", one.step}, {"apart", one.apart}};
}

Json weights_over_time(const OneRun& run) {
  const WeightSpreads& spreads = run.weight_spreads;
  if (spreads.empty()) {
    return nullptr;
  }
  Json json;
  json["every"] = spreads.every;
  json["greatest"] = of_step(*spreads.greatest);
  json["greatest"]["in"] = parameter_names(run).at(spreads.parameter);
  json["steps"] = Json::array();
  for (const WeightSpreads::OfStep& one : spreads.steps) {
    json["steps"].push_back(of_step(one));
  }
  return json;
}

// Where ranks train weights of their own, compress what they send, or send gradients to servers.
Json weights_json(const OneRun& run) {
  Json json;
  const std::optional<WeightSpread> spread = weight_spread(run);
  json["apart"] = spread ? Json(spread->apart) : Json(nullptr);
  json["apart_in"] = spread ? Json(spread->parameter) : Json(nullptr);
  json["over_time"] = spread ? weights_over_time(run) : Json(nullptr);
  const std::optional<double> error = compression_error(run);
  json["compression_error"] = error ? Json(*error) : Json(nullptr);
  const auto graphs = std::ssize(compiled_graphs(run));
  json["compiled_graphs"] = graphs > 0 ? Json(graphs) : Json(nullptr);
  json["staleness"] = nullptr;
  if (const std::optional<Staleness> staleness = staleness_of(run)) {
    json["staleness"] = {{"mean", staleness->mean()},
                         {"max", staleness->most},
                         {"gradients", staleness->pushes},
                         {"dropped", staleness->dropped}};
  }
  return json;
}

}  // namespace lockstep::cli
