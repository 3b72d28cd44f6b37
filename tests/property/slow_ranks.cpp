#include "tests/property/slow_ranks.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <vector>

namespace lockstep::test {

namespace {

std::string drawn_of(const std::vector<std::string>& texts) { return *rc::gen::elementOf(texts); }

std::string slow_rank(int ranks, bool has_trainer) {
  const int rank = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, ranks));
  const std::string whom =
      drawn_of({fmt::format("rank: {}", rank), fmt::format("rank: {}", rank),
                fmt::format("ranks: [{}, {}]", rank, (rank + 1) % ranks), "ranks: all"});
  const std::string at =
      has_trainer ? drawn_of({"", ", at: step 2", ", at: epoch 1", ", at: 100 us, for: 2 ms"})
                  : drawn_of({"", ", at: 1 ms, for: 2 ms"});
  return fmt::format("{{{}: {{{}, slowdown: {}{}}}}}",
                     has_trainer ? drawn_of({"straggler", "slow_data"}) : "straggler", whom,
                     *rc::gen::element(2, 5), at);
}

}  // namespace

std::string drawn_slow_ranks(int ranks, bool has_trainer) {
  if (*rc::gen::element(true, true, false)) {
    return "";
  }
  const std::string one = slow_rank(ranks, has_trainer);
  const std::string other =
      *rc::gen::element(true, false) ? ", " + slow_rank(ranks, has_trainer) : std::string();
  return fmt::format("faults: [{}{}]\n", one, other);
}

}  // namespace lockstep::test
