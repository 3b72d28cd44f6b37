#include "tests/unit/oracle/agreement.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

namespace lockstep::test {

using nlohmann::json;

namespace {

double greatest_of(const json& value) {
  double greatest = value.is_number() ? std::abs(value.get<double>()) : 0;
  if (value.is_structured()) {
    for (const json& child : value) {
      greatest = std::max(greatest, greatest_of(child));
    }
  }
  return greatest;
}

bool agree_within(const json& ours, const json& theirs, double allowed) {
  if (ours.is_number() && theirs.is_number()) {
    return std::abs(ours.get<double>() - theirs.get<double>()) <= allowed;
  }
  if (ours.type() != theirs.type() || ours.size() != theirs.size() || !theirs.is_structured()) {
    return ours == theirs;
  }
  if (theirs.is_object()) {
    return std::all_of(theirs.items().begin(), theirs.items().end(), [&](const auto& item) {
      return ours.contains(item.key()) && agree_within(ours[item.key()], item.value(), allowed);
    });
  }
  return std::equal(ours.begin(), ours.end(), theirs.begin(),
                    [&](const json& a, const json& b) { return agree_within(a, b, allowed); });
}

// A sum whose terms cancel is as inexact as its terms, so the greatest number among all tensors of
// one iteration is the measure of what may differ.
bool agree_in_each(const json& ours, const json& theirs, double tolerance) {
  return ours.size() == theirs.size() &&
         std::equal(ours.begin(), ours.end(), theirs.begin(), [&](const json& a, const json& b) {
           return agree_within(a, b, tolerance * greatest_of(b));
         });
}

}  // namespace

std::vector<std::filesystem::path> recordings_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path all = LOCKSTEP_SOURCE_DIR "/tests/data/oracle";
  for (const auto& entry : std::filesystem::directory_iterator(all / folder)) {
    if (entry.is_regular_file()) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

json recording_at(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

void check_agree(const char* what, const json& ours, const json& theirs, double tolerance) {
  INFO(what << ", allowed " << tolerance << "\nours   " << ours << "\ntheirs " << theirs);
  CHECK(agree_in_each(ours, theirs, tolerance));
}

json as_single_precision(const json& losses) {
  json rounded = json::array();
  for (const json& loss : losses) {
    rounded.push_back(static_cast<double>(loss.get<float>()));
  }
  return rounded;
}

}  // namespace lockstep::test
