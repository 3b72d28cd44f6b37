#include "cli/invariants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/configuration.hpp"
#include "properties/diagnosis.hpp"
#include "properties/equals_single_device.hpp"
#include "properties/every_sample_once.hpp"
#include "properties/memory_fits.hpp"
#include "properties/remedy.hpp"
#include "properties/replicas_agree.hpp"

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

// Codes of our own list stay; `assert` and `evaluation` have none.
std::string code_of(const StatementFinding& finding) {
  return finding.code.starts_with("LS") ? finding.code : "";
}

std::vector<Finding> statement_findings(const OneRun& run) {
  using Key = std::tuple<std::string, SiteId, std::string>;
  std::map<Key, std::pair<StatementFinding, RankSet>> by_place;
  const std::vector<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const StatementFinding& finding : ranks[rank].findings) {
      auto& entry = by_place[{finding.code, finding.site, finding.message}];
      entry.second.add(static_cast<int32_t>(rank));
      entry.first.times += entry.first.message.empty() ? finding.times - 1 : finding.times;
      entry.first.code = finding.code;
      entry.first.message = finding.message;
      entry.first.remedy = finding.remedy;
      entry.first.site = finding.site;
    }
  }
  std::vector<Finding> findings;
  for (const auto& [key, entry] : by_place) {
    const auto& [told, on] = entry;
    Finding finding = lockstep::finding_of(code_of(told), Level::error, title_of(told, on));
    finding.ranks = on;
    finding.sites.push_back({told.site, SiteRole::subject, fmt::format("on {}", on.phrase())});
    finding.fix = told.remedy.empty() ? remedy_for(told.code) : std::vector{told.remedy};
    findings.push_back(std::move(finding));
  }
  return findings;
}

bool tells_ends_of(const std::vector<Finding>& findings, const RankSet& ranks) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return std::any_of(finding.sites.begin(), finding.sites.end(),
                       [](const FindingSite& site) { return site.role == SiteRole::exception; }) ||
           std::any_of(finding.did.begin(), finding.did.end(), [&](const RankAction& action) {
             return action.operation.starts_with("raised") && action.ranks.intersects(ranks);
           });
  });
}

// Exceptions that no other finding explains.
std::vector<Finding> raised_findings(const OneRun& run, const std::vector<Finding>& known) {
  std::map<std::pair<SiteId, std::string>, RankSet> raised;
  const std::vector<RankLog>& logs = run.preparation.log->ranks;
  for (size_t rank = 0; rank < run.result.ends.size(); ++rank) {
    const RankEnd& end = run.result.ends[rank];
    const bool told =
        std::any_of(logs[rank].findings.begin(), logs[rank].findings.end(),
                    [&](const StatementFinding& finding) { return finding.code == "evaluation"; });
    if (end.kind == RankEnd::Kind::raised && !end.out_of_memory && !told &&
        !logs[rank].statement_limit_reached) {
      raised[{end.site, end.message}].add(static_cast<int32_t>(rank));
    }
  }
  std::vector<Finding> findings;
  for (const auto& [key, ranks] : raised) {
    if (tells_ends_of(known, ranks)) {
      continue;
    }
    Finding finding = lockstep::finding_of(
        "", Level::error, fmt::format("{} raised '{}'", ranks.phrase(), key.second));
    finding.ranks = ranks;
    finding.sites.push_back({key.first, SiteRole::exception, fmt::format("on {}", ranks.phrase())});
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Evaluation loops give figures that count every sample; a run cut short by a limit is not judged.
std::vector<Finding> sample_findings(const OneRun& run) {
  std::vector<Finding> findings;
  for (const char* stage : {"validation", "test", "predict"}) {
    const std::optional<int64_t> samples = samples_of_stage(run, stage);
    std::map<std::pair<int32_t, int64_t>, RankSamples> passes;
    const std::vector<RankLog>& ranks = run.preparation.log->ranks;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      for (const SampleUse& use : ranks[rank].samples) {
        if (use.stage == stage && use.dataloader == 0) {
          const auto number = static_cast<int32_t>(rank);
          RankSamples& pass = passes[{number, use.epoch}];
          pass.rank = number;
          pass.epoch = static_cast<int32_t>(use.epoch);
          pass.indices = use.samples;
        }
      }
    }
    std::vector<RankSamples> taken;
    int64_t first_epoch = 0;
    for (auto& [key, pass] : passes) {
      first_epoch += pass.epoch == passes.begin()->second.epoch
                         ? static_cast<int64_t>(pass.indices.size())
                         : 0;
      taken.push_back(std::move(pass));
    }
    if (samples && !taken.empty() && first_epoch >= *samples && !run.result.hung) {
      append(findings, every_sample_once(taken, *samples));
    }
  }
  return findings;
}

std::vector<std::string> parameter_names(const OneRun& run) {
  std::vector<std::string> names;
  if (run.preparation.network) {
    for (const ParameterPlace place : run.preparation.network->parameters()) {
      names.push_back(run.preparation.network->parameter_name(place));
    }
  }
  return names;
}

std::vector<NamedValues> parameters_of(const OneRun& run) {
  const std::vector<std::string> names = parameter_names(run);
  std::vector<NamedValues> values;
  const std::vector<RankLog>& ranks = run.preparation.log->ranks;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<Values>& parameters = ranks[rank].final_parameters;
    for (size_t index = 0; index < parameters.size() && index < names.size(); ++index) {
      values.push_back({names[index], static_cast<int32_t>(rank), parameters[index]});
    }
  }
  return values;
}

std::vector<Finding> replica_findings(const OneRun& run) {
  std::vector<ReplicaValues> replicas;
  for (NamedValues& values : parameters_of(run)) {
    replicas.push_back(
        {values.rank, "data parallel 0", std::move(values.name), std::move(values.values)});
  }
  return run.result.hung ? std::vector<Finding>() : replicas_agree(replicas);
}

// Each step adds, for every element, one product sum over the batch; before and behind it stand the
// inner products of every layer. All of them are rounded.
int64_t rounded_operations(const OneRun& run) {
  const Network* network = run.preparation.network.get();
  if (network == nullptr) {
    return 0;
  }
  int64_t widest = 1;
  for (const Layer& layer : network->layers) {
    for (const ParameterTensor& tensor : layer.parameters) {
      const int64_t rows = tensor.shape.empty() ? 1 : std::max<int64_t>(1, tensor.shape.front());
      widest = std::max({widest, rows, tensor.elements() / rows});
    }
  }
  const Results results = configuration_of(run);
  const int64_t batch = results.effective_batch_size.value_or(1);
  const auto layers = static_cast<int64_t>(network->layers.size()) + 1;
  const int64_t steps = std::max<int64_t>(1, run.preparation.log->ranks.front().steps);
  return (Flops(2) * layers * steps * (widest + batch)).count();
}

}  // namespace

std::vector<Finding> findings_of(const OneRun& run, World world) {
  DiagnosisOptions options;
  options.backend = run.preparation.gloo ? Backend::gloo : Backend::nccl;
  options.timeout = run.preparation.timeout;
  options.world = world == World::threads ? "on threads over Gloo" : "";
  std::vector<Finding> findings = diagnose(run.result, options);
  append(findings, statement_findings(run));
  append(findings, raised_findings(run, findings));
  append(findings, sample_findings(run));
  append(findings, replica_findings(run));
  sort_findings(findings);
  return findings;
}

std::vector<Finding> refusals_of(const std::vector<Problem>& problems, Sites& sites) {
  std::vector<Finding> findings;
  for (const Problem& problem : problems) {
    if (problem.kind != Problem::Kind::refused) {
      continue;
    }
    Finding finding = lockstep::finding_of(problem.code, Level::error, problem.message);
    Site site;
    site.description = problem.message;
    site.file = problem.place.file;
    site.line = problem.place.line;
    site.column = problem.place.column;
    finding.sites.push_back({sites.add(site), SiteRole::subject, "the framework refuses this"});
    finding.when = "before training";
    if (!problem.remedy.empty()) {
      finding.fix = {problem.remedy};
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> single_device_findings(const OneRun& run, const OneRun& single) {
  EqualityRule rule;
  rule.operations = run.preparation.plan.integer_values ? 0 : rounded_operations(run);
  return equals_single_device(parameters_of(run), parameters_of(single), rule);
}

}  // namespace lockstep::cli
