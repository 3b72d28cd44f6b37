// Receives from any source against a small matcher of its own, which tries every way in which
// blocking sends and receives may meet.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/core/random.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace any_source_test {
using cli::Rehearsal;

namespace {

constexpr int32_t any = -1;

Rehearsal only(const std::string& text) { return std::move(rehearsed(text).front().result); }

struct Step {
  bool sends = false;
  int32_t peer = 0;  ///< or any
  int32_t tag = 0;
};

/// By rank, in order. Every step waits until it is done.
using Steps = std::vector<std::vector<Step>>;

class Reference {
 public:
  explicit Reference(const Steps& steps) : steps_(steps) {
    visit(std::vector<size_t>(steps.size(), 0));
  }
  /// Some order ends where somebody still waits.
  bool may_hang() const { return may_hang_; }
  bool may_end() const { return may_end_; }

 private:
  const Step* next(const std::vector<size_t>& at, size_t rank) const {
    return at[rank] < steps_[rank].size() ? &steps_[rank][at[rank]] : nullptr;
  }

  void visit(const std::vector<size_t>& at) {
    if (!seen_.insert(at).second) {
      return;
    }
    bool moved = false;
    bool waits = false;
    for (size_t from = 0; from < steps_.size(); ++from) {
      const Step* const send = next(at, from);
      waits = waits || send != nullptr;
      if (send == nullptr || !send->sends) {
        continue;
      }
      const auto to = static_cast<size_t>(send->peer);
      const Step* const receive = next(at, to);
      const bool meets = receive != nullptr && !receive->sends && receive->tag == send->tag &&
                         (receive->peer == any || receive->peer == static_cast<int32_t>(from));
      if (meets) {
        std::vector<size_t> after = at;
        ++after[from];
        ++after[to];
        visit(after);
        moved = true;
      }
    }
    may_hang_ = may_hang_ || (waits && !moved);
    may_end_ = may_end_ || !waits;
  }

  const Steps& steps_;
  std::set<std::vector<size_t>> seen_;
  bool may_hang_ = false;
  bool may_end_ = false;
};

class Drawn {
 public:
  explicit Drawn(uint64_t seed) : seed_(seed) {}
  int32_t below(int32_t end) {
    return static_cast<int32_t>(random_bits(seed_, turn_++) % static_cast<uint64_t>(end));
  }

 private:
  uint64_t seed_;
  uint64_t turn_ = 0;
};

// Messages between ranks, each put at the end of its sender's and its receiver's steps; then some
// neighbouring steps change places, and most receives forget whom they are from.
Steps drawn_steps(Drawn& drawn) {
  const int32_t ranks = 3 + drawn.below(2);
  Steps steps(static_cast<size_t>(ranks));
  for (int32_t left = 3 + drawn.below(5); left > 0; --left) {
    const int32_t to = drawn.below(3) == 0 ? drawn.below(ranks) : 0;
    const int32_t from = (to + 1 + drawn.below(ranks - 1)) % ranks;
    const int32_t tag = drawn.below(4) == 0 ? 1 : 0;
    steps[static_cast<size_t>(from)].push_back({true, to, tag});
    steps[static_cast<size_t>(to)].push_back({false, drawn.below(4) == 0 ? from : any, tag});
  }
  for (auto& own : steps) {
    for (size_t i = 1; i < own.size(); ++i) {
      if (drawn.below(5) == 0) {
        std::swap(own[i - 1], own[i]);
      }
    }
  }
  return steps;
}

// Workers that send different numbers of results; the master takes all and then answers.
Steps master_and_workers(Drawn& drawn) {
  const int32_t workers = 2 + drawn.below(2);
  const bool answers = drawn.below(2) == 0;
  Steps steps(static_cast<size_t>(workers) + 1);
  int32_t results = 0;
  for (int32_t worker = 1; worker <= workers; ++worker) {
    const int32_t own = 1 + drawn.below(3);
    results += own;
    auto& here = steps[static_cast<size_t>(worker)];
    here.assign(static_cast<size_t>(own), {true, 0, 0});
    if (answers) {
      here.push_back({false, 0, 1});
    }
  }
  steps[0].assign(static_cast<size_t>(results), {false, any, 0});
  for (int32_t worker = 1; worker <= workers && answers; ++worker) {
    steps[0].push_back({true, worker, 1});
  }
  return steps;
}

std::string text_of(const Steps& steps, Drawn& drawn) {
  std::string text = "    - let: {x: \"full(2, 1.0)\"}\n";
  const int32_t style = drawn.below(3);  // no host work, the same everywhere, or drawn
  for (size_t rank = 0; rank < steps.size(); ++rank) {
    text += fmt::format("    - if: rank == {}\n      then:\n        - let: {{y: 0}}\n", rank);
    for (const Step& step : steps[rank]) {
      const int32_t work = style == 0 ? 0 : style == 1 ? 1000 : drawn.below(4) * 700;
      if (work > 0 && (style == 2 || &step == &steps[rank].front()) && step.sends) {
        text += fmt::format("        - host: {} us\n", work);
      }
      const std::string peer = step.peer == any ? "any" : std::to_string(step.peer);
      text += fmt::format("        - {}: {{tensor: x, {}: {}, tag: {}}}\n",
                          step.sends ? "send" : "recv", step.sends ? "dst" : "src", peer, step.tag);
    }
  }
  return bare_text(static_cast<int>(steps.size()), text, "process_group: {backend: gloo}\n");
}

}  // namespace

TEST_CASE("receives from any source take what the ranks send after different times of work") {
  for (const char* work : {"0", "1 ms", "rank * 1 ms", "(4 - rank) * 1 ms", "(rank % 2) * 1 ms"}) {
    INFO(work);
    const Rehearsal ran = only(bare_text(4,
                                         "    - let: {x: \"full(4, 1.0)\"}\n"
                                         "    - if: rank == 0\n"
                                         "      then: [{repeat: 6, do: [{recv: {tensor: x, "
                                         "src: any}}]}]\n"
                                         "      else: [{host: " +
                                             std::string(work) +
                                             "}, {send: {tensor: x, dst: 0}}, "
                                             "{send: {tensor: x, dst: 0}}]\n",
                                         "process_group: {backend: gloo}\n"));
    CHECK(ran.findings.empty());
    CHECK_FALSE(ran.hung);
    CHECK(ran.coverage.complete);
  }
}

TEST_CASE("masters and workers end, whatever their workers' times") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Drawn drawn(seed);
    const Steps steps = master_and_workers(drawn);
    const std::string text = text_of(steps, drawn);
    INFO(text);
    REQUIRE_FALSE(Reference(steps).may_hang());
    CHECK(only(text).findings.empty());
  }
}

TEST_CASE("some order of drawn messages hangs where the matcher says so, and only there") {
  int32_t hanging = 0;
  int32_t depending = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Drawn drawn(random_key(seed, 17));
    const Steps steps = drawn_steps(drawn);
    const Reference reference(steps);
    const std::string text = text_of(steps, drawn);
    const Rehearsal ran = only(text);
    hanging += reference.may_hang() ? 1 : 0;
    depending += reference.may_hang() && reference.may_end() ? 1 : 0;
    INFO("seed " << seed << "\n" << text);
    CHECK(ran.hung == reference.may_hang());
  }
  CHECK(hanging > 40);
  CHECK(hanging < 360);
  CHECK(depending > 20);
}

}  // namespace any_source_test
