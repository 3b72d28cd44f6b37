#pragma once

#include <map>
#include <string>
#include <vector>

#include "properties/diagnosis/diagnosis.hpp"
#include "tests/conformance/world.hpp"

namespace lockstep::test {

/// Code, level, ranks and sites of every finding: what two worlds must agree about.
std::vector<std::string> told(const std::vector<Finding>& findings);

/// What came of one case.
struct Verdict {
  std::vector<std::string> failures;  ///< empty: all properties hold
  std::vector<std::string> findings;
  bool hung = false;
};

/// Runs the body in both worlds and holds every property against it: same journal, values, memory,
/// endings and findings given the same choices; equal simulations; ties in any order.
Verdict judge(Worlds& worlds, const RunOptions& options, const Body& body);

/// Counts what the generated cases were like.
class Distribution {
 public:
  void count(const std::string& label) { ++counts_[label]; }
  void draw() { ++drawn_; }
  void count_case() { ++cases_; }
  /// The share of drawn cases that were not counted as one: a precondition threw them away.
  double discards() const {
    return drawn_ == 0 ? 0 : 1 - static_cast<double>(cases_) / static_cast<double>(drawn_);
  }
  int64_t cases() const { return cases_; }
  double share(const std::string& label) const;
  void print(const std::string& title) const;

 private:
  int64_t drawn_ = 0;
  int64_t cases_ = 0;
  std::map<std::string, int64_t> counts_;
};

}  // namespace lockstep::test
