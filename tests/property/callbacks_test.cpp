// Callbacks and schedulers over drawn values of a monitored metric, against what their definitions
// say rank by rank, in the simulator and on threads.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "properties/invariants/replicas_agree.hpp"
#include "rehearsal/findings/invariants.hpp"
#include "rehearsal/findings/monitored.hpp"
#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"
#include "tests/property/scenario_of.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace callbacks_test {

namespace {

constexpr const char* test_name = "callbacks do what their definitions say on every rank";
constexpr double first_rate = 0.125;

/// What is monitored: a small whole number for each rank and epoch.
struct MonitoredCase {
  int ranks = 2;
  int epochs = 3;
  std::vector<int> values;  ///< of epoch e on rank r at r * epochs + e
  bool synchronised = false;
  bool maximises = false;
  int patience = 1;
  int save_top_k = 1;  ///< -1: all
  bool stops = false;
  bool schedules = false;

  double value(int rank, int epoch) const {
    if (!synchronised) {
      return values[static_cast<size_t>(rank * epochs + epoch)];
    }
    double sum = 0;
    for (int r = 0; r < ranks; ++r) {
      sum += values[static_cast<size_t>(r * epochs + epoch)];
    }
    return static_cast<float>(sum) / static_cast<float>(ranks);
  }
};

std::ostream& operator<<(std::ostream& out, const MonitoredCase& drawn) {
  return out << fmt::format(
             "{} ranks, {} epochs, values {}, synchronised {}, max {}, patience {}, top {}, stops "
             "{}, schedules {}\n",
             drawn.ranks, drawn.epochs, fmt::join(drawn.values, " "), drawn.synchronised,
             drawn.maximises, drawn.patience, drawn.save_top_k, drawn.stops, drawn.schedules);
}

// Of full size from the first case on: small ones have nothing to decide.
template <class T>
T full(rc::Gen<T> generator) {
  return *rc::gen::resize(rc::kNominalSize, std::move(generator));
}

MonitoredCase draw() {
  MonitoredCase drawn;
  drawn.ranks = full(rc::gen::inRange(1, 5));
  drawn.epochs = full(rc::gen::inRange(1, 6));
  drawn.values = full(rc::gen::container<std::vector<int>>(
      static_cast<size_t>(drawn.ranks * drawn.epochs), rc::gen::inRange(0, 6)));
  drawn.synchronised = *rc::gen::arbitrary<bool>();
  drawn.maximises = *rc::gen::arbitrary<bool>();
  drawn.patience = full(rc::gen::inRange(1, 3));
  drawn.save_top_k = *rc::gen::element(-1, 1, 2, 3);
  drawn.stops = *rc::gen::arbitrary<bool>();
  drawn.schedules = *rc::gen::arbitrary<bool>();
  return drawn;
}

std::string text_of(const MonitoredCase& drawn) {
  const char* mode = drawn.maximises ? "max" : "min";
  std::string callbacks = fmt::format(
      "{{ModelCheckpoint: {{monitor: v, mode: {}, save_top_k: {}}}}}", mode, drawn.save_top_k);
  if (drawn.stops) {
    callbacks += fmt::format(", {{EarlyStopping: {{monitor: v, mode: {}, patience: {}}}}}", mode,
                             drawn.patience);
  }
  std::string text = fmt::format(
      "version: 1\n"
      "model: {{layers: [{{Linear: [2, 1]}}], input: [2], loss: MSELoss}}\n"
      "optimizer: {{SGD: {{lr: {}}}}}\n"
      "trainer: {{accelerator: cpu, devices: {}, strategy: ddp, max_epochs: {}, "
      "num_sanity_val_steps: 0, callbacks: [{}]}}\n"
      "data: {{train: {{samples: {}, batch_size: 2}}, val: {{samples: {}, batch_size: 2}}}}\n"
      "program:\n"
      "  validation_step:\n"
      "    - let: {{drawn: \"[{}]\"}}\n"
      "    - log: {{name: v, value: \"1.0 * drawn[rank * {} + epoch]\", sync_dist: {}}}\n",
      first_rate, drawn.ranks, drawn.epochs, callbacks, 2 * drawn.ranks, 2 * drawn.ranks,
      fmt::join(drawn.values, ", "), drawn.epochs, drawn.synchronised);
  if (drawn.schedules) {
    text += fmt::format(
        "lr_scheduler: {{ReduceLROnPlateau: {{mode: {}, factor: 0.5, patience: {}, threshold: 0, "
        "monitor: v}}}}\n",
        mode, drawn.patience);
  }
  return text;
}

/// What must come out, from the definitions of the callbacks.
struct Expected {
  int epochs = 0;
  std::vector<int> best;                   ///< by rank, the epoch of its best checkpoint
  std::vector<std::vector<double>> rates;  ///< by rank, at the start of each epoch and at the end
};

bool is_better(const MonitoredCase& drawn, double value, double than) {
  return drawn.maximises ? value > than : value < than;
}

// The epochs that were saved: with room at once, else where every rank's value beats its worst.
std::vector<std::vector<int>> kept_by_rank(const MonitoredCase& drawn, int epochs) {
  std::vector<std::vector<int>> kept(static_cast<size_t>(drawn.ranks));
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const bool room = drawn.save_top_k == -1 || std::ssize(kept[0]) < drawn.save_top_k;
    std::vector<std::vector<int>::iterator> worst;
    bool all = true;
    for (int rank = 0; rank < drawn.ranks && !room; ++rank) {
      auto& own = kept[static_cast<size_t>(rank)];
      worst.push_back(std::min_element(own.begin(), own.end(), [&](int a, int b) {
        return is_better(drawn, drawn.value(rank, b), drawn.value(rank, a));
      }));
      all = all && is_better(drawn, drawn.value(rank, epoch), drawn.value(rank, *worst.back()));
    }
    for (int rank = 0; rank < drawn.ranks && all; ++rank) {
      auto& own = kept[static_cast<size_t>(rank)];
      if (!room) {
        own.erase(worst[static_cast<size_t>(rank)]);
      }
      own.push_back(epoch);
    }
  }
  return kept;
}

Expected expected_of(const MonitoredCase& drawn) {
  Expected expected;
  bool stopped = false;
  std::vector<int> stale(static_cast<size_t>(drawn.ranks));
  std::vector<int> bad(static_cast<size_t>(drawn.ranks));
  std::vector<double> best(static_cast<size_t>(drawn.ranks), drawn.maximises ? -1e9 : 1e9);
  expected.rates.assign(static_cast<size_t>(drawn.ranks), {first_rate});
  for (int epoch = 0; epoch < drawn.epochs && !stopped; ++epoch) {
    ++expected.epochs;
    for (int rank = 0; rank < drawn.ranks; ++rank) {
      const auto at = static_cast<size_t>(rank);
      const bool better = is_better(drawn, drawn.value(rank, epoch), best[at]);
      best[at] = better ? drawn.value(rank, epoch) : best[at];
      stale[at] = better ? 0 : stale[at] + 1;
      bad[at] = better ? 0 : bad[at] + 1;
      stopped = stopped || (drawn.stops && stale[at] >= drawn.patience);
      const bool lowers = bad[at] > drawn.patience;
      bad[at] = lowers ? 0 : bad[at];
      expected.rates[at].push_back(expected.rates[at].back() * (lowers ? 0.5 : 1));
    }
  }
  const auto kept = kept_by_rank(drawn, expected.epochs);
  for (int rank = 0; rank < drawn.ranks; ++rank) {
    const auto& own = kept[static_cast<size_t>(rank)];
    expected.best.push_back(*std::min_element(own.begin(), own.end(), [&](int a, int b) {
      return is_better(drawn, drawn.value(rank, a), drawn.value(rank, b));
    }));
  }
  return expected;
}

std::vector<ReplicaValues> replicas_of(const cli::OneRun& run) {
  std::vector<ReplicaValues> replicas;
  for (const NamedValues& values : cli::parameters_of(run)) {
    replicas.push_back({values.rank, "data parallel 0", values.name, values.values});
  }
  return replicas;
}

void check(const MonitoredCase& drawn, const Expected& expected, const cli::OneRun& run) {
  RC_ASSERT(run.ran);
  RC_ASSERT(!run.result.hung);
  for (int rank = 0; rank < drawn.ranks; ++rank) {
    const auto at = static_cast<size_t>(rank);
    const RankLog& log = run.preparation.log->ranks[at];
    RC_ASSERT(run.result.ends[at].message == "");
    RC_ASSERT(log.epochs == expected.epochs);
    RC_ASSERT(log.steps == expected.epochs);
    RC_ASSERT(log.checkpoints.at(0).best ==
              fmt::format("epoch={}-step={}.ckpt", expected.best[at], expected.best[at] + 1));
    if (drawn.schedules) {
      RC_ASSERT(log.learning_rates.at(0) == expected.rates[at]);
    }
  }
}

void check_properties(const MonitoredCase& drawn, const Expected& expected,
                      const cli::OneRun& run) {
  const bool same_best =
      std::count(expected.best.begin(), expected.best.end(), expected.best.front()) == drawn.ranks;
  bool same_rates = true;    // at the end too
  bool same_weights = true;  // without the rate that no step took
  for (const std::vector<double>& rates : expected.rates) {
    same_rates = same_rates && rates == expected.rates.front();
    same_weights =
        same_weights && std::equal(rates.begin(), rates.end() - 1, expected.rates.front().begin());
  }
  same_rates = same_rates || !drawn.schedules;
  same_weights = same_weights || !drawn.schedules;
  const auto decisions = cli::monitored_decisions(run);
  bool error = false;
  for (const Finding& finding : decisions_agree(decisions)) {
    error = error || finding.level == Level::error;
    RC_ASSERT(finding.code == "LS109");
    RC_ASSERT(!drawn.synchronised);
  }
  RC_ASSERT(!(drawn.synchronised && error));
  RC_ASSERT(error || (same_best && same_rates));
  RC_ASSERT(replicas_agree(replicas_of(run)).empty() == same_weights);
}

}  // namespace

TEST_CASE("callbacks do what their definitions say on every rank") {
  Distribution distribution;
  const bool held = holds(test_name, 100, [&] {
    const MonitoredCase drawn = draw();
    RC_LOG() << drawn;
    distribution.draw();
    distribution.count_case();
    const Expected expected = expected_of(drawn);
    const Scenario scenario = scenario_of(text_of(drawn));
    const cli::OneRun run = cli::run_once(scenario, {});
    check(drawn, expected, run);
    check_properties(drawn, expected, run);
    if (cli::has_thread_world() && drawn.epochs <= 3) {
      cli::RunRequest threads;
      threads.world = cli::World::threads;
      check(drawn, expected, cli::run_once(scenario, threads));
      distribution.count("on threads");
    }
    const bool apart = std::count(expected.best.begin(), expected.best.end(),
                                  expected.best.front()) != drawn.ranks;
    if (apart) {
      distribution.count("ranks believe in other checkpoints");
    }
    if (expected.epochs < drawn.epochs) {
      distribution.count("stopped early");
    }
  });
  distribution.print(test_name);
  REQUIRE(held);
  CHECK(distribution.share("ranks believe in other checkpoints") >= 0.05);
  CHECK(distribution.share("stopped early") >= 0.05);
}

}  // namespace callbacks_test
