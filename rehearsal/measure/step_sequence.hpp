#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "rehearsal/measure/measure.hpp"

namespace lockstep::cli {

/// The optimizer steps of a rank in the order in which they were taken, with those that a
/// simulation left out where they would have been. Steps are numbered from 0.
class StepSequence {
 public:
  struct Step {
    size_t mark = 0;  ///< the simulated step that shows it, an index into the marks
    Time length{};    ///< since the end of the step before, whichever that was
    Time finish{};
  };

  /// `marks`: the simulated steps of the rank; `repeated`: what was left out of its main lane.
  StepSequence(std::span<const RepeatedRows> repeated, std::span<const StepMark> marks);

  int64_t size() const { return before_.back(); }
  /// `number`: 0 .. size() - 1.
  Step at(int64_t number) const;
  /// Of the steps whose marks are in `marks` and that took so long, the number of the one with
  /// place `place`, from 0. There are more than that.
  int64_t find(const std::vector<size_t>& marks, Time length, int64_t place) const;
  /// How long the steps of these marks took, and how many of them took so long.
  std::map<Time, int64_t> lengths(const std::vector<size_t>& marks) const;
  /// By mark: how many steps it shows.
  std::vector<int64_t> times() const;
  /// The simulated steps.
  std::span<const StepMark> marks() const { return marks_; }

 private:
  /// One step, or what was taken before once more.
  struct Taken {
    Step step{};
    int64_t times = 1;
    size_t from = 0;  ///< of `taken_`, up to `until`: taken again
    size_t until = 0;
    Time later{};   ///< the first time, by so much than what is taken again
    Time period{};  ///< each further time

    bool is_step() const { return until == 0; }
  };
  /// Where a period that is repeated begins or ends.
  struct Place {
    size_t taken = 0;
    Time last_finish{};
  };
  /// One of the steps, and its number.
  struct Found {
    Step step{};
    int64_t number = 0;
  };

  void take_until(int64_t row, int64_t entry);
  void take(size_t mark, Time finish);
  void take_again(size_t from, size_t until, int64_t times, Time later, Time period);
  void repeat(const RepeatedRows& rows);
  std::vector<int64_t> times_taken() const;
  Found descend(const std::vector<int64_t>& before, int64_t place) const;
  std::vector<int64_t> counts_before(const std::vector<char>* marks, Time length) const;
  std::vector<char> among(const std::vector<size_t>& marks) const;

  std::span<const StepMark> marks_;
  std::map<std::pair<int64_t, int64_t>, Place> places_;  ///< by row, and entries before it
  std::vector<Taken> taken_;
  std::vector<int64_t> before_;  ///< steps before each entry of `taken_`, and in all
  size_t next_mark_ = 0;
  int64_t row_ = 0;
  Time last_finish_{};
};

/// How many steps these marks stand for.
int64_t count_steps(std::span<const StepMark> marks);

}  // namespace lockstep::cli
