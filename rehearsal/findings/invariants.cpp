#include "rehearsal/findings/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "properties/diagnosis/diagnosis.hpp"
#include "properties/diagnosis/remedy.hpp"
#include "properties/invariants/equals_single_device.hpp"
#include "properties/invariants/learning_rate_scaled.hpp"
#include "properties/invariants/memory_fits.hpp"
#include "properties/logged/rounding.hpp"
#include "rehearsal/findings/calls_of_threads.hpp"
#include "rehearsal/findings/compiled_graphs.hpp"
#include "rehearsal/findings/empty_training.hpp"
#include "rehearsal/findings/finding_place.hpp"
#include "rehearsal/findings/horovod_exceptions.hpp"
#include "rehearsal/findings/launcher_end.hpp"
#include "rehearsal/findings/logged_metrics.hpp"
#include "rehearsal/findings/met_by_name.hpp"
#include "rehearsal/findings/monitored.hpp"
#include "rehearsal/findings/narrow_types.hpp"
#include "rehearsal/findings/node_memory.hpp"
#include "rehearsal/findings/raised_findings.hpp"
#include "rehearsal/findings/replica_findings.hpp"
#include "rehearsal/findings/sample_findings.hpp"
#include "rehearsal/findings/stale_names.hpp"
#include "rehearsal/run/configuration.hpp"
#include "rehearsal/run/device_reserve.hpp"

namespace lockstep::cli {

namespace {

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

std::string title_of(const StatementFinding& finding, const RankSet& ranks) {
  if (finding.code == "assert") {
    return fmt::format("assertion {} on {}", finding.message, ranks.phrase());
  }
  return fmt::format("{}: {}", ranks.phrase(), finding.message);
}

// What counts several epochs may be meant to, as long as it is not logged as the value of one. Work
// that no statement waits for may have finished in time, and two threads may keep an order.
Level level_of(const OneRun& run, const StatementFinding& finding) {
  const bool may_be_meant =
      finding.code == "LS312" && !logs_one_of(run, stale_names_at(run, finding.site));
  const bool by_chance = finding.code == "LS403" || finding.code == "LS103";
  return may_be_meant || by_chance ? Level::warning : Level::error;
}

// Codes of our own list stay; `assert` and `evaluation` have none.
std::string code_of(const StatementFinding& finding) {
  return finding.code.starts_with("LS") ? finding.code : "";
}

FindingTopic topic_of(const StatementFinding& finding) {
  if (finding.code == "assert") {
    return FindingTopic::assertion;
  }
  return finding.list.empty() ? FindingTopic::other : FindingTopic::kept_list;
}

std::vector<Finding> statement_findings(const OneRun& run) {
  using Key = std::tuple<std::string, SiteId, std::string>;
  std::map<Key, std::pair<StatementFinding, RankSet>> by_place;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const StatementFinding& finding : ranks[rank].findings) {
      auto& entry = by_place[{finding.code, finding.site, finding.message}];
      entry.second.add(static_cast<int32_t>(rank));
      entry.first.times += entry.first.message.empty() ? finding.times - 1 : finding.times;
      entry.first.code = finding.code;
      entry.first.message = finding.message;
      entry.first.remedy = finding.remedy;
      entry.first.list = finding.list;
      entry.first.site = finding.site;
    }
  }
  std::vector<Finding> findings;
  const auto is_lost_attribute = [&](const StatementFinding& told) {
    return told.code == "unbound" && std::ranges::any_of(by_place, [&](const auto& other) {
             return std::get<0>(other.first) == "LS308" && std::get<1>(other.first) == told.site;
           });
  };
  for (const auto& [key, entry] : by_place) {
    const auto& [told, on] = entry;
    if (is_lost_attribute(told)) {
      continue;
    }
    Finding finding = lockstep::finding_of(code_of(told), level_of(run, told), title_of(told, on));
    finding.topic = topic_of(told);
    finding.name = told.list;
    finding.ranks = on;
    finding.sites.push_back({told.site, SiteRole::subject, fmt::format("on {}", on.phrase())});
    finding.fix = told.remedy.empty() ? remedy_for(told.code) : std::vector{told.remedy};
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

std::vector<std::string> parameter_names(const OneRun& run) {
  std::vector<std::string> names;
  if (run.preparation.network) {
    for (const ParameterPlace place : run.preparation.network->parameters()) {
      names.push_back(run.preparation.network->parameter_name(place));
    }
  }
  return names;
}

namespace {

/// Of an updated tensor, and which of its elements a parameter begins with.
struct SensitivityPart {
  const UpdateSensitivity* whole = nullptr;
  int64_t begin = 0;
};

// What is updated at once may be several stretches of a parameter: query, key and value by heads.
SensitivityPart sensitivity_on(const OneRun& run, size_t rank, size_t index) {
  const std::vector<Slice>& places = run.preparation.log->ranks[rank].final_parameter_places;
  if (rank >= run.result.sensitivities.size() || index >= places.size()) {
    return {};
  }
  const UpdateSensitivities& all = run.result.sensitivities[rank];
  const Slice& place = places[index];
  auto found = all.upper_bound({place.buffer.value, place.begin});
  if (found == all.begin()) {
    return {};
  }
  --found;
  const auto& [buffer, first] = found->first;
  const int64_t begin = place.begin - first;
  const bool holds = begin == 0 || begin < std::ssize(found->second.by_error);
  return buffer == place.buffer.value && holds ? SensitivityPart{&found->second, begin}
                                               : SensitivityPart{};
}

// A parameter that another rank updates and sends (FairScale, ZeroRedundancyOptimizer) has that of
// its owner.
SensitivityPart sensitivity_of(const OneRun& run, size_t rank, size_t index) {
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  SensitivityPart own = sensitivity_on(run, rank, index);
  for (size_t other = 0; own.whole == nullptr && other < ranks.size(); ++other) {
    const bool holds_all = ranks[rank].final_parts.empty() && ranks[other].final_parts.empty();
    own = holds_all ? sensitivity_on(run, other, index) : SensitivityPart{};
  }
  return own;
}

}  // namespace

std::vector<NamedValues> parameters_of(const OneRun& run) {
  const std::vector<std::string> names = parameter_names(run);
  std::vector<NamedValues> values;
  const ByRank<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<Values>& parameters = ranks[rank].final_parameters;
    const std::vector<FinalPart>& parts = ranks[rank].final_parts;
    for (size_t index = 0; index < parameters.size(); ++index) {
      const size_t parameter = parts.empty() ? index : parts.at(index).parameter;
      if (parameter < names.size()) {
        const SensitivityPart sensitivity = sensitivity_of(run, rank, index);
        values.push_back({names[parameter], static_cast<int32_t>(rank), parameters[index],
                          parts.empty() ? std::nullopt : std::optional(parts[index].first_element),
                          sensitivity.whole, sensitivity.begin});
      }
    }
  }
  return values;
}

namespace {

// Only for scenarios that say how their rate was found or is scaled; a rate without a history is
// nobody's business.
std::vector<Finding> learning_rate_findings(const OneRun& run) {
  const LearningRate& rate = run.preparation.learning_rate;
  const Results results = configuration_of(run);
  const LoaderSpec* loader = loader_of(run, "train");
  if (!rate.told || !results.effective_batch_size || !results.learning_rate || loader == nullptr) {
    return {};
  }
  LearningRateUse use;
  use.base_rate = rate.base_rate;
  use.base_batch_size = rate.base_batch_size.value_or(loader->batch_size->value);
  use.rate = *results.learning_rate;
  use.batch_size = *results.effective_batch_size;
  use.framework_scales = rate.framework_scales;
  use.script_scales = rate.script_scales;
  use.strategy = results.strategy;
  std::vector<Finding> findings = learning_rate_scaled(use);
  for (Finding& finding : findings) {
    finding.sites.push_back({site_of(rate.place), SiteRole::subject, "this rate"});
  }
  return findings;
}

bool clips_norm(const OneRun& run) {
  return run.preparation.gradient_clipping.algorithm == GradientClipping::Algorithm::norm;
}

TrainingSize size_of_training(const OneRun& run) {
  const Results results = configuration_of(run);
  const std::optional<TrainerSpec>& trainer = run.preparation.scenario->trainer;
  const int64_t micro_batches =
      trainer ? value_or(trainer->accumulate_grad_batches, int64_t{1}) : int64_t{1};
  TrainingSize size;
  size.steps = run.preparation.log->ranks.front().steps;
  size.samples = results.effective_batch_size.value_or(1);
  size.parts = results.devices * micro_batches;
  size.clips_norm = clips_norm(run);
  return size;
}

// A statement that uses data too early is reported by its name; the search for races sees it too,
// and where a thread of Horovod writes meanwhile it knows no statement.
void drop_races_told_by_name(const OneRun& run, const std::vector<Finding>& statements,
                             std::vector<Finding>& findings) {
  const auto is_of_user = [&run](const FindingSite& place) {
    const Site* site = run.preparation.sites.find(place.site);
    return site != nullptr && site->line > 0;
  };
  std::erase_if(findings, [&](const Finding& race) {
    const bool is_unknown = std::none_of(race.sites.begin(), race.sites.end(), is_of_user);
    return race.code.starts_with("LS20") &&
           std::any_of(statements.begin(), statements.end(), [&](const Finding& told) {
             const auto stands_there = [&told](const FindingSite& place) {
               return place.site == told.site();
             };
             return told.code == "LS201" && told.ranks.intersects(race.ranks) &&
                    (is_unknown || std::any_of(race.sites.begin(), race.sites.end(), stands_there));
           });
  });
}

// An error that ends some ranks is reported with what the others then wait for: one defect. What
// could be done about it is known where it was raised.
void drop_errors_told_as_ends(std::vector<Finding>& statements, std::vector<Finding>& findings) {
  std::erase_if(statements, [&findings](const Finding& error) {
    const auto tells = [&error](const Finding& finding) {
      return finding.why.site == error.site() &&
             std::any_of(finding.did.begin(), finding.did.end(), [&error](const RankAction& did) {
               return did.operation.starts_with("raised") && did.site == error.site() &&
                      did.ranks.intersects(error.ranks);
             });
    };
    const auto told = std::find_if(findings.begin(), findings.end(), tells);
    if (!error.code.empty() || told == findings.end()) {
      return false;
    }
    told->fix = error.fix.empty() ? told->fix : error.fix;
    return true;
  });
}

// Memory that is taken before any statement is the model's.
void place_memory(const OneRun& run, std::vector<Finding>& findings) {
  const Scenario& scenario = *run.preparation.scenario;
  for (Finding& finding : findings) {
    if (finding.code == "LS401" && finding.sites.empty() && scenario.model) {
      finding.sites.push_back({site_of(scenario.model->place), SiteRole::subject,
                               fmt::format("on {}", finding.ranks.phrase())});
    }
  }
}

std::map<SiteId, Time> timeouts_of_groups(const Scenario& scenario) {
  std::map<SiteId, Time> timeouts;
  if (scenario.program) {
    for_each_statement(*scenario.program, [&timeouts](const Statement& statement) {
      if (statement.timeout) {
        timeouts[site_of(statement)] = statement.timeout->value;
      }
    });
  }
  return timeouts;
}

}  // namespace

std::vector<Finding> findings_of(const OneRun& run, World world) {
  DiagnosisOptions options;
  tell_launcher(run, options);
  options.backend = run.preparation.placement.device == DeviceType::tpu ? Backend::xla
                    : run.preparation.gloo                              ? Backend::gloo
                                                                        : Backend::nccl;
  options.timeout = run.preparation.timeout;
  options.timeout_of_new_groups = run.preparation.timeout_of_new_groups;
  options.negotiated = goes_through_horovod(run);
  options.given_timeouts = timeouts_of_groups(*run.preparation.scenario);
  options.world = is_real(world) ? description_of(world) : "";
  for (const LibraryVersion& version : run.preparation.scenario->versions) {
    options.nccl = version.library == "nccl" ? version.version : options.nccl;
  }
  std::vector<Finding> findings = diagnose(run.result, options);
  tell_tensors_met_by_name(run, findings);
  append(findings, tight_memory(run));
  append(findings, node_memory_findings(run));
  place_memory(run, findings);
  std::vector<Finding> statements = statement_findings(run);
  drop_races_told_by_name(run, statements, findings);
  drop_errors_told_as_ends(statements, findings);
  append(findings, std::move(statements));
  append(findings, raised_findings(run, findings));
  tell_horovod_exceptions(run, findings);
  append(findings, sample_findings(run));
  append(findings, replica_findings(run));
  add_unordered_calls(run, findings);
  append(findings, learning_rate_findings(run));
  append(findings, metric_findings(run));
  append(findings, idle_monitors(run));
  append(findings, empty_training(run));
  append(findings, recompilations(run));
  tell_decisions(run, findings);
  place_findings(run, findings);
  sort_findings(findings);
  return findings;
}

std::vector<Finding> findings_of(const std::vector<Problem>& problems, Sites& sites) {
  std::vector<Finding> findings;
  for (const Problem& problem : problems) {
    const bool refused = problem.kind == Problem::Kind::refused;
    if (!refused && problem.kind != Problem::Kind::warning) {
      continue;
    }
    Finding finding = lockstep::finding_of(problem.code, refused ? Level::error : Level::warning,
                                           problem.message);
    Site site;
    site.description = problem.message;
    site.file = problem.place.file;
    site.line = problem.place.line;
    site.column = problem.place.column;
    const char* const label = refused ? "training cannot start" : "something else happens";
    finding.place = sites.add(site);
    finding.sites.push_back({finding.place, SiteRole::subject, label});
    finding.when = "before training";
    finding.fix = problem.remedy.empty() ? finding.fix : std::vector{problem.remedy};
    findings.push_back(std::move(finding));
  }
  return findings;
}

EqualityRule equality_rule(const OneRun& run) {
  EqualityRule rule;
  if ((run.preparation.plan.integer_values && !clips_norm(run)) ||
      run.preparation.network == nullptr) {
    return rule;
  }
  const TrainingSize size = size_of_training(run);
  const TrainingPlan& plan = run.preparation.plan;
  rule.operations = rounded_operations(*run.preparation.network, size);
  rule.steps = std::max<int64_t>(1, size.steps);
  if (plan.types().is_mixed()) {
    rule.narrow_operations = narrow_operations(*run.preparation.network);
    rule.narrow_dtype = plan.activation_dtype;
  } else if (const auto narrow = narrow_beside_parameters(run)) {
    rule.narrow_operations =
        narrow->in_layers ? narrow_operations(*run.preparation.network) : size.parts;
    rule.narrow_dtype = narrow->dtype;
  }
  return rule;
}

double network_error(const OneRun& run) {
  const TrainingPlan& plan = run.preparation.plan;
  const bool is_narrow = plan.types().is_mixed() || size_of(plan.parameter_dtype) == 2;
  return run.preparation.options.numerics && is_narrow
             ? rounding_bound(equality_rule(run), plan.parameter_dtype, 1)
             : 0;
}

}  // namespace lockstep::cli
