// A communication hook makes of the ranks' gradients what it says, within the error that its
// arithmetic has; the same in both worlds.
#include <fmt/core.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "model/strategy/exchange/coalesced.hpp"
#include "model/strategy/exchange/hooks/hook_arguments.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace hook_exchange_test {

namespace {

constexpr int64_t exchanges = 3;

/// Gradients of one bucket: matrices of `rows` x `columns`, one behind the other.
struct HookCase {
  HookOptions hook;
  int32_t ranks = 2;
  std::vector<std::pair<int64_t, int64_t>> shapes;
  std::vector<std::vector<double>> gradients;  ///< by rank

  int64_t elements() const {
    int64_t sum = 0;
    for (const auto& [rows, columns] : shapes) {
      sum += rows * columns;
    }
    return sum;
  }
};

int64_t between(int64_t first, int64_t last) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(first, last + 1));
}

HookOptions drawn_hook() {
  HookOptions hook;
  hook.has_state = true;
  hook.kind = *rc::gen::element(HookOptions::Kind::all_reduce, HookOptions::Kind::cast,
                                HookOptions::Kind::power_sgd, HookOptions::Kind::noop);
  hook.narrow = *rc::gen::element(DType::fp16, DType::bf16);
  hook.power_sgd.writes_values = true;
  hook.power_sgd.start_iteration = between(0, 1);
  hook.power_sgd.rank = between(1, 4);
  hook.power_sgd.min_compression_rate = between(0, 1) == 0 ? 0.1 : 2;
  hook.power_sgd.use_error_feedback = between(0, 1) == 0;
  hook.power_sgd.warm_start = between(0, 1) == 0;
  hook.power_sgd.orthogonalization_epsilon = 1e-8;
  return hook;
}

HookCase drawn_case() {
  HookCase drawn;
  drawn.hook = drawn_hook();
  drawn.ranks = static_cast<int32_t>(between(1, 4));
  for (int64_t i = between(1, 3); i > 0; --i) {
    drawn.shapes.emplace_back(between(1, 6), between(1, 6));
  }
  for (int32_t rank = 0; rank < drawn.ranks; ++rank) {
    auto& own = drawn.gradients.emplace_back();
    for (int64_t i = 0; i < drawn.elements(); ++i) {
      own.push_back(static_cast<double>(between(-4000, 4000)) / 256);
    }
  }
  return drawn;
}

Program exchange(Rank& rank, const HookCase* how, Seen& seen) {
  const std::unique_ptr<BucketHook> hook = make_bucket_hook(how->hook);
  FullBucket bucket;
  bucket.is_last = true;
  bucket.flat = rank.allocate(Purpose::gradient, DType::fp32, how->elements());
  int64_t begin = 0;
  for (const auto& [rows, columns] : how->shapes) {
    bucket.parts.push_back(bucket.flat.part(begin, rows * columns));
    bucket.rows.push_back(rows);
    begin += rows * columns;
  }
  for (int64_t i = 0; i < exchanges; ++i) {
    rank.write(bucket.flat,
               Values::of(DType::fp32, how->gradients[static_cast<size_t>(rank.id())]));
    co_await hook->begin(rank);
    const Ticket reduced = hook->start(rank, bucket);
    co_await hook->finish(rank);
    const Ticket end = rank.event({compute_stream, {reduced}, {}});
    co_await rank.settle(end);
    seen.push_back(rank.read(bucket.flat));
  }
}

struct Mean {
  double value = 0;
  double magnitude = 0;  ///< of the terms
};

Mean mean_of(const HookCase& how, int64_t element) {
  Mean mean;
  for (const std::vector<double>& own : how.gradients) {
    mean.value += own[static_cast<size_t>(element)] / how.ranks;
    mean.magnitude += std::abs(own[static_cast<size_t>(element)]) / how.ranks;
  }
  return mean;
}

// Each term is rounded when it is cast and when it is divided, and each sum once more.
double allowed(const HookCase& how, const Mean& mean) {
  const auto roundings = static_cast<double>(how.ranks + 2);
  if (how.hook.kind != HookOptions::Kind::cast) {
    return roundings * 0x1p-24 * mean.magnitude;
  }
  const bool is_half = how.hook.narrow == DType::fp16;
  return roundings * (is_half ? 0x1p-11 * mean.magnitude + 0x1p-24 : 0x1p-8 * mean.magnitude);
}

double norm_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) {
    sum += number * number;
  }
  return std::sqrt(sum);
}

// What is not compressed is the mean. Without feedback what is compressed is its projection onto
// a few columns: no longer than it, and what is missing stands at a right angle to it.
void check_power_sgd(const HookCase& how, const Values& result, bool has_feedback) {
  int64_t begin = 0;
  for (const auto& [rows, columns] : how.shapes) {
    const bool is_compressed = compressed_rank(how.hook.power_sgd, rows, columns) > 0;
    std::vector<double> ours;
    std::vector<double> missing;
    double product = 0;
    double size = 0;
    for (int64_t i = begin; i < begin + rows * columns; ++i) {
      const Mean mean = mean_of(how, i);
      size += mean.magnitude;
      ours.push_back(result.number(i));
      missing.push_back(mean.value - result.number(i));
      product += ours.back() * missing.back();
      RC_ASSERT(is_compressed || has_feedback ||
                std::abs(missing.back()) <= allowed(how, mean) + 1e-30);
    }
    begin += rows * columns;
    if (is_compressed && !has_feedback && how.hook.power_sgd.rank < 2) {
      RC_ASSERT(std::abs(product) <= 1e-4 * (1 + size * size));
      RC_ASSERT(norm_of(ours) <= size + 1e-4);
    }
  }
}

void check_result(const HookCase& how, const Arm& arm, int64_t turn) {
  using Kind = HookOptions::Kind;
  const bool compresses =
      how.hook.kind == Kind::power_sgd && turn >= how.hook.power_sgd.start_iteration;
  const auto index = static_cast<size_t>(turn);
  for (int32_t rank = 0; rank < how.ranks; ++rank) {
    const auto own = static_cast<size_t>(rank);
    const Values& result = arm.seen[own][index];
    if (how.hook.kind == Kind::noop) {
      RC_ASSERT(result == Values::of(DType::fp32, how.gradients[own]));
      continue;
    }
    RC_ASSERT(result == arm.seen[0][index]);
    if (compresses) {
      // The first compressed exchange has no error of before.
      const bool is_first = turn == how.hook.power_sgd.start_iteration;
      check_power_sgd(how, result, how.hook.power_sgd.use_error_feedback && !is_first);
      continue;
    }
    for (int64_t i = 0; i < result.size(); ++i) {
      const Mean mean = mean_of(how, i);
      RC_LOG() << fmt::format("element {}: {}, mean {}\n", i, result.number(i), mean.value);
      RC_ASSERT(std::abs(result.number(i) - mean.value) <= allowed(how, mean) + 1e-30);
    }
  }
}

}  // namespace

TEST_CASE("a communication hook gives the mean within its error, the same in both worlds") {
  const char* const name =
      "a communication hook gives the mean within its error, the same in both worlds";
  Worlds worlds(std::chrono::milliseconds(400));
  Distribution distribution;
  const bool held = holds(name, 200, [&] {
    distribution.draw();
    const HookCase how = drawn_case();
    distribution.count_case();
    distribution.count(fmt::format("kind {}", static_cast<int>(how.hook.kind)));
    const RunOptions options = world_of(how.ranks);
    const Body body = [&](Rank& rank, Seen& seen) { return exchange(rank, &how, seen); };
    const Arm arm = run_simulated(options, body);
    for (int32_t rank = 0; rank < how.ranks; ++rank) {
      RC_ASSERT(arm.seen[static_cast<size_t>(rank)].size() == static_cast<size_t>(exchanges));
    }
    for (int64_t turn = 0; turn < exchanges; ++turn) {
      check_result(how, arm, turn);
    }
    const Verdict verdict = judge(worlds, options, body);
    for (const std::string& failure : verdict.failures) {
      RC_LOG() << failure << "\n";
    }
    RC_ASSERT(verdict.failures.empty());
  });
  distribution.print("a communication hook gives the mean within its error");
  CHECK(held);
}

}  // namespace hook_exchange_test
