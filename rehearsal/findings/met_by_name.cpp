#include "rehearsal/findings/met_by_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "model/scenario/expressions_of.hpp"
#include "model/user_program/sites.hpp"
#include "properties/diagnosis/divergence.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/findings/guard_of_call.hpp"
#include "rehearsal/findings/horovod_stall.hpp"
#include "rehearsal/findings/unmet_names.hpp"
#include "rehearsal/findings/unnamed_waits.hpp"

namespace lockstep::cli {

namespace {

bool is_in_user_code(const OneRun& run, const Finding& finding) {
  return std::ranges::any_of(finding.sites, [&run](const FindingSite& place) {
    const Site* site = run.preparation.sites.find(place.site);
    return site != nullptr && site->line > 0;
  });
}

bool is_hang(const Finding& finding) {
  return finding.code.starts_with("LS10") && finding.level == Level::error;
}

std::string end_of(const OneRun& run, int32_t rank) {
  switch (end_of_rank(run.result, rank)) {
    case RankEnd::Kind::raised:
      return raised_text(run.result.ends[static_cast<size_t>(rank)].message);
    case RankEnd::Kind::lost: return lost_text(run.result, rank);
    case RankEnd::Kind::finished: return "ended";
    default: return "comes as far as " + last_operation(*run.result.journal, rank).name;
  }
}

bool is_rank_lost(const OneRun& run, const Unmet& unmet) {
  return end_of_rank(run.result, unmet.missing.first()) == RankEnd::Kind::lost;
}

// Whether the values of the expressions in it may make this pattern that name.
bool may_be(const TextPattern& pattern, std::string_view name) {
  if (!name.starts_with(pattern.words.front()) || !name.ends_with(pattern.words.back())) {
    return false;
  }
  return !pattern.values.empty() || name == pattern.words.front();
}

// Whether a statement gives that name which did not hand it over here: a rank that waits for
// something else may come to it.
bool comes_elsewhere(const OneRun& run, const Unmet& unmet, bool is_guarded) {
  bool comes = false;
  const std::string_view given = std::string_view(unmet.name).substr(unmet.name.find('.') + 1);
  for_each_statement(*run.preparation.scenario->program, [&](const Statement& statement) {
    if (!statement.communication.name) {
      return;
    }
    const TextPattern& pattern = statement.communication.name->value;
    const bool is_same = site_of(statement) == unmet.site;
    const bool in_other_turn = !is_guarded && !pattern.values.empty();
    comes = comes || ((!is_same || in_other_turn) && may_be(pattern, given));
  });
  return comes;
}

// Whether two statements are what an `if` and its `else` hand over, by calls of one kind.
bool may_be_misspelt(const OneRun& run, const Unmet& one, const Unmet& other) {
  const Site* const first = run.preparation.sites.find(one.site);
  const Site* const second = run.preparation.sites.find(other.site);
  const auto kind = [](const Unmet& unmet) { return unmet.name.substr(0, unmet.name.find('.')); };
  return first != nullptr && second != nullptr && first->guard == second->guard &&
         first->in_else != second->in_else && kind(one) == kind(other) && kind(one) != one.name;
}

std::vector<std::string> fix_of_crossing(const OneRun& run, const Unmet& unmet,
                                         const Unmet& crossing, bool is_guarded) {
  if (comes_elsewhere(run, unmet, is_guarded)) {
    return {"start them with `async: true` and `wait` once all are started: ranks may start them",
            "in any order, but not wait for one before they start what the others wait for"};
  }
  if (may_be_misspelt(run, unmet, crossing)) {
    return {"give both the same name if they are one tensor; else every rank must hand over both"};
  }
  return {};
}

std::vector<std::string> fix_of_unmet(const OneRun& run, const Unmet& unmet, const Unmet* crossing,
                                      const std::optional<GuardOfCall>& guard) {
  if (is_rank_lost(run, unmet)) {
    return {"start the job again from a checkpoint; what took the rank away is the cause"};
  }
  if (!run.preparation.scenario->is_bare_program()) {
    return {unmet.name.starts_with("broadcast.")
                ? "let the optimizers of all ranks train the same parameters"
                : "let all ranks run as many backwards"};
  }
  if (crossing != nullptr) {
    std::vector<std::string> fix = fix_of_crossing(run, unmet, *crossing, guard.has_value());
    if (!fix.empty()) {
      return fix;
    }
  }
  return remedy_for_unmet(unmet, guard);
}

std::string consequence_of_unmet(const OneRun& run, const Unmet& first, const std::string& names) {
  const bool is_one = first.waiting.size() == 1;
  const std::string has =
      fmt::format("{} {} handed over {}", first.waiting.phrase(), is_one ? "has" : "have", names);
  if (is_rank_lost(run, first)) {
    const bool by_mpirun = run.preparation.placement.launch.launcher == "mpirun";
    return fmt::format(
        "{}, and {} {} gone: within milliseconds all others raise HorovodInternalError, and {} "
        "ends all processes as soon as one has failed",
        has, first.missing.phrase(), first.missing.size() == 1 ? "is" : "are",
        by_mpirun ? "mpirun" : "horovodrun");
  }
  const bool is_one_missing = first.missing.size() == 1;
  return fmt::format("Horovod stall: {}, and {} {}. {}", has, first.missing.phrase(),
                     first.came_before ? (is_one_missing ? "does not again" : "do not again")
                     : is_one_missing  ? "never does"
                                       : "never do",
                     stall_limits(*run.preparation.scenario));
}

std::string title_of_names(const OneRun& run, const Unmet& first, const std::vector<Unmet>& unmet) {
  const std::string waits = first.waiting.size() == 1 ? "waits" : "wait";
  if (is_rank_lost(run, first)) {
    return fmt::format("{} {} for {}: {} {} lost", first.waiting.phrase(), waits, names_of(unmet),
                       first.missing.phrase(), first.missing.size() == 1 ? "was" : "were");
  }
  return fmt::format("{} {} forever for {}: {}", first.waiting.phrase(), waits, names_of(unmet),
                     never_text(first, unmet.size()));
}

// Where the others wait for this side in turn, for a name of their own; null: they do not.
const Unmet* crossing_of(const std::vector<Unmet>& all, const Unmet& first) {
  const auto found = std::ranges::find_if(all, [&first](const Unmet& other) {
    return other.waiting.contains(first.missing.first()) &&
           other.missing.contains(first.waiting.first());
  });
  return found == all.end() ? nullptr : &*found;
}

// When one of those that wait handed it over.
Time handed_over_at(const OneRun& run, const Unmet& unmet) {
  const LaneJournal& lane = run.result.journal->lane(unmet.waiting.first(), 0);
  Time at = Time::max();
  lane.for_each([&](const Row& row) {
    if (row.row == RowKind::op && row.site == unmet.site) {
      at = lane.completion(row.sequence).issue;
    }
  });
  return at;
}

// What keeps a rank from a statement is the cause of what it leaves out. Without that few ranks
// leave out what the others do, or those that went on without it wait for the others later.
std::vector<Unmet> cause_first(const OneRun& run, std::vector<Unmet> all) {
  using Order = std::tuple<bool, int64_t, Time, size_t>;  // the last: by name, as they come
  std::vector<Order> orders;
  for (const Unmet& unmet : all) {
    const bool is_guarded =
        guard_of_statement(run, unmet.site, unmet.waiting, unmet.missing).has_value();
    orders.emplace_back(!is_guarded, unmet.missing.size(), handed_over_at(run, unmet),
                        orders.size());
  }
  std::ranges::sort(orders);
  std::vector<Unmet> sorted;
  for (const Order& order : orders) {
    sorted.push_back(std::move(all[std::get<size_t>(order)]));
  }
  return sorted;
}

Finding finding_of_names(const OneRun& run, const std::vector<Unmet>& all) {
  const std::vector<Unmet> unmet = alike(all);
  const Unmet& first = unmet.front();
  Finding finding = finding_of("LS101", Level::error, title_of_names(run, first, unmet));
  finding.ranks = first.waiting;
  finding.sites.push_back({first.site, SiteRole::subject, "handed over here"});
  const std::optional<GuardOfCall> guard =
      name_guard(run, first.site, first.waiting, first.missing, finding);
  finding.did.push_back({first.waiting, 0, "hands over " + first.name, first.site});
  const int32_t absent = first.missing.first();
  const Unmet* const crossing = crossing_of(all, first);
  const SiteId last =
      crossing != nullptr ? crossing->site : last_operation(*run.result.journal, absent).site;
  finding.did.push_back({first.missing, 0,
                         crossing != nullptr
                             ? fmt::format("hands over {} and waits for it", crossing->name)
                             : end_of(run, absent),
                         last});
  finding.sites.push_back({last, SiteRole::other, fmt::format("the last call of rank {}", absent)});
  finding.follows.push_back(consequence_of_unmet(run, first, names_of(unmet)));
  finding.fix = fix_of_unmet(run, first, crossing, guard);
  return finding;
}

}  // namespace

bool goes_through_horovod(const OneRun& run) {
  const std::optional<ProcessGroupSpec>& group = run.preparation.scenario->process_group;
  return run.preparation.placement.traits.gathers_rows ||
         (group && group->backend && group->backend->value == ProcessGroupBackend::horovod);
}

void tell_tensors_met_by_name(const OneRun& run, std::vector<Finding>& findings) {
  if (!run.result.hung || run.result.journal == nullptr) {
    return;
  }
  const std::vector<Unmet> all = cause_first(run, unmet_of(run));
  if (all.empty()) {
    if (std::optional<Finding> finding = unnamed_waits(run)) {
      std::erase_if(findings, is_hang);
      findings.push_back(std::move(*finding));
    }
    return;
  }
  const auto told = std::ranges::find_if(findings, [&run](const Finding& finding) {
    return is_hang(finding) && is_in_user_code(run, finding);
  });
  const bool has_cause = told != findings.end();
  if (has_cause) {
    told->follows.push_back(consequence_of_unmet(run, all.front(), names_of(alike(all))));
  }
  std::erase_if(findings, [&run](const Finding& finding) {
    return is_hang(finding) && !is_in_user_code(run, finding);
  });
  if (!has_cause) {
    findings.push_back(finding_of_names(run, all));
  }
}

}  // namespace lockstep::cli
