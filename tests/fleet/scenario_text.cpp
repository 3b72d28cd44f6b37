#include "tests/fleet/scenario_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace lockstep::test {

namespace {

constexpr int32_t part_elements = 4;

/// Writes the statements of one program.
class Writer {
 public:
  explicit Writer(const BareProgram& program)
      : program_(program),
        ranks_(program.ranks),
        elements_(part_elements * program.ranks),
        gloo_(program.eager || has(Act::collect) || program.ranks == 1) {}

  std::string text() {
    std::string lines = fmt::format(
        "version: 1\ncluster: {{ranks: {}, network: {{bandwidth: 10 GB/s, latency: 2 us}}}}\n"
        "process_group: {{backend: {}{}}}\nprogram:\n  main:\n",
        ranks_, gloo_ ? "gloo" : "nccl", program_.eager ? ", eager_limit: 1 MiB" : "");
    for (const int32_t buffer : {0, 1, 2}) {
      add(initial(buffer));
    }
    add_steps();
    for (const int32_t buffer : {0, 1, 2}) {
      add(probe(name(buffer)));
    }
    for (const std::string& statement : statements_) {
      lines += "    - " + statement + "\n";
    }
    return lines;
  }

 private:
  using Statements = std::vector<std::string>;

  bool has(Act act) const {
    return std::any_of(program_.steps.begin(), program_.steps.end(),
                       [act](const Step& step) { return step.act == act; });
  }
  void add(const std::string& statement) { statements_.push_back(statement); }
  static std::string list(const Statements& statements) {
    return fmt::format("[{}]", fmt::join(statements, ", "));
  }
  static std::string when(const std::string& condition, const Statements& statements) {
    return fmt::format("{{if: {}, then: {}}}", condition, list(statements));
  }
  static std::string name(int32_t buffer) { return std::string(1, "abc"[buffer % 3]); }
  static std::string data(const OwnStep& own) { return name(own.step.buffer); }
  static std::string other(const OwnStep& own) {
    return name(own.step.buffer + 1 + own.step.other % 2);
  }
  std::string initial(int32_t buffer) const {
    return fmt::format("{{let: {{{}: \"(arange({}) + rank + {}) % 5{}\"}}}}", name(buffer),
                       elements_, 2 * buffer, program_.dtype == DType::int64 ? "" : " * 1.0");
  }
  // The journal tells for how long the host works.
  static std::string probe(const std::string& tensor) {
    return fmt::format("{{host: \"(int(sum(abs({})) * 16) % 997) * 1 ns\"}}", tensor);
  }

  void add_steps();
  Statements statements_of(const OwnStep& own);
  Statements collective(const OwnStep& own);
  Statements moving(const OwnStep& own);
  Statements message(const OwnStep& own) const;
  Statements local(const OwnStep& own);
  Statements of_all(const std::vector<OwnStep>& steps);
  std::string group() const {
    return groups_ == 0 ? "world" : fmt::format("g{}", (groups_ - 1) % groups_ + 1);
  }
  std::string reduction(const OwnStep& own) const;

  const BareProgram& program_;
  int32_t ranks_;
  int32_t elements_;
  bool gloo_;
  Statements statements_;
  int32_t groups_ = 0;
  int32_t results_ = 0;
};

std::string Writer::reduction(const OwnStep& own) const {
  Reduction reduction = own.step.reduction;
  if (own.flaw == Flaw::other_reduction) {
    reduction = reduction == Reduction::sum ? Reduction::max : Reduction::sum;
  }
  const bool averages = reduction == Reduction::avg && (gloo_ || program_.dtype == DType::int64);
  return averages ? "max" : std::string(name_of(reduction));
}

Writer::Statements Writer::collective(const OwnStep& own) {
  const int32_t root = (own.step.number + (own.flaw == Flaw::other_root ? 1 : 0)) % ranks_;
  const bool shorter = own.flaw == Flaw::other_size;
  const std::string a = shorter ? fmt::format("\"full({}, 1.0)\"", elements_ - 1) : data(own);
  const std::string result = fmt::format("r{}", ++results_);
  const std::string op = reduction(own);
  switch (own.step.act) {
    case Act::all_reduce:
      if (own.step.other == 1 || shorter) {
        return {fmt::format("{{all_reduce: {{tensor: {}, op: {}, group: {}, as: {}}}}}", a, op,
                            group(), result)};
      }
      return {
          fmt::format("{{all_reduce: {{tensor: {}, op: {}, async: true, as: {}}}}}", a, op, result),
          fmt::format("{{kernel: {{time: 1 us, stream: side}}}}"),
          fmt::format("{{wait: {}}}", result), probe(result)};
    case Act::reduce:
      return {fmt::format("{{reduce: {{tensor: {}, op: {}, dst: {}}}}}", a, op, root)};
    case Act::reduce_scatter:
      if (shorter) {
        return {fmt::format("{{reduce_scatter: {{tensor: \"full({}, 1.0)\", op: {}, as: {}}}}}",
                            elements_ - ranks_, op, result)};
      }
      return {fmt::format("{{reduce_scatter: {{tensor: {}, op: {}, group: {}, as: {}}}}}", a, op,
                          group(), result),
              probe(result)};
    default: return moving(own);
  }
}

Writer::Statements Writer::moving(const OwnStep& own) {
  const int32_t root = (own.step.number + (own.flaw == Flaw::other_root ? 1 : 0)) % ranks_;
  const bool shorter = own.flaw == Flaw::other_size;
  const std::string a = shorter ? fmt::format("\"full({}, 1.0)\"", elements_ - ranks_) : data(own);
  const std::string result = fmt::format("r{}", results_);
  const std::string at_root = fmt::format("rank == {}", root);
  switch (own.step.act) {
    case Act::broadcast: return {fmt::format("{{broadcast: {{tensor: {}, src: {}}}}}", a, root)};
    case Act::all_gather:
      return {fmt::format("{{all_gather: {{tensor: {}, group: {}, as: {}}}}}", a, group(), result),
              probe(result)};
    case Act::gather:
      return {fmt::format("{{gather: {{tensor: {}, dst: {}, as: {}}}}}", a, root, result),
              when(at_root, {probe(result)})};
    case Act::scatter:
      return {fmt::format("{{scatter: {{tensor: {}, src: {}, as: {}}}}}", a, root, result),
              probe(result)};
    case Act::all_to_all:
      return {fmt::format("{{all_to_all: {{tensor: {}, group: {}, as: {}}}}}", a, group(), result),
              probe(result)};
    case Act::split_group:
      return {fmt::format("{{new_group: {{color: rank % {}, as: g{}}}}}", 1 + own.step.number % 2,
                          ++groups_)};
    case Act::reverse_group: {
      std::vector<int32_t> members(static_cast<size_t>(ranks_));
      std::iota(members.rbegin(), members.rend(), 0);
      return {fmt::format("{{new_group: {{ranks: [{}], as: g{}}}}}", fmt::join(members, ", "),
                          ++groups_)};
    }
    default: return {fmt::format("{{barrier: {}}}", group())};
  }
}

Writer::Statements Writer::message(const OwnStep& own) const {
  const int32_t from = own.step.number % ranks_;
  const int32_t to = (from + 1 + own.step.other) % ranks_;
  const std::string a = data(own);
  const std::string b = other(own);
  switch (own.step.act) {
    case Act::pass:
      if (from == to) {
        return {};
      }
      return {when(fmt::format("rank == {}", from),
                   {fmt::format("{{send: {{tensor: {}, dst: {}, tag: {}}}}}", a, to, own.tag)}),
              when(fmt::format("rank == {}", to),
                   {fmt::format("{{recv: {{tensor: {}, src: {}, tag: {}, as: {}}}}}", a, from,
                                own.tag, a)})};
    case Act::ring:
      return {
          fmt::format("{{batch_isend_irecv: [{{send: {{tensor: {}, dst: (rank + 1) % {}}}}}, "
                      "{{recv: {{tensor: {}, src: (rank + {}) % {}, as: {}}}}}]}}",
                      a, ranks_, b, ranks_ - 1, ranks_, b)};
    case Act::collect:
      return {fmt::format(
          "{{if: rank == 0, then: [{{repeat: {}, do: [{{recv: {{tensor: {}, src: any, as: {}}}}}, "
          "{}]}}], else: [{{send: {{tensor: {}, dst: 0}}}}]}}",
          ranks_ - 1, a, a, probe(a), a)};
    default:
      return {
          fmt::format("{{grouped: [{{all_reduce: {{tensor: {}, op: max}}}}, {{all_reduce: "
                      "{{tensor: {}, op: max}}}}]}}",
                      a, b)};
  }
}

Writer::Statements Writer::local(const OwnStep& own) {
  const std::string a = data(own);
  const std::string b = other(own);
  const int32_t number = own.step.number;
  switch (own.step.act) {
    case Act::scale: return {fmt::format("{{let: {{{}: {} * 2}}}}", b, a)};
    case Act::add: return {fmt::format("{{let: {{{}: {} + {}}}}}", b, b, a)};
    case Act::copy:
      return {fmt::format("{{copy: {{tensor: {}, to: cpu, as: h{}}}}}", a, ++results_)};
    case Act::copy_to_host_and_back:
      return {fmt::format("{{copy: {{tensor: {}, to: cpu, non_blocking: true, as: h{}}}}}", a,
                          ++results_),
              "synchronize", probe(fmt::format("h{}", results_))};
    case Act::work:
      return {
          fmt::format("{{kernel: {{time: {} us, reads: [{}], writes: [{}]}}}}", number + 1, a, b),
          "{host: 500 ns}"};
    case Act::helper_lane:
      return {"{wait_stream: {stream: compute, on: side}}",
              fmt::format("{{kernel: {{time: {} us, stream: side, writes: [{}]}}}}", number + 1, a),
              "{wait_stream: {stream: side, on: compute}}"};
    case Act::settle: return {"synchronize"};
    case Act::settle_any: return {fmt::format("{{item: sum({})}}", a)};
    case Act::branch:
      return {fmt::format("{{all_reduce: {{tensor: {}, op: max}}}}", a),
              when(fmt::format("int(sum({})) % 2 == 1", a), {"barrier"})};
    case Act::fill:
    case Act::renew: return {initial(own.step.buffer)};
    default: return {probe(a)};
  }
}

Writer::Statements Writer::statements_of(const OwnStep& own) {
  const Act act = own.step.act;
  if (own.flaw == Flaw::raised) {
    return {"{raise: a planted exception}"};
  }
  if (is_collective(act)) {
    Statements statements = collective(own);
    const bool skipped = own.flaw == Flaw::local_branch;
    return skipped ? Statements{when("rank % 2 == 1", statements)} : statements;
  }
  const bool sends =
      act == Act::pass || act == Act::ring || act == Act::collect || act == Act::grouped_reductions;
  return sends ? message(own) : local(own);
}

Writer::Statements Writer::of_all(const std::vector<OwnStep>& steps) {
  Statements all;
  for (const OwnStep& step : steps) {
    for (std::string& statement : statements_of(step)) {
      all.push_back(std::move(statement));
    }
  }
  return all;
}

// What the rank with the defect does otherwise stands in an `if` of its own.
void Writer::add_steps() {
  const int32_t odd = program_.defect.rank % ranks_;
  const std::vector<OwnStep> own = steps_of(program_, odd);
  const std::vector<OwnStep> common =
      ranks_ > 1 ? steps_of(program_, (odd + 1) % ranks_) : steps_of(program_, odd);
  const auto same = [](const OwnStep& a, const OwnStep& b) {
    return a.tag == b.tag && a.flaw == b.flaw;
  };
  const auto [first, first_common] =
      std::mismatch(own.begin(), own.end(), common.begin(), common.end(), same);
  const auto [last, last_common] =
      std::mismatch(own.rbegin(), std::make_reverse_iterator(first), common.rbegin(),
                    std::make_reverse_iterator(first_common), same);
  for (const std::string& statement : of_all({own.begin(), first})) {
    add(statement);
  }
  if (first != last.base() || first_common != last_common.base()) {
    const int32_t groups = groups_;
    const Statements otherwise = of_all({first, last.base()});
    groups_ = groups;  // both ways bind the same names
    const Statements usual = of_all({first_common, last_common.base()});
    add(fmt::format("{{if: rank == {}, then: {}, else: {}}}", odd, list(otherwise), list(usual)));
  }
  for (const std::string& statement : of_all({last.base(), own.end()})) {
    add(statement);
  }
}

}  // namespace

std::string scenario_text(const BareProgram& program) { return Writer(program).text(); }

}  // namespace lockstep::test
