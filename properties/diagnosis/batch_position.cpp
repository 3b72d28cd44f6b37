#include "properties/diagnosis/batch_position.hpp"

#include <fmt/format.h>

#include <map>

namespace lockstep {

namespace {

/// A loop over batches as its marks leave it at some row.
struct Loop {
  SiteId site{};
  std::string batches;    ///< "training"
  int64_t passes = 0;     ///< that have ended
  int64_t simulated = 0;  ///< of these
  int64_t begun = 0;      ///< batches of the pass that has not
  bool is_inside = false;
};

struct Loops {
  std::map<SiteId, Loop> all;
  const Loop* last = nullptr;  ///< that was marked
  const Loop* training = nullptr;
};

Loops loops_at(const Sites& sites, const Decisions& decisions, int64_t row) {
  Loops loops;
  for (const BatchMark& mark : decisions.batches()) {
    if (mark.row >= row) {
      break;
    }
    Loop& loop = loops.all[mark.site];
    loop.site = mark.site;
    loop.batches = sites.find(mark.site)->batches;
    loop.is_inside = mark.goes_on;
    loop.begun = mark.goes_on ? mark.batches : 0;
    loop.passes = mark.passes;
    if (mark.is_behind_left_out) {
      continue;  // other loops may have been left out as well
    }
    loop.simulated += mark.goes_on ? 0 : 1;
    loops.last = &loop;
    loops.training = loop.batches == "training" ? &loop : loops.training;
  }
  return loops;
}

}  // namespace

std::string batch_position(const Sites& sites, const Decisions& decisions, int64_t row) {
  const Loops loops = loops_at(sites, decisions, row);
  if (loops.last == nullptr) {
    return "";
  }
  const std::string here =
      loops.last->is_inside ? fmt::format("{} batch {}", loops.last->batches, loops.last->begun - 1)
                            : fmt::format("after its {} batches", loops.last->batches);
  if (loops.training == nullptr) {
    return here;
  }
  const int64_t epoch =
      loops.training->is_inside ? loops.training->passes : loops.training->passes - 1;
  return fmt::format("epoch {}, {}", epoch, here);
}

std::optional<Decision> unequal_batches(const Sites& sites, const Decisions& left, int64_t row,
                                        const Decisions& right) {
  const std::vector<Decision>& all = left.all();
  for (auto mine = all.rbegin(); mine != all.rend(); ++mine) {
    const Site* const site = mine->row < row ? sites.find(mine->site) : nullptr;
    if (site == nullptr || site->batches.empty()) {
      continue;
    }
    const Decision* const theirs = right.at(mine->site, mine->turn);
    if (theirs != nullptr && theirs->value != mine->value) {
      return *mine;
    }
  }
  return std::nullopt;
}

bool is_in_extra_batch(const Sites& sites, const Decisions& left, int64_t row,
                       const Decisions& right) {
  const Loops loops = loops_at(sites, left, row);
  for (const auto& [site, loop] : loops.all) {
    const Decision* const theirs = loop.is_inside ? right.at(site, loop.simulated) : nullptr;
    if (theirs != nullptr && loop.begun > static_cast<int64_t>(theirs->value)) {
      return true;
    }
  }
  return false;
}

std::string batches_of(const Sites& sites, const std::optional<Decision>& decision) {
  const Site* const site = decision ? sites.find(decision->site) : nullptr;
  return site == nullptr ? "" : site->batches;
}

}  // namespace lockstep
