#include "rehearsal/progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "model/core/characters.hpp"
#include "rehearsal/text/fitted_text.hpp"

namespace lockstep::cli {

namespace {

constexpr double patience_s = 1;
constexpr size_t separator_width = 3;
constexpr size_t name_width_min = 12;

std::string duration(double seconds) {
  if (seconds < 60) {
    return fmt::format("{:.0f} s", std::max(1.0, std::ceil(seconds)));
  }
  return seconds < 3'600 ? fmt::format("{:.0f} min", std::ceil(seconds / 60))
                         : fmt::format("{:.1f} h", seconds / 3'600);
}

}  // namespace

void Countdown::note(const Amount& amount, double now) {
  if (amount.total != amount_.total || amount.done < amount_.done) {
    since_ = now;
    from_ = amount.done;
  }
  amount_ = amount;
}

// What takes longer than the rate so far moves the end away, as the time that it takes counts.
std::optional<double> Countdown::left(double now) const {
  const int64_t done = amount_.done - from_;
  if (done <= 0 || amount_.done >= amount_.total || now - since_ < patience_s) {
    return std::nullopt;
  }
  return (now - since_) / static_cast<double>(done) *
         static_cast<double>(amount_.total - amount_.done);
}

void ProgressLine::expect(int64_t count, const std::string& unit, double now) {
  cases_ = {0, count};
  unit_ = unit;
  of_cases_ = {};
  of_cases_.note(cases_, now);
}

void ProgressLine::case_begins(const std::string& name) {
  case_ = name;
  phase_.clear();
  step_.clear();
  of_phases_.reset();
  of_steps_.reset();
}

void ProgressLine::case_ends(double now) {
  ++cases_.done;
  of_cases_.note(cases_, now);
}

void ProgressLine::phase(const std::string& what, std::optional<Amount> amount, double now) {
  phase_ = what;
  step_.clear();
  of_steps_.reset();
  if (!amount) {
    of_phases_.reset();
    return;
  }
  of_phases_ = of_phases_.value_or(Countdown());
  of_phases_->note(*amount, now);
}

void ProgressLine::step(const std::string& unit, int64_t done, std::optional<int64_t> total,
                        double now) {
  step_ = total ? fmt::format("{} {} of {}", unit, done, *total) : fmt::format("{} {}", unit, done);
  if (!total) {
    of_steps_.reset();
    return;
  }
  of_steps_ = of_steps_.value_or(Countdown());
  of_steps_->note({done, *total}, now);
}

// Of all that is to be done: what the case at hand still takes says little of the others.
std::optional<double> ProgressLine::left(double now) const {
  if (cases_.total > 1) {
    return of_cases_.left(now);
  }
  if (of_phases_) {
    return of_phases_->left(now);
  }
  return of_steps_ ? of_steps_->left(now) : std::nullopt;
}

// What is done and what is left comes before the name of the file, which may be a long path.
std::string ProgressLine::text(double now, size_t width) const {
  std::string begin = fmt::format("{:.0f} s", now);
  if (const std::optional<double> seconds = left(now)) {
    begin += fmt::format(", about {} left", duration(*seconds));
  }
  if (cases_.total > 1) {
    begin += fmt::format(" · {} of {} {} done", cases_.done, cases_.total, unit_);
  }
  std::string end;
  for (const std::string* part : {&phase_, &step_}) {
    end += part->empty() ? "" : " · " + *part;
  }
  std::string name;
  if (!case_.empty()) {
    const size_t others = characters(begin) + characters(end) + separator_width;
    const size_t room = others < width ? width - others : 0;
    name = " · " + with_last_characters(case_, std::max(room, name_width_min));
  }
  return with_first_characters(begin + name + end, width);
}

}  // namespace lockstep::cli
