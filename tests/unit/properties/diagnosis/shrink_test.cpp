#include "properties/diagnosis/shrink.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace shrink_test {

namespace {

std::string value_of(std::span<const Setting> settings, const std::string& name,
                     const std::string& otherwise) {
  for (const Setting& setting : settings) {
    if (setting.name == name) {
      return setting.value;
    }
  }
  return otherwise;
}

const std::vector<Setting> candidates = {
    {"devices", "1"}, {"devices", "2"}, {"devices", "4"}, {"steps", "1"}, {"steps", "3"}};

}  // namespace

TEST_CASE("the smallest value of each name that still shows the defect is taken") {
  const Shrunk shrunk = shrink(candidates, [](std::span<const Setting> settings) {
    return std::stoi(value_of(settings, "devices", "8")) >= 2;
  });
  CHECK(shrunk.text() == "--set devices=2 --set steps=1");
  CHECK(shrunk.finished);
}

TEST_CASE("a later reduction lets an earlier name shrink further") {
  const Shrunk shrunk = shrink(candidates, [](std::span<const Setting> settings) {
    const int devices = std::stoi(value_of(settings, "devices", "8"));
    const int steps = std::stoi(value_of(settings, "steps", "100"));
    return devices * 50 >= steps;
  });
  CHECK(shrunk.text() == "--set devices=1 --set steps=1");
}

TEST_CASE("what never shows smaller stays as it is") {
  const Shrunk shrunk = shrink(candidates, [](auto) { return false; });
  CHECK(shrunk.text().empty());
  CHECK(shrunk.runs == 5);
}

TEST_CASE("the search ends at its bound and says so") {
  const Shrunk shrunk = shrink(
      candidates, [](auto) { return false; }, 3);
  CHECK(shrunk.runs == 3);
  CHECK_FALSE(shrunk.finished);
}

}  // namespace shrink_test
