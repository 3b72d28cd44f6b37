#include "properties/invariants/every_sample_once.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "properties/diagnosis/remedy.hpp"

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

int64_t ranks_in(std::span<const RankSamples> taken) {
  std::set<int32_t> ranks;
  for (const RankSamples& one : taken) {
    ranks.insert(one.rank);
  }
  return std::ssize(ranks);
}

// A sampler that pads repeats less than one sample per rank.
bool is_padding(const SampleCounts& counts, int64_t ranks) {
  return counts.missed == 0 && counts.repeated < ranks;
}

// Without padding ranks have unequally many samples, and what averages them as if they had not is
// wrong by more.
std::vector<std::string> remedy_of(int64_t ranks, int64_t samples, const SampleCounts& counts) {
  if (!is_padding(counts, ranks)) {
    return remedy_for("LS304");
  }
  if (samples < ranks) {
    return {fmt::format("give every rank a sample of its own: {} at least", ranks)};
  }
  return {fmt::format("make the number of samples a multiple of the {} ranks; or evaluate without "
                      "padding",
                      ranks),
          "(`sampler: unrepeated`) and log metric objects, which merge unequal parts"};
}

/// How the ranks took the samples of one epoch.
struct Taking {
  std::map<int64_t, std::vector<int32_t>> by_sample;
  int64_t ranks = 0;
  int64_t samples = 0;
  SampleCounts counts;

  int64_t often() const {
    return std::ranges::count_if(by_sample, [](const auto& one) { return one.second.size() > 1; });
  }
  bool is_whole_on_each() const {
    return ranks > 1 && counts.missed == 0 && counts.repeated == samples * (ranks - 1) &&
           often() == samples;
  }
};

const char* is_or_are(int64_t count) { return count == 1 ? "is" : "are"; }

std::string title_of(const Taking& taking, int32_t epoch, const char* deed) {
  const int64_t often = taking.often();
  if (taking.is_whole_on_each()) {
    return fmt::format("every rank takes the whole data set: epoch {} {} each of {} samples {}",
                       epoch, deed, taking.samples, times_text(taking.ranks));
  }
  const bool once_more = taking.counts.repeated == often;
  const std::string repeated =
      fmt::format("{} of {} samples {} taken {}", often, taking.samples, is_or_are(often),
                  once_more ? "twice" : "more than once");
  if (taking.counts.missed == 0) {
    return fmt::format("epoch {}: {}{}; none is skipped", epoch, repeated,
                       is_padding(taking.counts, taking.ranks) ? " (padding of the sampler)" : "");
  }
  const std::string missed =
      fmt::format("{} of {} samples {} taken by no rank", taking.counts.missed, taking.samples,
                  is_or_are(taking.counts.missed));
  return often == 0 ? fmt::format("epoch {}: {}", epoch, missed)
                    : fmt::format("epoch {}: {}, and {}", epoch, repeated, missed);
}

Finding finding_of(std::span<const RankSamples> taken, int32_t epoch, int64_t samples,
                   const SampleCounts& counts, const char* deed) {
  const Taking taking{takers(taken, epoch), ranks_in(taken), samples, counts};
  Finding finding = lockstep::finding_of(
      "LS304", is_padding(counts, taking.ranks) ? Level::warning : Level::error,
      title_of(taking, epoch, deed));
  for (const auto& [sample, ranks] : taking.by_sample) {
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
    if (!taking.by_sample.contains(sample)) {
      finding.why.text = fmt::format("sample {} is taken by no rank", sample);
    }
  }
  finding.follows.push_back(
      fmt::format("what is summed or counted over this epoch is of {} samples instead of {}",
                  samples + counts.repeated - counts.missed, samples));
  finding.fix = remedy_of(taking.ranks, samples, counts);
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
      return {finding_of(taken, epoch, samples, counts, "evaluates")};
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
  Finding finding = finding_of(taken, epoch, samples, counts, "trains on");
  finding.follows = {
      fmt::format("one epoch goes {} times over the data set: the ranks do not divide the work",
                  1 + counts.repeated / samples)};
  finding.fix = {
      "give each rank its part: a DistributedSampler, or for iterable data islice by rank"};
  return {finding};
}

namespace {

// An order that was not shuffled ascends; a sampler that pads begins again behind it.
bool is_shuffled(const std::vector<int64_t>& indices) {
  return indices.end() - std::is_sorted_until(indices.begin(), indices.end()) > 1;
}

}  // namespace

std::vector<Finding> order_changes(std::span<const RankSamples> taken) {
  std::map<int32_t, std::map<int32_t, const std::vector<int64_t>*>> epochs;
  bool shuffled = false;
  size_t count = 0;
  for (const RankSamples& one : taken) {
    epochs[one.epoch][one.rank] = &one.indices;
    shuffled = shuffled || is_shuffled(one.indices);
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
