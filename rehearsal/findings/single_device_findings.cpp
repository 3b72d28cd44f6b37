#include "rehearsal/findings/single_device_findings.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "properties/invariants/equals_single_device.hpp"
#include "rehearsal/findings/divided_batch.hpp"
#include "rehearsal/findings/finding_place.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/known_differences.hpp"

namespace lockstep::cli {

namespace {

// By name: the largest of any element, with a margin, as either run rounds in its own way.
std::map<std::string, double, std::less<>> distances(const std::vector<NamedValues>& one,
                                                     const std::vector<NamedValues>& other) {
  constexpr double margin = 4;
  std::map<std::string, double, std::less<>> distances;
  for (size_t at = 0; at < std::min(one.size(), other.size()); ++at) {
    double& distance = distances[one[at].name];
    for (int64_t i = 0; i < std::min(one[at].values.size(), other[at].values.size()); ++i) {
      const double apart = std::abs(one[at].values.number(i) - other[at].values.number(i));
      distance = std::max(distance, margin * apart);
    }
  }
  return distances;
}

}  // namespace

std::vector<Finding> single_device_findings(const OneRun& run, const OneRun& single,
                                            const OneRun* otherwise) {
  EqualityRule rule = equality_rule(run);
  if (otherwise != nullptr) {
    rule.carried = distances(parameters_of(single), parameters_of(*otherwise));
  }
  tell_what_is_divided(run, rule);
  std::vector<Finding> findings =
      equals_single_device(parameters_of(run), parameters_of(single), rule);
  for (Finding& finding : findings) {
    tell_known_differences(run, finding);
  }
  place_findings(run, findings);
  return findings;
}

}  // namespace lockstep::cli
