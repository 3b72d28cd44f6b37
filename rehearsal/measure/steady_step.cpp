#include "rehearsal/measure/steady_step.hpp"

#include <algorithm>
#include <map>

namespace lockstep::cli {

namespace {

/// All but the first, of those that took the most samples.
std::vector<size_t> like_marks(std::span<const StepMark> marks,
                               const std::vector<int64_t>& samples) {
  const bool counted = samples.size() == marks.size();
  const int64_t most = counted ? *std::max_element(samples.begin() + 1, samples.end()) : 0;
  std::vector<size_t> like;
  for (size_t mark = 1; mark < marks.size(); ++mark) {
    if (!counted || samples[mark] == most) {
      like.push_back(mark);
    }
  }
  return like;
}

Time length_of(std::span<const StepMark> marks, size_t mark) {
  return marks[mark].finish - marks[mark - 1].finish;
}

/// The lower one of the middle.
struct Median {
  Time length{};
  int64_t place = 0;  ///< among those that took as long, in the order in which they were taken
};

Median median_of(const std::map<Time, int64_t>& lengths) {
  int64_t all = 0;
  for (const auto& [length, times] : lengths) {
    all += times;
  }
  int64_t place = (all - 1) / 2;
  for (const auto& [length, times] : lengths) {
    if (place < times) {
      return {length, place};
    }
    place -= times;
  }
  return {};
}

}  // namespace

std::optional<SteadyStep> steady_step(const StepSequence& sequence,
                                      const std::vector<int64_t>& samples) {
  const std::span<const StepMark> marks = sequence.marks();
  if (marks.size() <= 1) {
    return marks.empty() ? std::nullopt
                         : std::optional(SteadyStep{0, 0, {}, marks[0].finish, false});
  }
  const std::vector<size_t> like = like_marks(marks, samples);
  const Median median = median_of(sequence.lengths(like));
  const int64_t number = sequence.find(like, median.length, median.place);
  const StepSequence::Step step = sequence.at(number);
  return SteadyStep{number, step.mark, step.finish - step.length, step.finish};
}

SteadyStep drawn_step(const SteadyStep& steady, const StepSequence& sequence,
                      const std::vector<int64_t>& samples) {
  const std::span<const StepMark> marks = sequence.marks();
  const Time length = steady.end - steady.begin;
  const auto is_drawn = [&](size_t mark) { return length_of(marks, mark) == length; };
  const auto is_followed = [&](size_t mark) {
    return is_drawn(mark) && mark + 1 < marks.size() && is_drawn(mark + 1);
  };
  size_t mark = steady.mark;
  if (steady.steady && !is_followed(mark)) {
    const std::vector<size_t> like = like_marks(marks, samples);
    const auto followed = std::ranges::find_if(like, is_followed);
    const auto drawn = is_drawn(mark) ? like.end() : std::ranges::find_if(like, is_drawn);
    mark = followed != like.end() ? *followed : drawn != like.end() ? *drawn : mark;
  }
  const Time end = marks[mark].finish;
  return {steady.number, mark, end - length, end, steady.steady};
}

std::optional<int64_t> counted_step(World world, const StepSequence& sequence,
                                    const std::vector<int64_t>& samples) {
  if (is_real(world) && sequence.marks().size() > 1) {
    const std::vector<size_t> like = like_marks(sequence.marks(), samples);
    return static_cast<int64_t>(like[(like.size() - 1) / 2]);
  }
  const std::optional<SteadyStep> steady = steady_step(sequence, samples);
  return steady ? std::optional(steady->number) : std::nullopt;
}

}  // namespace lockstep::cli
