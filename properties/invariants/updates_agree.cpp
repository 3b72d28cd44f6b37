#include "properties/invariants/updates_agree.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "model/trainer/logging/run_log.hpp"
#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

/// The updates of one rank, one after the other.
class Reader {
 public:
  Reader(const RankUpdates& of, size_t first)
      : rank_(of.rank),
        updates_(of.updates.subspan(first)),
        is_full_(of.updates.size() >= RankLog::weight_updates_max) {}
  int32_t rank() const { return rank_; }
  /// Null: the rank makes no further update.
  const WeightUpdate* now() const { return at_ < updates_.size() ? &updates_[at_] : nullptr; }
  /// What follows is not known: a log keeps so many rows.
  bool is_cut() const { return now() == nullptr && is_full_; }
  /// How many training batches come before it, and with it.
  int64_t batches() const { return now() == nullptr ? 0 : now()->batches; }
  /// How many updates like this one follow from here on, this one included.
  int64_t alike() const { return now() == nullptr ? 0 : now()->times - taken_; }
  void skip(int64_t count) {
    taken_ += count;
    while (now() != nullptr && taken_ >= now()->times) {
      taken_ -= now()->times;
      ++at_;
    }
  }

 private:
  int32_t rank_;
  std::span<const WeightUpdate> updates_;
  bool is_full_;
  size_t at_ = 0;
  int64_t taken_ = 0;
};

bool alike(const WeightUpdate* a, const WeightUpdate* b) {
  return a == nullptr || b == nullptr ? a == b : a->does_as(*b) && a->batches == b->batches;
}

bool all_alike(const std::vector<Reader>& readers) {
  return std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
    return alike(reader.now(), readers.front().now());
  });
}

/// What all ranks have done alike.
struct Common {
  int64_t updates = 0;
  int64_t batches = 0;  ///< of the training
};

/// Goes on to the first update that differs, or to the end.
Common skip_what_agrees(std::vector<Reader>& readers) {
  Common common;
  while (readers.front().now() != nullptr && all_alike(readers)) {
    int64_t count = readers.front().alike();
    for (const Reader& reader : readers) {
      count = std::min(count, reader.alike());
    }
    common.updates += count;
    common.batches += count * readers.front().batches();
    for (Reader& reader : readers) {
      reader.skip(count);
    }
  }
  return common;
}

int64_t times_taken_over(std::span<const WeightUpdate> updates) {
  int64_t times = 0;
  for (const WeightUpdate& update : updates) {
    times += update.takes_over ? update.times : 0;
  }
  return times;
}

/// How many rows there are up to the one by which the ranks have taken over so many models.
size_t rows_until(std::span<const WeightUpdate> updates, int64_t times) {
  size_t row = 0;
  for (; times > 0 && row < updates.size(); ++row) {
    times -= updates[row].takes_over ? updates[row].times : 0;
  }
  return row;
}

Common counted(std::span<const WeightUpdate> updates) {
  Common common;
  for (const WeightUpdate& update : updates) {
    common.updates += update.takes_over ? 0 : update.times;
    common.batches += update.times * update.batches;
  }
  return common;
}

/// By torch's Join ranks hold one model again at its end, although those whose data ended early
/// made fewer steps: only what follows the last one counts. `before`: the most that a rank did
/// until it.
std::vector<Reader> readers_of(std::span<const RankUpdates> ranks, Common& before) {
  int64_t taken_over = std::numeric_limits<int64_t>::max();
  for (const RankUpdates& rank : ranks) {
    taken_over = std::min(taken_over, times_taken_over(rank.updates));
  }
  std::vector<Reader> readers;
  for (const RankUpdates& rank : ranks) {
    const size_t rows = rows_until(rank.updates, taken_over);
    readers.emplace_back(rank, rows);
    const Common own = counted(rank.updates.first(rows));
    before = {std::max(before.updates, own.updates), std::max(before.batches, own.batches)};
  }
  return readers;
}

/// Null where a rank makes no update in the batch in which the first of them does.
const WeightUpdate* update_in(const Reader& reader, int64_t batches) {
  return reader.now() == nullptr || reader.batches() > batches ? nullptr : reader.now();
}

/// After how many batches the first rank makes the update that differs.
int64_t batches_to_difference(const std::vector<Reader>& readers) {
  int64_t batches = std::numeric_limits<int64_t>::max();
  for (const Reader& reader : readers) {
    batches = reader.now() == nullptr ? batches : std::min(batches, reader.batches());
  }
  return batches;
}

std::string text_of(const WeightUpdate* update) {
  if (update == nullptr) {
    return "no optimizer_step";
  }
  std::string text = "optimizer_step";
  if (!update->optimizer.empty()) {
    text += fmt::format(" of {}", update->optimizer);
  }
  text += fmt::format(", lr {}", update->learning_rate);
  if (update->clipping.algorithm != GradientClipping::Algorithm::none) {
    const bool by_norm = update->clipping.algorithm == GradientClipping::Algorithm::norm;
    text += fmt::format(", clip_gradients to {} {}", by_norm ? "norm" : "value",
                        update->clipping.limit);
  }
  return update->has_gradients ? text : text + ", gradients None or 0";
}

/// The statement that some ranks reach and others do not.
SiteId site_of_difference(const std::vector<Reader>& readers, int64_t batches) {
  SiteId step = no_site;
  for (const Reader& reader : readers) {
    const WeightUpdate* update = update_in(reader, batches);
    if (update == nullptr) {
      continue;
    }
    const bool alone = std::any_of(readers.begin(), readers.end(), [&](const Reader& other) {
      const WeightUpdate* theirs = update_in(other, batches);
      return theirs != nullptr && theirs->clipping_site != update->clipping_site;
    });
    if (alone && update->clipping_site != no_site) {
      return update->clipping_site;
    }
    step = step == no_site ? update->site : step;
  }
  return step;
}

}  // namespace

std::vector<Finding> updates_agree(std::span<const RankUpdates> ranks, Holding holding) {
  if (ranks.empty()) {
    return {};
  }
  Common before;
  std::vector<Reader> readers = readers_of(ranks, before);
  const Common alike_since = skip_what_agrees(readers);
  before.updates += alike_since.updates;
  before.batches += alike_since.batches;
  const auto is_cut = [](const Reader& reader) { return reader.is_cut(); };
  if (all_alike(readers) || std::ranges::any_of(readers, is_cut)) {
    return {};
  }
  const int64_t batches = batches_to_difference(readers);
  const WeightUpdate* const first = update_in(readers.front(), batches);
  std::map<std::string, RankSet> by_update;
  RankSet apart;
  for (const Reader& reader : readers) {
    const WeightUpdate* const update = update_in(reader, batches);
    by_update[text_of(update)].add(reader.rank());
    if (!alike(update, first)) {
      apart.add(reader.rank());
    }
  }
  const bool shards = holding == Holding::part;
  Finding finding =
      lockstep::finding_of("LS305", Level::error,
                           fmt::format("{} {} not update {} as rank {} does", apart.phrase(),
                                       apart.size() == 1 ? "does" : "do",
                                       !shards             ? "the weights"
                                       : apart.size() == 1 ? "its part of the weights"
                                                           : "their parts of the weights",
                                       readers.front().rank()));
  finding.ranks = apart;
  finding.group = "data parallel 0";
  if (const SiteId site = site_of_difference(readers, batches); site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, "not on every rank alike"});
  }
  finding.why.text = fmt::format("optimizer step {} differs", before.updates + 1);
  if (batches > 0) {
    finding.why.text += fmt::format(", in training batch {} of the run", before.batches + batches);
  }
  for (const auto& [update, holders] : by_update) {
    finding.why.ways.push_back({holders, update});
  }
  finding.follows.push_back(
      shards ? "the model is put together from parts that were not updated alike, and is saved so"
             : "each of them trains a model of its own; what is saved is one of them");
  finding.fix = remedy_for("LS305");
  return {finding};
}

}  // namespace lockstep
