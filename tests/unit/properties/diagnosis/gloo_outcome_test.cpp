// What torch 2.11.0 did over Gloo on CPUs, recorded call by call: two or three processes, fp32,
// sizes in elements by rank; -6 was the exit status of a process that aborts.
#include "properties/diagnosis/gloo_outcome.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace gloo_outcome_test {

namespace {

using enum GlooOutcome;
using Outcomes = std::vector<GlooOutcome>;

Outcomes outcomes(OpKind kind, const std::vector<int64_t>& elements, int64_t root = 0) {
  std::vector<GlooCall> calls;
  for (const int64_t count : elements) {
    calls.push_back({kind, count * 4, 4, root});
  }
  return gloo_outcomes(calls);
}

}  // namespace

TEST_CASE("Gloo's all_reduce ends the member whose neighbour sends more") {
  CHECK(outcomes(OpKind::all_reduce, {4, 6}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::all_reduce, {6, 4}) == Outcomes{loses_peer, aborts});
  CHECK(outcomes(OpKind::all_reduce, {4, 5}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::all_reduce, {100, 200}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::all_reduce, {40, 40, 60}) == Outcomes{loses_peer, aborts, loses_peer});
  CHECK(outcomes(OpKind::all_reduce, {60, 40, 40}) == Outcomes{loses_peer, loses_peer, aborts});
  // Too short for a segment each: both waited 5 s, their time limit.
  CHECK(outcomes(OpKind::all_reduce, {1, 2}) == Outcomes{waits, waits});
  CHECK(outcomes(OpKind::all_reduce, {4, 4, 4}) == Outcomes{completes, completes, completes});
}

TEST_CASE("Gloo's other collectives end who gets more than it asked for") {
  CHECK(outcomes(OpKind::broadcast, {6, 4}) == Outcomes{completes, aborts});
  CHECK(outcomes(OpKind::broadcast, {4, 6}) == Outcomes{completes, completes});
  CHECK(outcomes(OpKind::broadcast, {6, 6, 4}) == Outcomes{completes, completes, aborts});
  CHECK(outcomes(OpKind::all_gather, {4, 6}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::all_gather, {4, 4, 6}) == Outcomes{aborts, loses_peer, loses_peer});
  CHECK(outcomes(OpKind::reduce, {4, 6}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::reduce, {6, 4}) == Outcomes{loses_peer, aborts});
  CHECK(outcomes(OpKind::gather, {4, 6}) == Outcomes{aborts, completes});
  CHECK(outcomes(OpKind::gather, {6, 4}) == Outcomes{completes, completes});
  CHECK(outcomes(OpKind::scatter, {4, 6}) == Outcomes{completes, completes});
  CHECK(outcomes(OpKind::scatter, {6, 4}) == Outcomes{completes, aborts});
  CHECK(outcomes(OpKind::reduce_scatter, {8, 12}) == Outcomes{aborts, loses_peer});
  CHECK(outcomes(OpKind::all_to_all, {8, 12}) == Outcomes{aborts, loses_peer});
}

TEST_CASE("calls of different kinds or roots never meet over Gloo") {
  const std::vector<GlooCall> kinds = {{OpKind::all_reduce, 16, 4, 0},
                                       {OpKind::broadcast, 16, 4, 0}};
  CHECK(gloo_outcomes(kinds) == Outcomes{waits, waits});
  const std::vector<GlooCall> roots = {{OpKind::broadcast, 16, 4, 0},
                                       {OpKind::broadcast, 16, 4, 1}};
  CHECK(gloo_outcomes(roots) == Outcomes{waits, waits});
}

}  // namespace gloo_outcome_test
