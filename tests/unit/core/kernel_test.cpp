#include "model/core/kernel.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "model/core/op.hpp"

using namespace lockstep;

// Whoever reads kernels from a file takes them up to the last one.
TEST_CASE("every kernel has a name of its own, and none comes behind the last") {
  std::set<std::string_view> names;
  const auto last = static_cast<uint16_t>(last_kernel);
  for (uint16_t number = 0; number <= last; ++number) {
    const std::string_view name = name_of(static_cast<Kernel>(number));
    CHECK(name != "?");
    CHECK(names.insert(name).second);
  }
  CHECK(name_of(static_cast<Kernel>(last + 1)) == "?");
}
