#include "cli/render/json.hpp"

#include <map>

#include "cli/render/call_list.hpp"
#include "cli/render/elastic_lines.hpp"
#include "cli/render/json_logged.hpp"
#include "cli/render/json_prediction.hpp"
#include "cli/render/over_time/utilization.hpp"
#include "cli/render/pipeline_lines.hpp"
#include "cli/render/render.hpp"
#include "rehearsal/measure/peak_moment.hpp"
#include "rehearsal/run/device_reserve.hpp"
#include "rehearsal/run/node_memory.hpp"
#include "rehearsal/run/samples_per_step.hpp"

namespace lockstep::cli {

namespace {

template <class T>
Json optional(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// A place has the same keys wherever it comes from; null: there is none.
Json place_json(const SourcePlace& place) {
  if (place.file.empty()) {
    return nullptr;
  }
  Json json;
  json["file"] = place.file;
  json["line"] = place.line;
  json["column"] = place.column;
  json["description"] = "";
  json["at"] = "";
  json["hook"] = "";
  return json;
}

Json site_json(const Sites& sites, SiteId id) {
  const Site* site = sites.find(id);
  if (site == nullptr) {
    return nullptr;
  }
  Json json;
  json["file"] = site->file;
  json["line"] = site->line;
  json["column"] = site->column;
  json["description"] = site->description;
  json["at"] = site->at;
  json["hook"] = site->hook;
  return json;
}

std::string_view word_of(ExitCode code) {
  switch (code) {
    case ExitCode::ok: return "ok";
    case ExitCode::findings: return "findings";
    case ExitCode::bad_input: return "invalid";
    case ExitCode::missing_capability: return "unsupported";
    case ExitCode::real_run_failed: return "failed";
    default: return "undecided";
  }
}

Json ways_json(const std::vector<Way>& ways) {
  Json all = Json::array();
  for (const Way& way : ways) {
    all.push_back({{"ranks", way.ranks.text()}, {"value", way.value}});
  }
  return all;
}

Json change_json(const Advice::Change& change) {
  return {{"change", change.text},
          {"step_time_s", seconds(change.step_time)},
          {"samples_per_s", number(change.samples_per_s)},
          {"peak_bytes", change.peak.count()}};
}

Json changes_json(const std::vector<Advice::Change>& changes) {
  Json all = Json::array();
  for (const Advice::Change& change : changes) {
    all.push_back(change_json(change));
  }
  return all;
}

Json advice_json(const Advice& advice) {
  Json json;
  json["largest_batch_size"] = optional(advice.largest_batch_size);
  json["why_no_batch_size"] = advice.why_no_batch_size;
  json["tried"] = advice.tried;
  json["steps"] = advice.steps;
  json["base"] = advice.base ? change_json(*advice.base) : Json(nullptr);
  json["why_no_base"] = advice.why_no_base;
  json["changes"] = changes_json(advice.changes);
  json["not_tried"] = advice.not_tried;
  json["stopped"] = advice.stopped;
  json["needed_bytes"] = advice.needed ? Json(advice.needed->count()) : Json(nullptr);
  json["strategies"] = changes_json(advice.strategies);
  json["strategies_too_large"] = advice.too_large;
  return json;
}

Json moment_json(const std::optional<PeakMoment>& moment) {
  if (!moment) {
    return nullptr;
  }
  return {{"phase", name_of(moment->phase)},
          {"steps_before", moment->steps_before},
          {"text", text_of(*moment)}};
}

Json memory_json(const DeviceMemory& memory) {
  Json json;
  json["peak_bytes"] = memory.peak.count();
  json["capacity_bytes"] =
      memory.capacity == Bytes::max() ? Json(nullptr) : Json(memory.capacity.count());
  Json parts;
  for (int purpose = 0; purpose < purpose_count; ++purpose) {
    parts[std::string(name_of(static_cast<Purpose>(purpose)))] =
        memory.peak_by_purpose[static_cast<size_t>(purpose)].count();
  }
  json["by_purpose_bytes"] = parts;
  return json;
}

Json transfers_json(const std::vector<TransferCount>& transfers) {
  Json all = Json::array();
  for (const TransferCount& transfer : transfers) {
    all.push_back({{"operation", name_of(transfer.kind)},
                   {"group", transfer.group},
                   {"count", transfer.count},
                   {"bytes", transfer.bytes}});
  }
  return all;
}

Json classes_json(const Rehearsal& rehearsal) {
  const std::unique_ptr<Journal>& journal = rehearsal.run.result.journal;
  std::vector<Json> by_rank;
  for (const auto& rank : rehearsal.results.ranks) {
    Json json;
    const auto number = static_cast<int32_t>(by_rank.size());
    json["memory"] = memory_json(rank.memory);
    const DeviceReserve reserve = reserve_of(rehearsal.run, number);
    json["memory"]["peak_at"] = moment_json(rank.peak_at);
    json["memory"]["host_peak_bytes"] = rank.host_peak.count();
    json["memory"]["host_peak_at"] = moment_json(rank.host_peak_at);
    json["memory"]["drive_peak_bytes"] = rank.drive_peak.count();
    json["memory"]["cuda_context_bytes"] = reserve.cuda_context.count();
    json["memory"]["nccl_bytes"] = reserve.nccl.count();
    json["transfers"] = transfers_json(journal ? counts_for_rank(*journal, rank.transfers, number)
                                               : rank.transfers);
    json["checkpoint_bytes"] =
        rank.checkpoint_bytes ? Json(rank.checkpoint_bytes->of(number).count()) : Json(nullptr);
    by_rank.push_back(std::move(json));
  }
  return told_together(by_rank);
}

Json nodes_json(const OneRun& run) {
  Json all = Json::array();
  const auto capacity = [](const NodeMemory& node) {
    return node.capacity != Bytes::max() ? Json(node.capacity.count()) : Json(nullptr);
  };
  const std::vector<NodeMemory> hosts = node_memory_of(run);
  const std::vector<NodeMemory> drives = node_memory_of(run, drive_device);
  for (size_t place = 0; place < hosts.size(); ++place) {
    all.push_back({{"node", hosts[place].node},
                   {"ranks", hosts[place].ranks.text()},
                   {"host_needed_bytes", hosts[place].needed.count()},
                   {"host_capacity_bytes", capacity(hosts[place])},
                   {"drive_needed_bytes", drives[place].needed.count()},
                   {"drive_capacity_bytes", capacity(drives[place])}});
  }
  return all;
}

Json metrics_json(const Rehearsal& rehearsal) {
  Json all = Json::object();
  for (size_t rank = 0; rank < rehearsal.results.ranks.size(); ++rank) {
    for (const auto& [key, value] : rehearsal.run.preparation.log->ranks[rank].metrics) {
      all[key]["by_rank"][std::to_string(rank)] = value_json(rehearsal.logged, key, value);
    }
  }
  if (rehearsal.results.single_device) {
    for (const auto& [key, value] : *rehearsal.results.single_device) {
      all[key]["single_device"] = number(value);
    }
  }
  return all;
}

Json expectations_json(const std::vector<Judged>& expectations) {
  Json all = Json::array();
  for (const Judged& one : expectations) {
    all.push_back(
        {{"text", one.text}, {"met", one.met}, {"judged", one.judged}, {"actual", one.actual}});
  }
  return all;
}

Json calibration_json(const std::optional<CalibrationUse>& use) {
  if (!use) {
    return nullptr;
  }
  return {{"file", use->file},
          {"device", use->origin.device},
          {"ranks", use->origin.ranks},
          {"date", use->origin.date},
          {"not_measured", use->not_measured}};
}

Json coverage_json(const Coverage& coverage) {
  Json json;
  json["world_sizes"] = coverage.world_sizes;
  json["schedules"] = coverage.schedules;
  json["complete"] = coverage.complete;
  json["looked_at"] = coverage.looked_at;
  json["not_looked_at"] = coverage.not_looked_at;
  return json;
}

Json size_json(const Rehearsal& rehearsal) {
  const Results& results = rehearsal.results;
  Json json;
  json["world_size"] = rehearsal.run.preparation.options.world_size;
  json["strategy"] = results.strategy;
  json["samples_per_step"] = optional(samples_per_step(rehearsal.run, results));
  json["samples_per_update"] = optional(results.effective_batch_size);
  return json;
}

}  // namespace

Json json_of(const Finding& finding, const Sites& sites) {
  Json json;
  json["code"] = finding.code;
  json["level"] = name_of(finding.level);
  json["title"] = finding.title;
  json["ranks"] = finding.ranks.text();
  json["group"] = finding.group;
  json["call"] = finding.call;
  json["sites"] = Json::array();
  for (const FindingSite& place : finding.sites) {
    Json site = site_json(sites, place.site);
    if (!site.is_null()) {
      site["role"] = name_of(place.role);
      site["label"] = place.label;
      json["sites"].push_back(site);
    }
  }
  json["did"] = Json::array();
  for (const RankAction& action : finding.did) {
    json["did"].push_back({{"ranks", action.ranks.text()},
                           {"call", action.call},
                           {"operation", action.operation},
                           {"site", site_json(sites, action.site)}});
  }
  json["when"] = finding.when;
  json["why"] = {{"text", finding.why.text},
                 {"site", site_json(sites, finding.why.site)},
                 {"ways", ways_json(finding.why.ways)}};
  json["follows"] = finding.follows;
  json["smallest"] = finding.smallest;
  json["fix"] = finding.fix;
  json["python"] = finding.python;
  json["place"] = site_json(sites, finding.place);
  json["also"] = finding.also;
  return json;
}

Json problems_json(const std::vector<Problem>& problems) {
  Json all = Json::array();
  for (const Problem& problem : problems) {
    const char* kind = problem.kind == Problem::Kind::invalid       ? "invalid"
                       : problem.kind == Problem::Kind::unsupported ? "unsupported"
                       : problem.kind == Problem::Kind::refused     ? "refused"
                       : problem.kind == Problem::Kind::warning     ? "warning"
                                                                    : "note";
    all.push_back({{"kind", kind},
                   {"code", problem.code},
                   {"message", problem.message},
                   {"remedy", problem.remedy},
                   {"place", place_json(problem.place)}});
  }
  return all;
}

Json json_of(const std::vector<Diagnostic>& diagnostics, const std::string& file,
             const Request& request) {
  Json json;
  json["name"] = file;
  json["scenario"] = file;
  json["case"] = "";
  json["seed"] = request.seed.value_or(0);
  json["verdict"] = "invalid";
  json["exit_code"] = static_cast<int>(ExitCode::bad_input);
  json["ran"] = false;
  json["findings"] = Json::array();
  json["expectations"] = Json::array();
  std::vector<Problem> problems;
  for (const Diagnostic& diagnostic : diagnostics) {
    problems.push_back(
        {Problem::Kind::invalid, diagnostic.place, diagnostic.message, diagnostic.remedy});
  }
  json["problems"] = problems_json(problems);
  json["undecided"] = "";
  json["drawn_faults"] = Json::array();
  return json;
}

Json json_of(const Rehearsal& rehearsal, const Request& request) {
  Json json;
  json["name"] = title_of(rehearsal);
  json["scenario"] = rehearsal.scenario->file;
  json["case"] = rehearsal.scenario->name;
  json["seed"] = value_or(rehearsal.scenario->seed, int64_t{0});
  json["verdict"] = verdict_of(rehearsal, request.strict);
  json["exit_code"] = static_cast<int>(exit_code_of(rehearsal, request.strict));
  json["ran"] = rehearsal.ran();
  json["findings"] = Json::array();
  for (const Finding& finding : rehearsal.findings) {
    Json one = json_of(finding, rehearsal.sites);
    one["ignored"] = ignore_reason(*rehearsal.scenario, finding.code);
    json["findings"].push_back(one);
  }
  json["expectations"] = expectations_json(rehearsal.expectations);
  json["problems"] = problems_json(rehearsal.problems);
  json["undecided"] = rehearsal.undecided;
  json["drawn_faults"] = rehearsal.drawn_faults;
  if (!rehearsal.ran()) {
    return json;
  }
  const Results& results = rehearsal.results;
  json.update(size_json(rehearsal));
  // Threads take the time of this machine at this moment: no prediction, and never twice the same.
  const bool predicts =
      rehearsal.why_no_prediction().empty() && rehearsal.world == World::simulated;
  json["prediction"] = !predicts ? Json(nullptr) : prediction_json(results.prediction);
  json["cost"] = cost_json(rehearsal);
  if (results.partial) {
    json["partial"] = partial_json(*results.partial);
  }
  if (request.command == "run") {
    json["advice"] = advice_json(results.advice);
    json["utilization"] = utilization_json(rehearsal);
    json["pipeline"] = predicts ? pipeline_json(rehearsal) : Json(nullptr);
    json["devices"] = predicts ? devices_json(rehearsal) : Json::array();
  }
  json["elastic"] = elastic_json(rehearsal);
  json["calls"] = calls_json(rehearsal);
  json["ranks"] = classes_json(rehearsal);
  json["nodes"] = nodes_json(rehearsal.run);
  json["metrics"] = metrics_json(rehearsal);
  json["logged"] = logged_json(rehearsal.logged);
  json["weights"] = weights_json(rehearsal.run);
  json["experts"] = experts_json(rehearsal.run);
  json["loggers"] = loggers_json(rehearsal.run.preparation.log->ranks, rehearsal.logged);
  json["checkpoints"] = checkpoints_json(rehearsal.run.preparation.log->ranks);
  json["learning_rates"] = learning_rates_json(rehearsal.run.preparation.log->ranks);
  json["basis"] = rehearsal.run.basis;
  json["calibration"] = calibration_json(rehearsal.run.calibration);
  json["operations"] = {{"submitted", rehearsal.run.result.operations},
                        {"simulated", rehearsal.run.result.simulated_operations},
                        {"folded", results.is_folded()}};
  if (request.command != "run") {
    json["coverage"] = coverage_json(rehearsal.coverage);
  }
  return json;
}

Json json_of(const std::vector<const Rehearsal*>& cases, const Request& request) {
  ExitCode code = ExitCode::ok;
  std::vector<Json> all;
  for (const Rehearsal* rehearsal : cases) {
    code = worse(code, exit_code_of(*rehearsal, request.strict));
    all.push_back(json_of(*rehearsal, request));
  }
  return report_json(std::move(all), request, code);
}

Json report_json(std::vector<Json> cases, const Request& request, ExitCode code) {
  Json json;
  json["schema_version"] = schema_version;
  json["command"] = request.command;
  json["verdict"] = word_of(code);
  json["exit_code"] = static_cast<int>(code);
  json["cases"] = std::move(cases);
  return json;
}

}  // namespace lockstep::cli
