#include "rehearsal/findings/finding_cause.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "model/expression/evaluate.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/user_program/rank_names.hpp"
#include "model/user_program/sites.hpp"
#include "rehearsal/findings/guarded_return.hpp"
#include "rehearsal/findings/unequal_setup.hpp"
#include "rehearsal/run/configuration.hpp"

namespace lockstep::cli {

namespace {

/// A rank's own names, for expressions of keys.
class RankNames final : public Environment {
 public:
  explicit RankNames(const Place& place) : place_(place) {}
  std::optional<Value> lookup(std::string_view name) override { return name_of_rank(name, place_); }
  double random(const SourcePlace&) override { return 0; }
  bool unknown(const SourcePlace&) override { return false; }

 private:
  Place place_;
};

const Statement* statement_at(const OneRun& run, SiteId site) {
  const Statement* found = nullptr;
  if (run.preparation.scenario->program) {
    for_each_statement(*run.preparation.scenario->program, [&](const Statement& statement) {
      found = found == nullptr && site_of(statement) == site ? &statement : found;
    });
  }
  return found;
}

FindingCause cause_of_guard(const OneRun& run, SiteId guard) {
  const Statement* const branch = statement_at(run, guard);
  const auto leaves = branch == nullptr ? std::nullopt : return_in_branch(run, *branch);
  return leaves.value_or(FindingCause{guard, ""});
}

std::string ways_text(const std::map<int64_t, RankSet>& by_count) {
  std::string text;
  for (const auto& [count, ranks] : by_count) {
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", count, ranks.phrase());
  }
  return text;
}

// Of ranks that have unequal numbers of batches, the key that says so.
std::optional<FindingCause> uneven_batches(const OneRun& run, std::string_view stage) {
  const LoaderSpec* const loader = loader_of(run, stage);
  if (loader == nullptr) {
    return std::nullopt;
  }
  const RunOptions& options = run.preparation.options;
  const int64_t ranks = options.world_size;
  std::map<int64_t, RankSet> by_count;
  for (int32_t rank = 0; rank < options.world_size; ++rank) {
    int64_t count = 0;
    if (loader->batches) {
      RankNames names(lockstep::place_of(options, rank));
      try {
        count = evaluate_integer(loader->batches->value, names, "batches");
      } catch (const std::runtime_error&) {
        return std::nullopt;
      }
    } else if (loader->samples && loader->batch_size &&
               value_or(loader->sampler, SamplerKind::automatic) == SamplerKind::unrepeated) {
      const int64_t own = (loader->samples->value - rank + ranks - 1) / ranks;
      const int64_t size = loader->batch_size->value;
      count = value_or(loader->drop_last, false) ? own / size : (own + size - 1) / size;
    }
    by_count[count].add(rank);
  }
  if (by_count.size() < 2) {
    return std::nullopt;
  }
  const SiteId site = loader->batches
                          ? site_of(loader->batches->place)
                          : first_written({place_of_key(loader->sampler), &loader->place});
  return FindingCause{site, ways_text(by_count) + " batches"};
}

std::optional<FindingCause> uneven_batches(const OneRun& run, const Finding& finding) {
  const Site* const site = run.result.journal->sites.find(finding.site());
  const std::string hook = site == nullptr ? std::string() : site->hook;
  if (site != nullptr && site->line > 0 && !hook.ends_with("_step") &&
      hook.find("_batch_") == std::string::npos) {
    return std::nullopt;  // not called once per batch
  }
  for (const char* stage : {"validation", "test", "predict"}) {
    if (hook.find(stage) != std::string::npos) {
      return uneven_batches(run, stage);
    }
  }
  for (const char* stage : {"train", "validation", "test", "predict"}) {
    if (auto cause = uneven_batches(run, stage)) {
      return cause;
    }
  }
  return std::nullopt;
}

bool strikes(const FaultSpec& fault, const RankSet& ranks) {
  if (!fault.rank && !fault.ranks) {
    return true;
  }
  return fault.rank && ranks.contains(static_cast<int32_t>(fault.rank->value));
}

std::optional<FindingCause> fault_behind(const OneRun& run, const RankSet& ranks) {
  for (const FaultSpec& fault : run.preparation.scenario->faults) {
    if (fault.place.line > 0 && strikes(fault, ranks)) {
      return FindingCause{site_of(fault.place), "this fault"};
    }
  }
  return std::nullopt;
}

RankSet all_ranks_of(const Finding& finding) {
  RankSet ranks = finding.ranks;
  for (const RankAction& action : finding.did) {
    ranks.add(action.ranks);
  }
  return ranks;
}

bool is_about_calls(const Finding& finding) {
  return finding.code.starts_with("LS10") || finding.code == "LS303";
}

// A difference of calls, whose own statement may be Lightning's or the strategy's.
std::optional<FindingCause> cause_of_calls(const OneRun& run, const Finding& finding) {
  const auto guard = std::ranges::find(finding.sites, SiteRole::guard, &FindingSite::role);
  if (guard == finding.sites.end()) {
    if (auto uneven = uneven_batches(run, finding)) {
      return uneven;
    }
  }
  if (guard == finding.sites.end() && statement_at(run, finding.site()) == nullptr) {
    if (auto unequal = unequal_setup(run)) {
      return unequal;
    }
  }
  if (has_line(run, finding.site())) {
    return std::nullopt;
  }
  if (guard != finding.sites.end()) {
    return cause_of_guard(run, guard->site);
  }
  if (auto leaves = return_behind(run)) {
    return leaves;
  }
  const auto ended = std::ranges::find(finding.sites, SiteRole::exception, &FindingSite::role);
  if (ended != finding.sites.end() && has_line(run, ended->site)) {
    return FindingCause{ended->site, ""};
  }
  if (auto fault = fault_behind(run, all_ranks_of(finding))) {
    return fault;
  }
  for (const FindingSite& site : finding.sites) {
    if (has_line(run, site.site)) {
      return FindingCause{site.site, ""};
    }
  }
  return std::nullopt;
}

// The longest work of the late rank before the call, by the time that the scenario gives it.
std::optional<FindingCause> cause_of_lateness(const OneRun& run, const Finding& finding) {
  if (finding.ranks.empty() || run.result.journal->lanes(finding.ranks.first()) == 0) {
    return std::nullopt;
  }
  SiteId longest = no_site;
  int64_t work = 0;
  run.result.journal->lane(finding.ranks.first(), 0).for_each([&](const Row& row) {
    const bool is_timed =
        row.row == RowKind::op &&
        (row.kind == OpKind::host || (row.kind == OpKind::compute && row.kernel == Kernel::timed));
    if (is_timed && row.bytes > work && has_line(run, row.site)) {
      longest = row.site;
      work = row.bytes;
    }
  });
  if (longest != no_site) {
    return FindingCause{longest, fmt::format("{} on {}", time_text(work), finding.ranks.phrase())};
  }
  return fault_behind(run, finding.ranks);
}

bool changes_weights(const Statement& statement) {
  using Kind = StatementKind;
  return statement.kind == Kind::backward || statement.kind == Kind::optimizer_step ||
         statement.kind == Kind::clip_gradients || statement.kind == Kind::no_sync ||
         statement.kind == Kind::set_requires_gradient_sync ||
         statement.kind == Kind::toggle_model || statement.kind == Kind::zero_grad ||
         statement.kind == Kind::lr_scheduler_step || statement.kind == Kind::return_hook ||
         statement.kind == Kind::forward;
}

bool is_of_training(const std::string& hook) {
  return hook.find("validation") == std::string::npos && hook.find("test") == std::string::npos &&
         hook.find("predict") == std::string::npos;
}

// The last statement that lets ranks change their weights differently, else past the strategy.
std::optional<FindingCause> statement_behind_weights(const OneRun& run) {
  const std::optional<ProgramSpec>& program = run.preparation.scenario->program;
  std::optional<FindingCause> guarded;
  std::optional<FindingCause> plain;
  if (!program) {
    return std::nullopt;
  }
  for_each_statement(*program, [&](const Statement& statement) {
    if (!is_of_training(statement.hook)) {
      return;
    }
    if (statement.kind == StatementKind::branch && first_taken_apart(run, site_of(statement))) {
      const std::string branch = statement.expression->value.text();
      guarded = FindingCause{site_of(statement), "ranks decide differently"};
      guarded->branch = branch;
      for (const std::vector<Statement>* way : {&statement.body, &statement.otherwise}) {
        for_each_statement(*way, [&](const Statement& inner) {
          if (changes_weights(inner) || inner.kind == StatementKind::let) {
            const bool steps =
                inner.kind == StatementKind::optimizer_step && way == &statement.body;
            guarded->site = site_of(inner);
            guarded->label = fmt::format("on some ranks only, by `{}`", branch);
            guarded->steps_if_true = guarded->steps_if_true || steps;
          }
        });
      }
    }
    const bool passes_by = statement.kind == StatementKind::forward && statement.through &&
                           statement.through->value == ForwardThrough::module;
    if (passes_by || statement.kind == StatementKind::no_sync ||
        statement.kind == StatementKind::set_requires_gradient_sync ||
        (statement.kind == StatementKind::toggle_model && statement.sync_grad)) {
      plain = FindingCause{site_of(statement), "gradients are not exchanged here"};
    }
  });
  return guarded ? guarded : plain;
}

std::optional<FindingCause> cause_of_weights(const OneRun& run, const Finding& finding) {
  if (auto fault = fault_behind(run, all_ranks_of(finding))) {
    return fault;
  }
  if (auto statement = statement_behind_weights(run)) {
    return statement;
  }
  const Scenario& scenario = *run.preparation.scenario;
  if (finding.code == "LS305" && !scenario.schedulers.empty()) {
    const SiteId site = first_written({&scenario.schedulers.front().place});
    if (site != no_site) {
      return FindingCause{site, "changes the rate of each rank"};
    }
  }
  if (auto uneven = uneven_batches(run, "train")) {
    return uneven;
  }
  const TrainerSpec* const trainer = scenario.trainer ? &*scenario.trainer : nullptr;
  const LoaderSpec* const loader = loader_of(run, "train");
  const bool divides = run.preparation.options.devices_per_rank > 1 && loader != nullptr;
  const SiteId site = first_written({divides ? place_of_key(loader->batch_size) : nullptr,
                                     scenario.model ? &scenario.model->place : nullptr,
                                     trainer != nullptr ? place_of_key(trainer->strategy) : nullptr,
                                     trainer != nullptr ? &trainer->place : nullptr});
  return site == no_site ? std::nullopt
                         : std::optional(FindingCause{
                               site, divides ? "divided over the replicas" : "what is trained"});
}

}  // namespace

bool has_line(const OneRun& run, SiteId id) {
  const Site* const site = run.result.journal->sites.find(id);
  return site != nullptr && site->line > 0;
}

SiteId first_written(std::initializer_list<const SourcePlace*> places) {
  for (const SourcePlace* place : places) {
    if (place != nullptr && place->line > 0) {
      return site_of(*place);
    }
  }
  return no_site;
}

std::optional<FindingCause> cause_of(const OneRun& run, const Finding& finding) {
  if (finding.code == "LS402") {
    return cause_of_lateness(run, finding);
  }
  if (finding.code == "LS305" || finding.code == "LS306") {
    return cause_of_weights(run, finding);
  }
  return is_about_calls(finding) ? cause_of_calls(run, finding) : std::nullopt;
}

}  // namespace lockstep::cli
