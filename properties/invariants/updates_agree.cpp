#include "properties/invariants/updates_agree.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "properties/diagnosis/remedy.hpp"

namespace lockstep {

namespace {

/// The updates of one rank, one after the other.
class Reader {
 public:
  explicit Reader(const RankUpdates& of) : rank_(of.rank), updates_(of.updates) {}
  int32_t rank() const { return rank_; }
  /// Null: the rank makes no further update.
  const WeightUpdate* now() const { return at_ < updates_.size() ? &updates_[at_] : nullptr; }
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
  size_t at_ = 0;
  int64_t taken_ = 0;
};

bool alike(const WeightUpdate* a, const WeightUpdate* b) {
  return a == nullptr || b == nullptr ? a == b : a->does_as(*b);
}

bool all_alike(const std::vector<Reader>& readers) {
  return std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
    return alike(reader.now(), readers.front().now());
  });
}

/// Goes on to the first update that differs, or to the end; returns how many came before.
int64_t skip_what_agrees(std::vector<Reader>& readers) {
  int64_t number = 0;
  while (readers.front().now() != nullptr && all_alike(readers)) {
    int64_t count = readers.front().alike();
    for (const Reader& reader : readers) {
      count = std::min(count, reader.alike());
    }
    for (Reader& reader : readers) {
      reader.skip(count);
    }
    number += count;
  }
  return number;
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
SiteId site_of_difference(const std::vector<Reader>& readers) {
  SiteId step = no_site;
  for (const Reader& reader : readers) {
    const WeightUpdate* update = reader.now();
    if (update == nullptr) {
      continue;
    }
    const bool alone = std::any_of(readers.begin(), readers.end(), [&](const Reader& other) {
      return other.now() != nullptr && other.now()->clipping_site != update->clipping_site;
    });
    if (alone && update->clipping_site != no_site) {
      return update->clipping_site;
    }
    step = step == no_site ? update->site : step;
  }
  return step;
}

}  // namespace

std::vector<Finding> updates_agree(std::span<const RankUpdates> ranks) {
  std::vector<Reader> readers(ranks.begin(), ranks.end());
  if (readers.empty()) {
    return {};
  }
  const int64_t before = skip_what_agrees(readers);
  if (all_alike(readers)) {
    return {};
  }
  std::map<std::string, RankSet> by_update;
  RankSet apart;
  for (const Reader& reader : readers) {
    by_update[text_of(reader.now())].add(reader.rank());
    if (!alike(reader.now(), readers.front().now())) {
      apart.add(reader.rank());
    }
  }
  Finding finding = lockstep::finding_of(
      "LS305", Level::error,
      fmt::format("{} {} not update the weights as rank {} does", apart.phrase(),
                  apart.size() == 1 ? "does" : "do", readers.front().rank()));
  finding.ranks = apart;
  finding.group = "data parallel 0";
  if (const SiteId site = site_of_difference(readers); site != no_site) {
    finding.sites.push_back({site, SiteRole::subject, "not on every rank alike"});
  }
  finding.why.text = fmt::format("optimizer step {} differs", before + 1);
  for (const auto& [update, holders] : by_update) {
    finding.why.ways.push_back({holders, update});
  }
  finding.follows.push_back("each of them trains a model of its own; what is saved is one of them");
  finding.fix = remedy_for("LS305");
  return {finding};
}

}  // namespace lockstep
