#include "rehearsal/run/folding.hpp"

#include <algorithm>
#include <span>

namespace lockstep::cli {

namespace {

// What a strategy raises by itself may depend on the part of the weights that a rank has, which is
// more than what ranks are said to be alike by.
bool is_raised_by_strategy(const OneRun& run, const RankEnd& end) {
  const Site* const site = run.preparation.sites.find(end.site);
  return end.kind == RankEnd::Kind::raised && !end.out_of_memory &&
         (site == nullptr || site->line == 0);
}

// Where neighbours exchange something in groups of their own, findings name a group of those whose
// ranks run; not where ranks wait for others that are out of memory, which is what is reported.
bool needs_all_ranks(const OneRun& run) {
  const std::span<const RankEnd> ends = run.result.ends.distinct();
  const bool lacks_memory = std::ranges::any_of(ends, &RankEnd::out_of_memory);
  const bool end_well = std::ranges::all_of(ends, [&](const RankEnd& end) {
    return end.kind == RankEnd::Kind::finished || end.out_of_memory ||
           (end.kind == RankEnd::Kind::stuck && lacks_memory);
  });
  return run.preparation.options.classes->exchange_with_neighbours()
             ? (run.result.hung && !lacks_memory) || !end_well
             : std::ranges::any_of(
                   ends, [&](const RankEnd& end) { return is_raised_by_strategy(run, end); });
}

}  // namespace

bool is_answer(const OneRun& run, const Folding& tried, Folding& folding) {
  const RankClasses* const classes = run.preparation.options.classes.get();
  if (!run.ran || classes == nullptr || !run.undecided.empty()) {
    return true;
  }
  if (folding.links != tried.links || folding.columns != tried.columns) {
    return false;
  }
  const bool differ = !run.result.ranks_differ.empty();
  if (differ && classes->have_columns()) {
    folding.columns = false;
    return false;
  }
  folding.ranks = !differ && !needs_all_ranks(run);
  return folding.ranks;
}

}  // namespace lockstep::cli
