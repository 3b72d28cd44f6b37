// Generated programs as scenarios.
#include <fmt/format.h>

#include <algorithm>

#include "tests/property/faulty_program.hpp"

namespace lockstep::test {

namespace {

constexpr std::array<std::string_view, collective_kinds> collective_names{
    "all_reduce", "reduce",         "broadcast",  "all_gather", "gather",
    "scatter",    "reduce_scatter", "all_to_all", "barrier"};

bool has_root(StepKind kind) {
  return kind == StepKind::reduce || kind == StepKind::broadcast || kind == StepKind::gather ||
         kind == StepKind::scatter;
}
bool reduces(StepKind kind) {
  return kind == StepKind::all_reduce || kind == StepKind::reduce ||
         kind == StepKind::reduce_scatter;
}

std::string keys(const GeneratedStep& step, size_t number) {
  std::string text = fmt::format("at: \"step {}\"", number);
  if (step.kind != StepKind::barrier) {
    text += fmt::format(", elements: {}, dtype: {}", step.elements, step.dtype);
  }
  if (reduces(step.kind)) {
    text += fmt::format(", op: {}", step.op);
  }
  if (has_root(step.kind)) {
    const bool from_root = step.kind == StepKind::broadcast || step.kind == StepKind::scatter;
    text += fmt::format(", {}: {}", from_root ? "src" : "dst", step.root);
  }
  if (step.group != 0) {
    text += fmt::format(", group: g{}", step.group);
  }
  if (step.asynchronous) {
    text += fmt::format(", async: true, as: w{}", number);
  }
  return text;
}

std::string collective(const GeneratedStep& step, size_t number) {
  return fmt::format("{{{}: {{{}}}}}", collective_names[static_cast<size_t>(step.kind)],
                     keys(step, number));
}

std::string message(const GeneratedStep& step, size_t number, bool sends) {
  return fmt::format("{{{}: {{at: \"step {}\", elements: {}, dtype: {}, {}: {}, tag: {}{}}}}}",
                     sends ? "send" : "recv", number, step.elements, step.dtype,
                     sends ? "dst" : "src", sends ? step.peer : step.root, step.tag,
                     step.asynchronous ? fmt::format(", async: true, as: w{}", number) : "");
}

std::string wait(size_t number) {
  return fmt::format("{{wait: {{name: w{}, at: \"step {}\"}}}}", number, number);
}

std::string on_ranks(const std::vector<int32_t>& ranks, const std::string& statements,
                     const std::string& otherwise = "") {
  std::string condition;
  for (const int32_t rank : ranks) {
    condition += (condition.empty() ? "rank == " : " or rank == ") + std::to_string(rank);
  }
  return fmt::format("{{if: {}, then: [{}]{}}}", condition, statements,
                     otherwise.empty() ? "" : ", else: [" + otherwise + "]");
}

/// Writes one program down, statement by statement.
class Writer {
 public:
  Writer(const GeneratedProgram& program, bool with_fault)
      : program_(program), faulty_(with_fault) {}

  std::string text() {
    line_up_groups();
    for (size_t number = 0; number < program_.steps.size(); ++number) {
      step(number);
      for (size_t earlier = 0; earlier <= number; ++earlier) {
        const GeneratedStep& started = program_.steps[earlier];
        const size_t last =
            std::min(earlier + static_cast<size_t>(started.waits_after), program_.steps.size() - 1);
        if (started.asynchronous && last == number) {
          wait_for(earlier);
        }
      }
    }
    return text_;
  }

 private:
  bool is_here(size_t number, Fault fault) const {
    return faulty_ && program_.at == number && program_.fault == fault;
  }
  void put(const std::string& statement) { text_ += "    - " + statement + "\n"; }
  void put_on(const std::vector<int32_t>& ranks, const std::string& statement) {
    put(static_cast<int32_t>(ranks.size()) == program_.ranks ? statement
                                                             : on_ranks(ranks, statement));
  }

  void line_up_groups() {
    for (size_t group = 1; group < program_.groups.size(); ++group) {
      put(fmt::format("new_group: {{ranks: [{}], as: g{}}}",
                      fmt::join(program_.groups[group], ", "), group));
    }
  }

  void step(size_t number) {
    const GeneratedStep& step = program_.steps[number];
    const bool follows_swap = number > 0 && (is_here(number - 1, Fault::swapped_calls) ||
                                             is_here(number - 1, Fault::crossed_groups));
    if (follows_swap) {
      return;
    }
    if (step.kind == StepKind::delay) {
      put(fmt::format("host: \"({} * rank) * 10 us\"", step.tag));
    } else if (step.kind == StepKind::message) {
      one_message(number, step);
    } else if (step.kind == StepKind::ring) {
      ring(number, step);
    } else {
      calls(number, step);
    }
  }

  void calls(size_t number, const GeneratedStep& step) {
    const std::vector<int32_t>& members = program_.groups[static_cast<size_t>(step.group)];
    const std::string right = collective(step, number);
    if (is_here(number, Fault::swapped_calls) || is_here(number, Fault::crossed_groups)) {
      swapped(number);
      return;
    }
    if (!faulty_ || program_.at != number || program_.fault == Fault::missing_wait ||
        program_.fault == Fault::early_use) {
      put_on(members, right);
      return;
    }
    const std::string wrong = collective(program_.other, number);
    const std::string instead = program_.fault == Fault::missing_call ? "{host: 1 us}"
                                : program_.fault == Fault::extra_call ? right + ", " + wrong
                                                                      : wrong;
    put_on(members, on_ranks({program_.rank}, instead, right));
  }

  // Every member of one group is a member of the other where groups are crossed (the world).
  void swapped(size_t number) {
    const GeneratedStep& one = program_.steps[number];
    const GeneratedStep& two = program_.steps[number + 1];
    const auto guarded = [&](const GeneratedStep& step, size_t at) {
      const auto& members = program_.groups[static_cast<size_t>(step.group)];
      const std::string call = collective(step, at);
      return static_cast<int32_t>(members.size()) == program_.ranks ? call
                                                                    : on_ranks(members, call);
    };
    const std::string first = guarded(one, number);
    const std::string second = guarded(two, number + 1);
    put(on_ranks({program_.rank}, second + ", " + first, first + ", " + second));
  }

  void one_message(size_t number, const GeneratedStep& step) {
    const auto side = [&](bool sends) {
      const int32_t rank = sends ? step.root : step.peer;
      const bool left_out = is_here(number, sends ? Fault::missing_send : Fault::missing_receive);
      const bool other =
          (is_here(number, Fault::other_tag) || is_here(number, Fault::other_peer)) &&
          rank == program_.rank;
      if (!left_out) {
        put(on_ranks({rank}, message(other ? program_.other : step, number, sends)));
      }
    };
    side(true);
    side(false);
  }

  void ring(size_t number, const GeneratedStep& step) {
    const auto part = [&](bool sends) {
      return fmt::format(
          "{{{}: {{at: \"step {}\", elements: {}, dtype: {}, {}, tag: {}}}}}",
          sends ? "send" : "recv", number, step.elements, step.dtype,
          sends ? "dst: (rank + 1) % world_size" : "src: (rank + world_size - 1) % world_size",
          step.tag);
    };
    if (is_here(number, Fault::all_receive_first)) {
      put(part(false));
      put(part(true));
    } else if (is_here(number, Fault::all_send_first)) {
      put(part(true));
      put(part(false));
    } else {
      put(fmt::format("batch_isend_irecv: {{at: \"step {}\", statements: [{}, {}]{}}}", number,
                      part(true), part(false),
                      step.asynchronous ? fmt::format(", async: true, as: w{}", number) : ""));
    }
  }

  void wait_for(size_t number) {
    const GeneratedStep& step = program_.steps[number];
    std::vector<int32_t> who = program_.groups[static_cast<size_t>(step.group)];
    if (step.kind == StepKind::message) {
      who = {step.root, step.peer};
    }
    const bool cycle =
        is_here(number, Fault::all_receive_first) || is_here(number, Fault::all_send_first);
    if (cycle) {
      return;
    }
    if (is_here(number, Fault::missing_wait) || is_here(number, Fault::missing_call) ||
        is_here(number, Fault::missing_send) || is_here(number, Fault::missing_receive)) {
      std::erase(who, program_.rank);
    }
    if (is_here(number, Fault::early_use)) {
      put(on_ranks({program_.rank},
                   fmt::format("{{kernel: {{time: 1 us, reads: [w{}], at: \"step {}\"}}}}", number,
                               number)));
    }
    if (!who.empty()) {
      put(on_ranks(who, wait(number)));
    }
  }

  const GeneratedProgram& program_;
  bool faulty_;
  std::string text_;
};

}  // namespace

std::string scenario_of(const GeneratedProgram& program, bool with_fault) {
  return fmt::format(
      "version: 1\ncluster: {{ranks: {}, network: {{bandwidth: 10 GB/s, latency: 2 us}}}}\n"
      "process_group: {{backend: {}}}\nprogram:\n  main:\n{}",
      program.ranks, program.gloo ? "gloo" : "nccl", Writer(program, with_fault).text());
}

}  // namespace lockstep::test
