#include "properties/diagnosis/decision.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <map>
#include <utility>

namespace lockstep {

namespace {

bool is_decision(const Row& row) {
  return row.row == RowKind::choice && (row.tag == static_cast<int32_t>(ChoiceKind::branch) ||
                                        row.tag == static_cast<int32_t>(ChoiceKind::repeat));
}

std::string value_text(ChoiceKind kind, uint32_t value) {
  if (kind == ChoiceKind::repeat) {
    return times_text(value);
  }
  return value != 0 ? "true" : "false";
}

bool begins_word(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}
bool continues_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '.';
}

// Names that are the same on every rank or give only the place and the progress of a rank.
bool tells_place_or_progress(std::string_view word) {
  constexpr std::array<std::string_view, 19> names = {
      "rank",          "world_size",     "local_rank",      "node_rank",  "is_global_zero",
      "is_last_batch", "global_step",    "epoch",           "batch_idx",  "batch_size",
      "num_batches",   "dataloader_idx", "sanity_checking", "and",        "or",
      "not",           "true",           "false",           "global_rank"};
  return std::find(names.begin(), names.end(), word) != names.end();
}

// Whether a name of the condition is what is looked for: is_wanted(word, whether it is called).
template <class IsWanted>
bool any_name(std::string_view condition, IsWanted is_wanted) {
  bool after_number = false;  // then a word is a unit
  for (size_t at = 0; at < condition.size();) {
    const char letter = condition[at];
    size_t end = at + 1;
    if (letter == '\'') {
      end = std::min(condition.find('\'', at + 1), condition.size() - 1) + 1;
    } else if (continues_word(letter)) {
      while (end < condition.size() && continues_word(condition[end])) {
        ++end;
      }
      const bool is_call = end < condition.size() && condition[end] == '(';
      if (begins_word(letter) && !after_number &&
          is_wanted(condition.substr(at, end - at), is_call)) {
        return true;
      }
      after_number = !begins_word(letter);
    } else {
      after_number = after_number && letter == ' ';
    }
    at = end;
  }
  return false;
}

bool names_rank(std::string_view condition) {
  constexpr std::array<std::string_view, 5> names = {"rank", "global_rank", "local_rank",
                                                     "node_rank", "is_global_zero"};
  return any_name(condition, [&names](std::string_view word, bool) {
    return std::find(names.begin(), names.end(), word) != names.end();
  });
}

}  // namespace

Decisions::Decisions(const Journal& journal, int32_t rank, int32_t lane) {
  const Sites& sites = journal.sites;
  int64_t index = -1;
  journal.lane(rank, lane).for_each([&](const Row& row) {
    ++index;
    const Site* const site = is_decision(row) ? sites.find(row.site) : nullptr;
    const bool marks = site != nullptr && !site->batches.empty() &&
                       row.tag == static_cast<int32_t>(ChoiceKind::branch);
    if (row.row == RowKind::choice && row.tag == static_cast<int32_t>(ChoiceKind::statement)) {
      note_mark(row, index);
    } else if (marks) {
      batches_.push_back({row.site, row.peer != 0, index});
    } else if (is_decision(row)) {
      std::vector<size_t>& turns = by_site_[row.site];
      decisions_.push_back({row.site, static_cast<ChoiceKind>(row.tag),
                            static_cast<uint32_t>(row.peer), std::ssize(turns), index});
      turns.push_back(decisions_.size() - 1);
    }
  });
  number_batches(journal.repeated_on(rank, lane));
}

// Of a loop that ends within a period, whole passes are left out, else batches of one: the rank may
// be within one of them already, and is within a later one then.
void Decisions::number_batches(std::span<const RepeatedRows> left_out) {
  struct Loop {
    int64_t passes = 0;
    int64_t batches = 0;
    std::array<std::vector<int64_t>, 2> more{};  ///< by entry: passes, batches
  };
  const auto counted = [&](SiteId site, bool goes_on) {
    return times_repeated(left_out, [&, site, goes_on](const RepeatedRows& rows) {
      return std::ranges::count_if(batches_, [&](const BatchMark& mark) {
        return mark.site == site && mark.goes_on == goes_on && rows.begin <= mark.row &&
               mark.row < rows.end;
      });
    });
  };
  std::map<SiteId, Loop> loops;
  std::vector<BatchMark> numbered;
  size_t entry = 0;
  const auto count_left_out = [&](int64_t row) {
    for (; entry < left_out.size() && left_out[entry].row <= row; ++entry) {
      for (auto& [site, loop] : loops) {
        const int64_t passes = loop.more[0][entry];
        const int64_t batches = passes > 0 ? 0 : loop.more[1][entry];
        loop.passes += passes;
        loop.batches += batches;
        if (passes + batches > 0) {
          numbered.push_back(
              {site, loop.batches > 0, left_out[entry].row - 1, loop.batches, loop.passes, true});
        }
      }
    }
  };
  for (BatchMark& mark : batches_) {
    count_left_out(mark.row);
    const auto [known, fresh] = loops.try_emplace(mark.site);
    Loop& loop = known->second;
    if (fresh) {
      loop.more = {counted(mark.site, false), counted(mark.site, true)};
    }
    loop.batches += mark.goes_on ? 1 : 0;
    loop.passes += mark.goes_on ? 0 : 1;
    mark.batches = loop.batches;
    mark.passes = loop.passes;
    loop.batches = mark.goes_on ? loop.batches : 0;
    numbered.push_back(mark);
  }
  count_left_out(std::numeric_limits<int64_t>::max());
  batches_ = std::move(numbered);
}

void Decisions::note_mark(const Row& row, int64_t index) {
  int64_t innermost = marks_.empty() ? -1 : marks_.back().innermost;
  if (row.peer == 1) {
    statements_.push_back({row.site, ChoiceKind::statement, 1, 0, index});
    around_.push_back(innermost);
    innermost = std::ssize(statements_) - 1;
  } else {
    // An exception leaves statements without a mark: those inside of this one have ended with it.
    int64_t ended = innermost;
    while (ended >= 0 && statements_[static_cast<size_t>(ended)].site != row.site) {
      ended = around_[static_cast<size_t>(ended)];
    }
    innermost = ended < 0 ? innermost : around_[static_cast<size_t>(ended)];
  }
  marks_.push_back({index, innermost});
}

const Decision* Decisions::last_before(SiteId site, int64_t row) const {
  const auto turns = by_site_.find(site);
  if (turns == by_site_.end()) {
    return nullptr;
  }
  const auto after = std::partition_point(turns->second.begin(), turns->second.end(),
                                          [&](size_t at) { return decisions_[at].row < row; });
  return after == turns->second.begin() ? nullptr : &decisions_[*std::prev(after)];
}

std::vector<const Decision*> Decisions::statements_at(int64_t row) const {
  const auto after = std::partition_point(marks_.begin(), marks_.end(),
                                          [row](const Mark& mark) { return mark.row < row; });
  std::vector<const Decision*> around;
  int64_t at = after == marks_.begin() ? -1 : std::prev(after)->innermost;
  for (; at >= 0; at = around_[static_cast<size_t>(at)]) {
    around.push_back(&statements_[static_cast<size_t>(at)]);
  }
  return around;
}

bool Decisions::came_to(SiteId statement) const {
  return std::ranges::any_of(statements_,
                             [statement](const Decision& mark) { return mark.site == statement; });
}

const Decision* Decisions::at(SiteId site, int64_t turn) const {
  const auto turns = by_site_.find(site);
  const bool has = turns != by_site_.end() && turn >= 0 && turn < std::ssize(turns->second);
  return has ? &decisions_[turns->second[static_cast<size_t>(turn)]] : nullptr;
}

std::optional<Decision> guard_that_differs(const Sites& sites, SiteId site, const Decisions& caller,
                                           int64_t row, const Decisions& other) {
  const Site* inner = sites.find(site);
  for (int level = 0; inner != nullptr && inner->guard != no_site && level < nesting_max; ++level) {
    const Decision* mine = caller.last_before(inner->guard, row);
    const Decision* theirs = mine == nullptr ? nullptr : other.at(mine->site, mine->turn);
    if (theirs != nullptr && theirs->value != mine->value) {
      return *mine;
    }
    inner = sites.find(inner->guard);
  }
  return std::nullopt;
}

bool guard_is_open(const Sites& sites, SiteId site, const Decisions& caller, int64_t row,
                   const Decisions& other) {
  const Site* inner = sites.find(site);
  for (int level = 0; inner != nullptr && inner->guard != no_site && level < nesting_max; ++level) {
    const Decision* mine = caller.last_before(inner->guard, row);
    const Site* guard = sites.find(inner->guard);
    if (mine != nullptr && other.at(mine->site, mine->turn) == nullptr && guard != nullptr &&
        names_rank(guard->condition)) {
      return true;
    }
    inner = guard;
  }
  return false;
}

std::optional<Decision> first_that_differs(const Decisions& left, int64_t begin, int64_t end,
                                           const Decisions& right) {
  for (const Decision& mine : left.all()) {
    if (mine.row < begin || mine.row >= end) {
      continue;
    }
    const Decision* theirs = right.at(mine.site, mine.turn);
    if (theirs != nullptr && theirs->value != mine.value) {
      return mine;
    }
  }
  return std::nullopt;
}

bool stands_in(const Sites& sites, SiteId site, SiteId guard) {
  const Site* inner = sites.find(site);
  for (int level = 0; inner != nullptr && inner->guard != no_site && level < nesting_max; ++level) {
    if (inner->guard == guard) {
      return true;
    }
    inner = sites.find(inner->guard);
  }
  return false;
}

std::vector<std::string> statements_behind(const Sites& sites, SiteId decision,
                                           const Decisions& left, const Decisions& right) {
  std::vector<std::string> found;
  for (const Decisions* side : {&left, &right}) {
    for (const Decision& statement : side->statements()) {
      const Site* const site = sites.find(statement.site);
      if (site != nullptr && stands_in(sites, statement.site, decision) &&
          std::ranges::find(found, site->description) == found.end()) {
        found.push_back(site->description);
      }
    }
  }
  return found;
}

std::optional<Decision> parting_before(const Sites& sites, const Decisions& left, int64_t row,
                                       const Decisions& right) {
  std::map<SiteId, bool> leads;
  for (auto mine = left.all().rbegin(); mine != left.all().rend(); ++mine) {
    const Decision* const theirs = mine->row < row ? right.at(mine->site, mine->turn) : nullptr;
    if (theirs == nullptr || theirs->value == mine->value) {
      continue;
    }
    const auto [known, fresh] = leads.try_emplace(mine->site, false);
    if (fresh) {
      known->second = !statements_behind(sites, mine->site, left, right).empty();
    }
    if (known->second) {
      return *mine;
    }
  }
  return std::nullopt;
}

std::vector<Way> ways_of(const Journal& journal, const RankSet& ranks, LaneId lane,
                         const Decision& decision) {
  std::map<uint32_t, RankSet> by_value;
  for (const int32_t rank : ranks.ranks()) {
    if (lane.value >= journal.lanes(rank)) {
      continue;
    }
    int64_t turn = 0;
    journal.lane(rank, lane.value).for_each([&](const Row& row) {
      if (is_decision(row) && row.site == decision.site &&
          row.tag == static_cast<int32_t>(decision.kind) && turn++ == decision.turn) {
        by_value[static_cast<uint32_t>(row.peer)].add(rank);
      }
    });
  }
  std::vector<Way> ways;
  for (auto at = by_value.rbegin(); at != by_value.rend(); ++at) {
    ways.push_back({at->second, value_text(decision.kind, at->first)});
  }
  return ways;
}

int64_t times_until(const Journal& journal, int32_t rank, LaneId lane, const Decision& decision) {
  std::vector<int64_t> rows;
  int64_t index = 0;
  journal.lane(rank, lane.value).for_each([&](const Row& row) {
    if (is_decision(row) && row.site == decision.site) {
      rows.push_back(index);
    }
    ++index;
  });
  const std::span<const RepeatedRows> left_out = journal.repeated_on(rank, lane.value);
  const std::vector<int64_t> times = times_repeated(left_out, [&](const RepeatedRows& repeated) {
    return std::ranges::lower_bound(rows, repeated.end) -
           std::ranges::lower_bound(rows, repeated.begin);
  });
  int64_t all = decision.turn + 1;
  for (size_t entry = 0; entry < times.size() && left_out[entry].row <= decision.row; ++entry) {
    all += times[entry];
  }
  return all;
}

bool depends_on_data(std::string_view condition) {
  return any_name(condition, [](std::string_view word, bool is_call) {
    return word == "random" || (!is_call && !tells_place_or_progress(word));
  });
}

}  // namespace lockstep
