// Whatever is sharded, and however: the parameters are those of ddp, and both worlds do the same.
#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/property/agreement.hpp"
#include "tests/property/held.hpp"
#include "tests/property/sharded_case.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace sharded_test {

namespace {

constexpr const char* equality = "a sharded training ends with the parameters of ddp";
constexpr const char* agreement = "a sharded training does the same in both worlds";

std::string kind_of(const ShardedCase& training) {
  if (training.divides_optimizer) {
    return "ZeroRedundancyOptimizer";
  }
  for (const auto& [name, value] : training.arguments) {
    if (name == "algorithm" || name == "mode" || name == "op" || name == "ddp_comm_hook") {
      return training.strategy + " " + std::get<std::string>(value);
    }
  }
  return training.strategy;
}

/// Parameters and optimizer state, all in fp32.
Bytes whole_checkpoint(const ShardedCase& training, const Network& network) {
  Bytes bytes{};
  for (const ParameterPlace place : network.parameters()) {
    const bool is_frozen = training.freezes_first && place.layer == 0;
    bytes += Bytes(4) * network.parameter(place).elements() * (training.adam && !is_frozen ? 3 : 1);
  }
  return bytes;
}

/// Whole parameters, from the parts that the ranks hold. NaN where no rank holds an element.
std::vector<std::vector<double>> parameters_of(const ShardedCase& training) {
  const Network network = network_of(training);
  RunOptions options = world_of(training.world_size());
  options.ranks_per_node = training.world_size() == 4 ? 2 : training.world_size();
  options.devices_per_rank = training.devices;
  options.network = &network;
  std::vector<EndOfRank> ends(static_cast<size_t>(training.world_size()));
  const Arm arm = run_simulated(options, [&](Rank& rank, Seen& seen) {
    return train_sharded(rank, &training, &network, seen, &ends[static_cast<size_t>(rank.id())]);
  });
  for (const RankEnd& end : arm.result.ends) {
    RC_LOG() << end.message << "\n";
    RC_ASSERT(end.kind == RankEnd::Kind::finished);
  }
  // DeepSpeed pads, and writes parameters twice: as they are computed with, and as updated.
  if (training.saves && training.strategy != "deepspeed") {
    Bytes written{};
    for (const EndOfRank& end : ends) {
      written += end.written;
    }
    RC_ASSERT(written == whole_checkpoint(training, network));
  }
  std::vector<std::vector<double>> whole;
  for (const ParameterPlace place : network.parameters()) {
    whole.emplace_back(static_cast<size_t>(network.parameter(place).elements()), NAN);
  }
  for (size_t rank = 0; rank < ends.size(); ++rank) {
    for (size_t part = 0; part < ends[rank].parts.size(); ++part) {
      const HeldPart& held = ends[rank].parts[part];
      const Values& values = arm.seen[rank][part];
      for (int64_t i = 0; i < values.size(); ++i) {
        whole[held.parameter].at(static_cast<size_t>(held.first_element + i)) = values.number(i);
      }
    }
  }
  return whole;
}

ShardedCase under_ddp(ShardedCase training) {
  training.strategy = "ddp";
  training.servers = 0;
  training.arguments.clear();
  training.divides_optimizer = false;
  training.accumulates_locally = true;
  training.devices = 1;
  training.keeps_gradients = false;
  training.saves = false;
  return training;
}

// Samples and first values are small whole numbers. Later steps, Adam and a third of a gradient
// round; the order of a few dozen additions then matters, but no more than that.
void expect_near(double ours, double theirs) {
  constexpr double relative = 1e-4;
  RC_ASSERT(std::abs(ours - theirs) <= relative * (1 + std::abs(theirs)));
}

// Which values a training that diverges overflows first is a matter of rounding.
bool diverges(const std::vector<std::vector<double>>& parameters) {
  constexpr double large = 1e30;
  return std::ranges::any_of(parameters, [](const std::vector<double>& values) {
    return std::ranges::any_of(values, [](double value) { return !(std::abs(value) <= large); });
  });
}

}  // namespace

TEST_CASE("a sharded training ends with the parameters of ddp") {
  Distribution distribution;
  const bool held = holds(equality, 300, [&] {
    distribution.draw();
    const ShardedCase training = *sharded_cases();
    distribution.count_case();
    distribution.count(kind_of(training));
    const std::vector<std::vector<double>> ours = parameters_of(training);
    const std::vector<std::vector<double>> theirs = parameters_of(under_ddp(training));
    if (diverges(theirs)) {
      distribution.count("diverges");
      RC_ASSERT(diverges(ours));
      return;
    }
    const bool is_exact = !training.adam && training.steps == 1 && training.ranks != 3;
    for (size_t parameter = 0; parameter < theirs.size(); ++parameter) {
      for (size_t element = 0; element < theirs[parameter].size(); ++element) {
        RC_LOG() << fmt::format("parameter {} element {}: {} and ddp's {}\n", parameter, element,
                                ours[parameter][element], theirs[parameter][element]);
        if (is_exact) {
          RC_ASSERT(ours[parameter][element] == theirs[parameter][element]);
        } else if (!training.adam) {
          expect_near(ours[parameter][element], theirs[parameter][element]);
        } else {  // an update of Adam is as long as its rate, whatever the gradient is
          RC_ASSERT(std::isfinite(ours[parameter][element]));
        }
      }
    }
  });
  distribution.print(equality);
  CHECK(held);
  CHECK(distribution.share("diverges") < 0.2);
}

namespace {

/// Servers that wait for the first few of several workers, each in its own order: in the end two of
/// them can hold a gradient of a worker each, and each worker waits for the other server. It is in
/// the order that the threads happened to take, and the simulator finds it there.
bool may_starve_worker(const ShardedCase& training) {
  const auto batch = std::ranges::find(training.arguments, "batch",
                                       [](const auto& argument) { return argument.first; });
  return kind_of(training) == "parameter_server batched" && training.servers > 1 &&
         batch != training.arguments.end() && std::get<int64_t>(batch->second) < training.ranks;
}

void check_both_worlds(const char* property, const rc::Gen<ShardedCase>& cases) {
  Worlds worlds(std::chrono::seconds(5));  // none of these hangs, and a busy machine is slow
  Distribution distribution;
  std::vector<std::string> failures;  // of every try: another may pass, as times differ
  const bool held = holds(property, 150, [&] {
    distribution.draw();
    const ShardedCase training = *cases;
    distribution.count_case();
    distribution.count(kind_of(training));
    const Network network = network_of(training);
    RunOptions options = world_of(training.world_size());
    options.ranks_per_node = training.world_size() == 4 ? 2 : training.world_size();
    options.devices_per_rank = training.devices;
    options.network = &network;
    // Both worlds run the body, and each rank of each appends to a list of its own.
    Verdict verdict = judge(worlds, options, [&](Rank& rank, Seen& seen) -> Program {
      return [](Rank& own, const ShardedCase* how, const Network* net, Seen& values) -> Program {
        EndOfRank end;
        co_await train_sharded(own, how, net, values, &end);
      }(rank, &training, &network, seen);
    });
    if (kind_of(training) == "bagua async") {
      // Two host threads of a rank call in communicators of their own, in any order.
      const auto is_of_two_communicators = [](const std::string& text) {
        return text.find("LS106") != std::string::npos;
      };
      std::erase_if(verdict.findings, is_of_two_communicators);
      std::erase_if(verdict.failures, is_of_two_communicators);
    }
    if (may_starve_worker(training)) {
      std::erase_if(verdict.findings, [](const std::string& text) {
        return text.find("LS107") != std::string::npos;
      });
    }
    for (const std::string& failure : verdict.failures) {
      RC_LOG() << failure << "\n";
      failures.push_back(failure);
    }
    RC_ASSERT(verdict.failures.empty());
    for (const std::string& finding : verdict.findings) {
      RC_LOG() << "finding: " << finding << "\n";
      failures.push_back(finding);
    }
    RC_ASSERT(verdict.findings.empty());
  });
  distribution.print(property);
  for (const std::string& failure : failures) {
    fmt::print("{}\n", failure);
  }
  CHECK(held);
}

}  // namespace

TEST_CASE("a sharded training does the same in both worlds") {
  check_both_worlds(agreement, sharded_cases());
}

TEST_CASE("a training under Bagua does the same in both worlds") {
  check_both_worlds("a training under Bagua does the same in both worlds", bagua_cases());
}

TEST_CASE("a training under Horovod does the same in both worlds") {
  check_both_worlds("a training under Horovod does the same in both worlds", horovod_cases());
}

TEST_CASE("a training that averages models does the same in both worlds") {
  check_both_worlds("a training that averages models does the same in both worlds",
                    averaging_cases());
}

TEST_CASE("a training with parameter servers does the same in both worlds") {
  check_both_worlds("a training with parameter servers does the same in both worlds",
                    server_cases());
}

}  // namespace sharded_test
