#pragma once

#include <catch2/catch.hpp>

#include "tests/conformance/world.hpp"

namespace lockstep::test {

using Texts = std::vector<std::string>;
using Numbers = std::vector<double>;

/// Runs the body in both worlds, which must agree in everything but time, and gives the real arm.
inline Arm run_both(Worlds& worlds, const RunOptions& options, const Body& body) {
  Arms arms = worlds.run(options, body);
  CHECK(disagreements(arms) == Texts{});
  return std::move(arms.real);
}

/// The ranks that ended otherwise than well, in order; empty when the run ended well.
inline std::vector<int32_t> unfinished(const Arm& arm) {
  std::vector<int32_t> ranks;
  for (size_t rank = 0; rank < arm.result.ends.size(); ++rank) {
    if (arm.result.ends[rank].kind != RankEnd::Kind::finished) {
      ranks.push_back(static_cast<int32_t>(rank));
    }
  }
  return ranks;
}

}  // namespace lockstep::test
