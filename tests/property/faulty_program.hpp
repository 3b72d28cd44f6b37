#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::test {

/// What one step of a generated program does, as torch.distributed calls it. Collectives first.
enum class StepKind : uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  barrier,
  message,  ///< one rank sends to another
  ring,     ///< every rank sends to the next one and receives from the one before
  delay,    ///< ranks compute for different times
};
inline constexpr int32_t collective_kinds = 9;
inline constexpr int32_t step_kinds = 12;

/// What is wrong, on one rank (cycles: on all), at one step.
enum class Fault : uint8_t {
  other_collective,
  other_root,
  other_type,
  other_operator,
  other_size,
  other_group,
  missing_call,
  extra_call,
  swapped_calls,   ///< of one group, with the next step
  crossed_groups,  ///< of two groups, with the next step
  missing_wait,
  early_use,  ///< of a pending result
  other_tag,
  other_peer,
  missing_send,
  missing_receive,
  all_receive_first,
  all_send_first,
};
inline constexpr std::array<std::string_view, 18> fault_names{
    "other collective", "other root",        "other type",     "other operator", "other size",
    "other group",      "missing call",      "extra call",     "swapped calls",  "crossed groups",
    "missing wait",     "early use",         "other tag",      "other peer",     "missing send",
    "missing receive",  "all receive first", "all send first",
};
inline constexpr int32_t fault_count = 18;

struct GeneratedStep {
  StepKind kind = StepKind::barrier;
  int32_t group = 0;  ///< 0: the world
  bool asynchronous = false;
  int32_t waits_after = 0;  ///< so many further steps
  std::string_view dtype = "fp32";
  std::string_view op = "sum";
  int32_t elements = 60;
  int32_t root = 0;  ///< a rank of the group; of a message the sender
  int32_t peer = 1;  ///< of a message: the receiver
  int32_t tag = 0;
};

/// A program that every rank runs, correct as it stands, and what a fault would change in it.
struct GeneratedProgram {
  int32_t ranks = 2;
  bool gloo = false;
  std::vector<std::vector<int32_t>> groups;  ///< [0] is the world
  std::vector<GeneratedStep> steps;
  Fault fault = Fault::other_collective;
  size_t at = 0;          ///< the step of the fault
  int32_t rank = 0;       ///< the rank of the fault
  GeneratedStep other{};  ///< what that rank does instead, where the fault says so
};

using Random = std::mt19937;

/// A correct random program that can carry this fault. `first` and `second`: of other_collective,
/// the call and what one rank calls instead; `asynchronous`: of the step of the fault, where both
/// are possible.
GeneratedProgram draw_program(Random& random, Fault fault, bool gloo, bool asynchronous,
                              StepKind first = StepKind::all_reduce,
                              StepKind second = StepKind::broadcast);

/// The scenario, with the fault or without. Each call says `at: "step N"`.
std::string scenario_of(const GeneratedProgram& program, bool with_fault);

/// The `at` of the calls that the fault is about.
std::vector<std::string> places_of(const GeneratedProgram& program);

}  // namespace lockstep::test
