#include "tests/property/faulty_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep::test {

namespace {

constexpr int32_t ranks_max = 6;
// Divisible by every size of a group, so that parts are equal.
constexpr int32_t unit_elements = 60;

int32_t below(Random& random, int32_t limit) {
  return static_cast<int32_t>(random() % static_cast<uint32_t>(limit));
}
int32_t from(Random& random, int32_t first, int32_t last) {
  return first + below(random, last - first + 1);
}
template <class List>
auto one_of(Random& random, const List& list) {
  return list[static_cast<size_t>(below(random, static_cast<int32_t>(std::size(list))))];
}
template <class List>
auto other_than(Random& random, const List& list, const auto& known) {
  auto drawn = one_of(random, list);
  while (drawn == known) {
    drawn = one_of(random, list);
  }
  return drawn;
}

constexpr std::array<std::string_view, 5> dtypes{"fp32", "fp64", "int64", "int32", "fp16"};
constexpr std::array<std::string_view, 4> ops{"sum", "max", "min", "product"};

bool is_collective(StepKind kind) { return static_cast<int32_t>(kind) < collective_kinds; }

std::vector<int32_t> all_ranks(int32_t count) {
  std::vector<int32_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void draw_groups(Random& random, GeneratedProgram& program, bool wants_two) {
  program.groups = {all_ranks(program.ranks)};
  const int32_t more = program.ranks < 3 ? 0 : wants_two ? 1 + below(random, 2) : below(random, 3);
  for (int32_t number = 0; number < more; ++number) {
    std::vector<int32_t> members = program.groups.front();
    const int32_t size = from(random, 2, program.ranks - 1);
    while (static_cast<int32_t>(members.size()) > size) {
      members.erase(members.begin() + below(random, static_cast<int32_t>(members.size())));
    }
    program.groups.push_back(std::move(members));
  }
}

GeneratedStep draw_step(Random& random, const GeneratedProgram& program, StepKind kind) {
  GeneratedStep step;
  step.kind = kind;
  step.group = is_collective(kind) ? below(random, static_cast<int32_t>(program.groups.size())) : 0;
  const std::vector<int32_t>& members = program.groups[static_cast<size_t>(step.group)];
  step.asynchronous = kind != StepKind::delay && below(random, 3) == 0;
  step.waits_after = below(random, 3);
  step.dtype = one_of(random, dtypes);
  step.op = one_of(random, ops);
  step.elements = unit_elements * from(random, 1, 3);
  step.root = one_of(random, members);
  step.peer = other_than(random, members, step.root);
  step.tag = below(random, 3);
  return step;
}

GeneratedStep draw_any(Random& random, const GeneratedProgram& program) {
  return draw_step(random, program, static_cast<StepKind>(below(random, step_kinds)));
}

bool is_message_fault(Fault fault) {
  return fault == Fault::other_tag || fault == Fault::other_peer || fault == Fault::missing_send ||
         fault == Fault::missing_receive;
}
bool is_cycle(Fault fault) {
  return fault == Fault::all_receive_first || fault == Fault::all_send_first;
}

StepKind kind_for(Random& random, Fault fault, StepKind first) {
  constexpr std::array rooted{StepKind::reduce, StepKind::broadcast, StepKind::gather,
                              StepKind::scatter};
  constexpr std::array reducing{StepKind::all_reduce, StepKind::reduce, StepKind::reduce_scatter};
  constexpr std::array whole{StepKind::all_reduce, StepKind::all_gather, StepKind::broadcast,
                             StepKind::all_to_all};
  switch (fault) {
    case Fault::other_collective: return first;
    case Fault::other_root: return one_of(random, rooted);
    case Fault::other_operator: return one_of(random, reducing);
    case Fault::other_type:
    case Fault::other_size: return static_cast<StepKind>(below(random, collective_kinds - 1));
    case Fault::early_use: return one_of(random, whole);
    case Fault::missing_wait:
      return below(random, 4) == 0 ? one_of(random, std::array{StepKind::message, StepKind::ring})
                                   : static_cast<StepKind>(below(random, collective_kinds));
    default: break;
  }
  return is_message_fault(fault) ? StepKind::message
         : is_cycle(fault)       ? StepKind::ring
                                 : static_cast<StepKind>(below(random, collective_kinds));
}

// What the rank of the fault does instead.
void draw_other(Random& random, GeneratedProgram& program, StepKind second) {
  const GeneratedStep& step = program.steps[program.at];
  const std::vector<int32_t>& members = program.groups[static_cast<size_t>(step.group)];
  GeneratedStep& other = program.other;
  other = step;
  program.rank = one_of(random, members);
  switch (program.fault) {
    case Fault::other_collective: other.kind = second; break;
    case Fault::other_root: other.root = other_than(random, members, step.root); break;
    case Fault::other_type: other.dtype = other_than(random, dtypes, step.dtype); break;
    case Fault::other_operator: other.op = other_than(random, ops, step.op); break;
    case Fault::other_size: other.elements += unit_elements; break;
    case Fault::other_group: other.group = 0; break;
    case Fault::other_tag: other.tag = step.tag + 1; break;
    case Fault::other_peer: {
      const bool sends = below(random, 2) == 0;
      program.rank = sends ? step.root : step.peer;
      std::vector<int32_t> third = members;
      std::erase_if(third, [&](int32_t rank) { return rank == step.root || rank == step.peer; });
      (sends ? other.peer : other.root) = one_of(random, third);
      break;
    }
    case Fault::missing_send: program.rank = step.root; break;
    case Fault::missing_receive: program.rank = step.peer; break;
    case Fault::missing_wait:
      program.rank = step.kind == StepKind::message && below(random, 2) == 0 ? step.peer
                     : step.kind == StepKind::message                        ? step.root
                                                                             : program.rank;
      break;
    default: break;
  }
  if (program.fault == Fault::other_tag) {
    program.rank = below(random, 2) == 0 ? step.root : step.peer;
  }
}

// Two neighbours that one rank can call in the other order, and that are not the same call.
void add_neighbour(Random& random, GeneratedProgram& program) {
  GeneratedStep& first = program.steps[program.at];
  GeneratedStep second = first;
  second.kind = static_cast<StepKind>(
      (static_cast<int32_t>(first.kind) + from(random, 1, collective_kinds - 1)) %
      collective_kinds);
  if (program.fault == Fault::crossed_groups) {
    first.asynchronous = second.asynchronous = false;
    first.group = from(random, 1, static_cast<int32_t>(program.groups.size()) - 1);
    first.root = first.peer = program.groups[static_cast<size_t>(first.group)].front();
    second.group = 0;
    second.root = first.root;
  }
  program.steps.insert(program.steps.begin() + static_cast<ptrdiff_t>(program.at) + 1, second);
}

}  // namespace

GeneratedProgram draw_program(Random& random, Fault fault, bool gloo, bool asynchronous,
                              StepKind first, StepKind second) {
  GeneratedProgram program;
  program.fault = fault;
  program.gloo = gloo;
  const bool needs_groups = fault == Fault::other_group || fault == Fault::crossed_groups;
  const int32_t fewest = needs_groups || fault == Fault::other_peer ? 3 : 2;
  program.ranks = from(random, fewest, ranks_max);
  draw_groups(random, program, needs_groups);
  const int32_t before = below(random, 4);
  for (int32_t count = 0; count < before; ++count) {
    program.steps.push_back(draw_any(random, program));
  }
  program.at = program.steps.size();
  GeneratedStep step = draw_step(random, program, kind_for(random, fault, first));
  const bool needs_async = fault == Fault::missing_wait || fault == Fault::early_use;
  step.asynchronous = needs_async || (asynchronous && !is_cycle(fault));
  if (fault == Fault::other_group) {
    step.group = from(random, 1, static_cast<int32_t>(program.groups.size()) - 1);
    step.root = one_of(random, program.groups[static_cast<size_t>(step.group)]);
  }
  program.steps.push_back(step);
  if (fault == Fault::swapped_calls || fault == Fault::crossed_groups) {
    add_neighbour(random, program);
  }
  const int32_t after = from(random, 1, 3);
  for (int32_t count = 0; count < after; ++count) {
    GeneratedStep next = draw_any(random, program);
    // With NCCL a barrier holds the host until the device is done, and so stands for the wait.
    while (fault == Fault::missing_wait && next.kind == StepKind::barrier) {
      next = draw_any(random, program);
    }
    program.steps.push_back(next);
  }
  draw_other(random, program, second);
  return program;
}

std::vector<std::string> places_of(const GeneratedProgram& program) {
  std::vector<std::string> places = {fmt::format("step {}", program.at)};
  if (program.fault == Fault::swapped_calls || program.fault == Fault::crossed_groups) {
    places.push_back(fmt::format("step {}", program.at + 1));
  }
  return places;
}

}  // namespace lockstep::test
