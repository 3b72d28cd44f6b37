#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::cli {

/// How much of how much is done.
struct Amount {
  int64_t done = 0;
  int64_t total = 0;
};

/// How long what is counted still takes, by the rate so far. Times are seconds on any one clock.
class Countdown {
 public:
  /// Counts anew where the total is another than before, or less is done.
  void note(const Amount& amount, double now);
  /// Nothing until it has counted for a second, and something was done since.
  std::optional<double> left(double now) const;

 private:
  double since_ = 0;
  int64_t from_ = 0;
  Amount amount_{};
};

/// What the line of progress of a command says.
class ProgressLine {
 public:
  /// `unit`: "cases".
  void expect(int64_t count, const std::string& unit, double now);
  void case_begins(const std::string& name);
  void case_ends(double now);
  /// What is done within the case: "on one device", and of how many such parts it is.
  void phase(const std::string& what, std::optional<Amount> amount, double now);
  /// Within the phase: "step 12 of 200". No total: it is not known.
  void step(const std::string& unit, int64_t done, std::optional<int64_t> total, double now);

  /// "12 s, about 40 s left · 3 of 8 cases done · train.yaml · step 12 of 200", in at most `width`
  /// characters: a name that is too long loses its beginning.
  std::string text(double now, size_t width = 79) const;

 private:
  std::optional<double> left(double now) const;

  Amount cases_{};
  std::string unit_;
  std::string case_;
  std::string phase_;
  std::string step_;
  Countdown of_cases_;
  std::optional<Countdown> of_phases_;
  std::optional<Countdown> of_steps_;
};

}  // namespace lockstep::cli
