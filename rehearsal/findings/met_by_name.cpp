#include "rehearsal/findings/met_by_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/strategy/data_parallel/horovod/process_sets.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"
#include "properties/diagnosis/divergence.hpp"
#include "properties/diagnosis/last_operation.hpp"
#include "rehearsal/findings/horovod_stall.hpp"
#include "rehearsal/findings/unnamed_waits.hpp"

namespace lockstep::cli {

namespace {

/// A name that some ranks have handed over more often than others.
struct Unmet {
  SiteId site{};
  std::string name;
  RankSet waiting;
  RankSet missing;
};

/// Ranks that meet by name: those of a process set, or all.
std::vector<RankSet> sets_of(const OneRun& run) {
  std::vector<RankSet> sets;
  const std::optional<TrainerSpec>& trainer = run.preparation.scenario->trainer;
  if (trainer && trainer->strategy) {
    for (const auto& ranks : process_sets_of(strategy_arguments_of(*trainer->strategy))) {
      RankSet& set = sets.emplace_back();
      for (const int64_t rank : ranks) {
        set.add(static_cast<int32_t>(rank));
      }
    }
  }
  if (sets.empty()) {
    sets.push_back(RankSet::all(run.result.journal->ranks()));
  }
  return sets;
}

/// How often each rank has handed over what is met by name.
std::map<SiteId, std::vector<int64_t>> times_of(const OneRun& run) {
  const Journal& journal = *run.result.journal;
  std::map<SiteId, std::vector<int64_t>> times;  // by rank
  for (const auto& [id, site] : run.preparation.sites.all()) {
    if (!site.met_by_name.empty()) {
      times[id].resize(static_cast<size_t>(journal.ranks()), 0);
    }
  }
  for (int32_t rank = 0; rank < journal.ranks() && !times.empty(); ++rank) {
    journal.lane(rank, 0).for_each([&](const Row& row) {
      const auto named = row.row == RowKind::op ? times.find(row.site) : times.end();
      if (named != times.end()) {
        ++named->second[static_cast<size_t>(rank)];
      }
    });
  }
  return times;
}

std::vector<Unmet> unmet_in(const OneRun& run, const RankSet& set) {
  std::vector<Unmet> all;
  const std::vector<int32_t> ranks = set.ranks();
  for (const auto& [id, counts] : times_of(run)) {
    const auto times = [&counts](int32_t rank) { return counts[static_cast<size_t>(rank)]; };
    const int64_t most = times(*std::ranges::max_element(ranks, {}, times));
    Unmet unmet{id, run.preparation.sites.find(id)->met_by_name, {}, {}};
    for (const int32_t rank : ranks) {
      (times(rank) == most ? unmet.waiting : unmet.missing).add(rank);
    }
    if (!unmet.missing.empty()) {
      all.push_back(std::move(unmet));
    }
  }
  std::ranges::sort(all, {}, &Unmet::name);
  return all;
}

/// What the statements of a bare program have handed over.
std::vector<Unmet> unmet_of_statements(const OneRun& run) {
  const RunLog& log = *run.preparation.log;
  const int32_t ranks = run.result.journal->ranks();
  std::map<std::string, std::vector<int64_t>> times;  // by rank
  std::map<std::string, SiteId> sites;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (const auto& [name, handed_over] : log.ranks[rank].handed_over) {
      times[name].resize(static_cast<size_t>(ranks), 0);
      times[name][static_cast<size_t>(rank)] = handed_over.times;
      sites[name] = handed_over.site;
    }
  }
  std::vector<Unmet> all;
  for (const auto& [name, counts] : times) {
    Unmet unmet{sites[name], name, {}, {}};
    const int64_t most = *std::ranges::max_element(counts);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      (counts[static_cast<size_t>(rank)] == most ? unmet.waiting : unmet.missing).add(rank);
    }
    if (!unmet.missing.empty()) {
      unmet.site = log.ranks[unmet.waiting.first()].handed_over.at(name).site;
      all.push_back(std::move(unmet));
    }
  }
  return all;
}

/// Of the first set in which something is unmet.
std::vector<Unmet> unmet_of(const OneRun& run) {
  if (run.preparation.scenario->is_bare_program()) {
    return unmet_of_statements(run);
  }
  for (const RankSet& set : sets_of(run)) {
    if (std::vector<Unmet> unmet = unmet_in(run, set); !unmet.empty()) {
      return unmet;
    }
  }
  return {};
}

/// Those that the same ranks wait for.
std::vector<Unmet> alike(const std::vector<Unmet>& all) {
  std::vector<Unmet> same;
  std::ranges::copy_if(all, std::back_inserter(same), [&all](const Unmet& other) {
    return other.waiting == all.front().waiting && other.missing == all.front().missing;
  });
  return same;
}

std::string names_of(const std::vector<Unmet>& all) {
  constexpr size_t most_told = 3;
  std::string names;
  for (size_t i = 0; i < std::min(all.size(), most_told); ++i) {
    names += (i == 0 ? "" : ", ") + all[i].name;
  }
  return all.size() > most_told ? fmt::format("{} and {} more", names, all.size() - most_told)
                                : names;
}

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

std::vector<std::string> fix_of(const OneRun& run, const Unmet& unmet, bool crosses) {
  if (end_of_rank(run.result, unmet.missing.first()) == RankEnd::Kind::lost) {
    return {"start the job again from a checkpoint; what took the rank away is the cause"};
  }
  if (!run.preparation.scenario->is_bare_program()) {
    return {"let all ranks run as many backwards"};
  }
  if (crosses) {
    return {"give both the same name if they are one tensor; else start them with `async: true`",
            "and `wait` once all are started: ranks may start them in any order, but not wait for",
            "one before they start what the others wait for"};
  }
  return {
      "let every rank hand over each name as often as the others; a rank without data can "
      "`join`"};
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
  const std::vector<Unmet> all_unmet = unmet_of(run);
  if (all_unmet.empty()) {
    if (std::optional<Finding> finding = unnamed_waits(run)) {
      std::erase_if(findings, is_hang);
      findings.push_back(std::move(*finding));
    }
    return;
  }
  const std::vector<Unmet> unmet = alike(all_unmet);
  const Unmet& first = unmet.front();
  const std::string follows = fmt::format(
      "Horovod stall: {} {}, and {} never {}. {}",
      first.waiting.phrase() +
          (first.waiting.size() == 1 ? " has handed over" : " have handed over"),
      names_of(unmet), first.missing.phrase(), first.missing.size() == 1 ? "does" : "do",
      stall_limits(*run.preparation.scenario));
  const auto told = std::ranges::find_if(findings, [&run](const Finding& finding) {
    return is_hang(finding) && is_in_user_code(run, finding);
  });
  const bool has_cause = told != findings.end();
  if (has_cause) {
    told->follows.push_back(follows);
  }
  std::erase_if(findings, [&run](const Finding& finding) {
    return is_hang(finding) && !is_in_user_code(run, finding);
  });
  if (has_cause) {
    return;
  }
  Finding finding = finding_of(
      "LS101", Level::error,
      fmt::format("{} {} forever for {}: {} never hand{} {} over", first.waiting.phrase(),
                  first.waiting.size() == 1 ? "waits" : "wait", names_of(unmet),
                  first.missing.phrase(), first.missing.size() == 1 ? "s" : "",
                  unmet.size() == 1 ? "it" : "them"));
  finding.ranks = first.waiting;
  finding.sites.push_back({first.site, SiteRole::subject, "handed over here"});
  finding.did.push_back({first.waiting, 0, "hands over " + first.name, first.site});
  const int32_t absent = first.missing.first();
  // Where the others wait for this side in turn, for a name of their own.
  const auto crossing = std::ranges::find_if(all_unmet, [&first, absent](const Unmet& other) {
    return other.waiting.contains(absent) && other.missing.contains(first.waiting.first());
  });
  const bool crosses = crossing != all_unmet.end();
  const SiteId last = crosses ? crossing->site : last_operation(*run.result.journal, absent).site;
  finding.did.push_back({first.missing, 0,
                         crosses ? fmt::format("hands over {} and waits for it", crossing->name)
                                 : end_of(run, absent),
                         last});
  finding.sites.push_back({last, SiteRole::other, fmt::format("the last call of rank {}", absent)});
  finding.follows.push_back(follows);
  finding.fix = fix_of(run, first, crosses);
  findings.push_back(std::move(finding));
}

}  // namespace lockstep::cli
