#include "rehearsal/launch/host_memory.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;
using namespace lockstep::cli;

TEST_CASE("available memory is read from the kernel's own words") {
  CHECK(
      available_memory_in("MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n") ==
      Bytes(int64_t{2} << 20));
  for (const char* text :
       {"", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: -1 kB",
        "MemAvailable: 99999999999999999999 kB", "MemAvailable: 9223372036854775807 kB"}) {
    CHECK_FALSE(available_memory_in(text).has_value());
  }
}
