#include "tests/property/wide_faults.hpp"

#include <fmt/format.h>

#include "tests/property/draws.hpp"

namespace lockstep::test {

namespace {

std::string drawn_ranks(int ranks) {
  const int rank = drawn_below(ranks);
  return one_of({fmt::format("rank: {}", rank), fmt::format("rank: {}", rank),
                 fmt::format("ranks: [{}, {}]", rank, (rank + 1) % ranks), "ranks: all"});
}

std::string slow_rank(int ranks, bool has_trainer) {
  const std::string at =
      has_trainer ? one_of({"", ", at: step 2", ", at: epoch 1", ", at: 100 us, for: 2 ms"})
                  : one_of({"", ", at: 1 ms, for: 2 ms"});
  return fmt::format("{{{}: {{{}, slowdown: {}{}}}}}",
                     has_trainer ? one_of({"straggler", "slow_data"}) : "straggler",
                     drawn_ranks(ranks), *rc::gen::element(2, 5), at);
}

std::string slow_link(int nodes) {
  const int node = drawn_below(nodes);
  return fmt::format("{{slow_link: {{between: [node {}, node {}]{}{}}}}}", node, (node + 1) % nodes,
                     one_of({", bandwidth: 30 %", ", bandwidth: 30 %", ", latency: 40 us"}),
                     one_of({"", ", at: step 2", ", at: 100 us, for: 2 ms"}));
}

// One that ends ranks, or what they wait for.
std::string ending(int ranks, int nodes, bool has_trainer) {
  const std::string whom = drawn_ranks(ranks);
  const std::string at = has_trainer ? one_of({"", ", at: step 1", ", at: step 2", ", at: epoch 1"})
                                     : one_of({"", ", at: 1 ms"});
  const std::string hook = has_trainer
                               ? one_of({"", ", hook: on_train_batch_end",
                                         ", hook: on_train_epoch_end", ", hook: validation_step"})
                               : ", hook: main";
  switch (*rc::gen::element(0, 1, 2, 3, 4, 5, 6)) {
    case 0: return fmt::format("{{lost_rank: {{{}, at: 300 us}}}}", whom);
    case 1: return fmt::format("{{lost_rank: {{{}{}}}}}", whom, at);
    case 2: return fmt::format("{{exception: {{{}{}{}}}}}", whom, at, hook);
    case 3: return fmt::format("{{out_of_memory: {{{}{}{}}}}}", whom, at, hook);
    case 4:
      return fmt::format(
          "{{signal: {{{}, name: {}{}{}}}}}", whom, one_of({"SIGTERM", "SIGKILL"}), at,
          has_trainer ? one_of({"", ", hook: on_train_batch_start"}) : std::string());
    case 5:
      return fmt::format("{{{}: {{{}, call: {}}}}}", one_of({"lost_message", "corrupted_value"}),
                         whom, 1 + drawn_below(40));
    default:
      return nodes == 0 ? fmt::format("{{lost_rank: {{{}}}}}", whom)
                        : fmt::format("{{lost_node: {{node: {}{}}}}}", drawn_below(nodes), at);
  }
}

std::string drawn_fault(int ranks, int nodes, bool has_trainer) {
  switch (*rc::gen::element(0, 0, 0, 1, 1, 2)) {
    case 0: return slow_rank(ranks, has_trainer);
    case 1: return ending(ranks, nodes, has_trainer);
    default: return nodes > 1 && has_trainer ? slow_link(nodes) : slow_rank(ranks, has_trainer);
  }
}

}  // namespace

std::string drawn_faults(int ranks, int nodes, bool has_trainer, bool always) {
  if (!always && *rc::gen::element(true, true, false)) {
    return "";
  }
  const std::string one = drawn_fault(ranks, nodes, has_trainer);
  const std::string other = *rc::gen::element(true, false)
                                ? ", " + drawn_fault(ranks, nodes, has_trainer)
                                : std::string();
  return fmt::format("faults: [{}{}]\n", one, other);
}

}  // namespace lockstep::test
