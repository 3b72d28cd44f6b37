#include "properties/every_sample_once.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "properties/remedy.hpp"

namespace lockstep {

namespace {

/// Fewer may come in the same order twice by chance.
constexpr size_t least_samples_of_order = 8;

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

// A sampler that pads repeats less than one sample a rank. Without it ranks have unequally many,
// and what averages them as if they had not is wrong by more.
std::vector<std::string> remedy_of(std::span<const RankSamples> taken, int64_t samples,
                                   const SampleCounts& counts) {
  std::set<int32_t> ranks;
  for (const RankSamples& one : taken) {
    ranks.insert(one.rank);
  }
  const int64_t size = std::ssize(ranks);
  if (counts.missed > 0 || counts.repeated >= size) {
    return remedy_for("LS304");
  }
  if (samples < size) {
    return {fmt::format("give every rank a sample of its own: {} at least", size)};
  }
  return {fmt::format("make the number of samples a multiple of the {} ranks; or evaluate without "
                      "padding",
                      size),
          "(`sampler: unrepeated`) and log metric objects, which merge unequal parts"};
}

std::string skipped_text(int64_t missed) {
  return missed == 0 ? "none is skipped"
                     : fmt::format("{} {} skipped", missed, missed == 1 ? "is" : "are");
}

Finding finding_of(std::span<const RankSamples> taken, int32_t epoch, int64_t samples,
                   const SampleCounts& counts) {
  Finding finding = lockstep::finding_of(
      "LS304", Level::error,
      fmt::format("epoch {}: {} of {} samples {} used more than once; {}", epoch, counts.repeated,
                  samples, counts.repeated == 1 ? "is" : "are", skipped_text(counts.missed)));
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
  finding.follows.push_back(fmt::format("metrics of this epoch count {} samples",
                                        samples + counts.repeated - counts.missed));
  finding.fix = remedy_of(taken, samples, counts);
  return finding;
}

int64_t distinct_by_sorting(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::unique(numbers.begin(), numbers.end()) - numbers.begin();
}

// Counts numbers in [0, bound). If many of them occur, this is much faster than sorting.
int64_t distinct_by_marking(const std::vector<int64_t>& numbers, int64_t bound) {
  std::vector<bool> occurs(static_cast<size_t>(bound));
  for (const int64_t number : numbers) {
    occurs[static_cast<size_t>(number)] = true;
  }
  return std::count(occurs.begin(), occurs.end(), true);
}

}  // namespace

SampleCounts count_samples(std::span<const RankSamples> taken, int32_t epoch, int64_t samples) {
  size_t taken_count = 0;
  for (const RankSamples& one : taken) {
    taken_count += one.epoch == epoch ? one.indices.size() : 0;
  }
  std::vector<int64_t> known;
  std::vector<int64_t> unknown;  // of no sample that there is
  known.reserve(taken_count);
  for (const RankSamples& one : taken) {
    if (one.epoch == epoch) {
      for (const int64_t index : one.indices) {
        (index >= 0 && index < samples ? known : unknown).push_back(index);
      }
    }
  }
  const auto known_count = static_cast<int64_t>(known.size());
  const auto unknown_count = static_cast<int64_t>(unknown.size());
  const int64_t seen = known_count < samples / 64 ? distinct_by_sorting(std::move(known))
                                                  : distinct_by_marking(known, samples);
  SampleCounts counts;
  counts.repeated = known_count - seen + unknown_count - distinct_by_sorting(std::move(unknown));
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

std::vector<Finding> samples_divided(std::span<const RankSamples> taken, int64_t samples) {
  if (taken.empty() || samples < 1) {
    return {};
  }
  const int32_t epoch = taken.front().epoch;
  const SampleCounts counts = count_samples(taken, epoch, samples);
  if (counts.repeated < samples) {
    return {};
  }
  Finding finding = finding_of(taken, epoch, samples, counts);
  finding.level = Level::warning;
  finding.follows = {
      fmt::format("every rank reads the whole data set, so one epoch processes it {}",
                  times_text(std::ssize(taken)))};
  finding.fix = {
      "give each rank its part: a DistributedSampler, or for iterable data islice by rank"};
  return {finding};
}

std::vector<Finding> order_changes(std::span<const RankSamples> taken) {
  std::map<int32_t, std::map<int32_t, const std::vector<int64_t>*>> epochs;
  bool shuffled = false;
  size_t count = 0;
  for (const RankSamples& one : taken) {
    epochs[one.epoch][one.rank] = &one.indices;
    shuffled = shuffled || !std::is_sorted(one.indices.begin(), one.indices.end());
  }
  if (epochs.size() < 2 || !shuffled) {
    return {};
  }
  const auto& first = *epochs.begin();
  const auto& second = *std::next(epochs.begin());
  for (const auto& [rank, indices] : first.second) {
    const auto other = second.second.find(rank);
    if (other == second.second.end() || *other->second != *indices) {
      return {};
    }
    count += indices->size();
  }
  if (count < least_samples_of_order) {
    return {};
  }
  Finding finding = lockstep::finding_of(
      "LS304", Level::warning,
      fmt::format("epoch {} repeats the order of epoch {}: set_epoch is not called", second.first,
                  first.first));
  finding.why.text =
      "DistributedSampler draws its order from its seed and the epoch given to set_epoch";
  finding.follows = {"all epochs have the same batches"};
  finding.fix = {
      "call sampler.set_epoch(epoch) before each epoch, or let Lightning insert the sampler"};
  return {finding};
}

}  // namespace lockstep
