#include "properties/every_sample_once.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "properties/remedy.hpp"

namespace lockstep {

namespace {

// How often each sample was taken, and by whom; those taken once are the bulk and cost one entry.
std::map<int64_t, std::vector<int32_t>> takers(std::span<const RankSamples> taken, int32_t epoch) {
  std::map<int64_t, std::vector<int32_t>> by_sample;
  for (const RankSamples& samples : taken) {
    if (samples.epoch == epoch) {
      for (const int64_t index : samples.indices) {
        by_sample[index].push_back(samples.rank);
      }
    }
  }
  return by_sample;
}

Finding finding_of(std::span<const RankSamples> taken, int32_t epoch, int64_t samples,
                   const SampleCounts& counts) {
  Finding finding = lockstep::finding_of(
      "LS304", Level::error,
      fmt::format("epoch {}: of {} samples {} are counted more than once and {} never", epoch,
                  samples, counts.repeated, counts.missed));
  const auto by_sample = takers(taken, epoch);
  for (const auto& [sample, ranks] : by_sample) {
    if (ranks.size() > 1) {
      finding.ranks.add(RankSet(ranks));
      if (finding.why.text.empty()) {
        finding.why.text =
            fmt::format("sample {} is taken {} by {}", sample,
                        times_text(static_cast<int64_t>(ranks.size())), RankSet(ranks).phrase());
      }
    }
  }
  for (int64_t sample = 0; sample < samples && finding.why.text.empty(); ++sample) {
    if (!by_sample.contains(sample)) {
      finding.why.text = fmt::format("sample {} is taken by no rank", sample);
    }
  }
  finding.follows.push_back(fmt::format("a figure over this epoch counts {} samples",
                                        samples + counts.repeated - counts.missed));
  finding.fix = remedy_for("LS304");
  return finding;
}

}  // namespace

SampleCounts count_samples(std::span<const RankSamples> taken, int32_t epoch, int64_t samples) {
  std::vector<int64_t> all;  // sorted: a map of millions of samples takes minutes
  for (const RankSamples& one : taken) {
    if (one.epoch == epoch) {
      all.insert(all.end(), one.indices.begin(), one.indices.end());
    }
  }
  std::sort(all.begin(), all.end());
  SampleCounts counts;
  int64_t seen = 0;
  for (size_t index = 0; index < all.size(); ++index) {
    const bool again = index > 0 && all[index] == all[index - 1];
    counts.repeated += again ? 1 : 0;
    seen += !again && all[index] >= 0 && all[index] < samples ? 1 : 0;
  }
  counts.missed = samples - seen;
  return counts;
}

std::vector<Finding> every_sample_once(std::span<const RankSamples> taken, int64_t samples) {
  std::set<int32_t> epochs;
  for (const RankSamples& one : taken) {
    epochs.insert(one.epoch);
  }
  for (const int32_t epoch : epochs) {
    const SampleCounts counts = count_samples(taken, epoch, samples);
    if (counts.repeated != 0 || counts.missed != 0) {
      return {finding_of(taken, epoch, samples, counts)};
    }
  }
  return {};
}

}  // namespace lockstep
