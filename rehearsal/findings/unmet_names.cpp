#include "rehearsal/findings/unmet_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/strategy/data_parallel/horovod/process_sets.hpp"
#include "model/trainer/prepare/strategy_arguments.hpp"

namespace lockstep::cli {

namespace {

void add_rank(Unmet& unmet, int32_t rank, int64_t times, int64_t most) {
  (times == most ? unmet.waiting : unmet.missing).add(rank);
  unmet.came_before = unmet.came_before || (times < most && times > 0);
}

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
      add_rank(unmet, rank, times(rank), most);
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
  for (int32_t rank = 0; rank < ranks; ++rank) {
    for (const auto& [name, handed_over] : log.ranks[rank].handed_over) {
      times[name].resize(static_cast<size_t>(ranks), 0);
      times[name][static_cast<size_t>(rank)] = handed_over.times;
    }
  }
  std::vector<Unmet> all;
  for (const auto& [name, counts] : times) {
    Unmet unmet{no_site, name, {}, {}};
    const int64_t most = *std::ranges::max_element(counts);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      add_rank(unmet, rank, counts[static_cast<size_t>(rank)], most);
    }
    if (!unmet.missing.empty()) {
      unmet.site = log.ranks[unmet.waiting.first()].handed_over.at(name).site;
      all.push_back(std::move(unmet));
    }
  }
  return all;
}

}  // namespace

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

std::string never_text(const Unmet& unmet, size_t names) {
  const bool is_one = unmet.missing.size() == 1;
  return fmt::format("{} {} {} over{}", unmet.missing.phrase(),
                     unmet.came_before ? (is_one ? "does not hand" : "do not hand")
                     : is_one          ? "never hands"
                                       : "never hand",
                     names == 1 ? "it" : "them", unmet.came_before ? " again" : "");
}

std::vector<std::string> remedy_for_unmet(const Unmet& unmet,
                                          const std::optional<GuardOfCall>& guard) {
  if (!guard || guard->kind != ChoiceKind::branch) {
    return {
        "let every rank hand over each name as often as the others; a rank without data can "
        "`join`"};
  }
  const bool is_reduced = unmet.name.starts_with("allreduce.");
  return {fmt::format("every rank must hand over {}: take the call out of the `if` on `{}`{}",
                      unmet.name, guard->condition, is_reduced ? ";" : ""),
          is_reduced ? "a rank that has nothing to add hands over zeros, or makes `join`"
                     : "guard only what needs one rank (printing, logging, writing a file)"};
}

}  // namespace lockstep::cli
