#include "sim/flow_network.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "model/core/random.hpp"

using namespace lockstep;
using namespace lockstep::literals;

namespace flow_network_test {
using sim::FlowNetwork;
using sim::LinkIndex;
using sim::TransferPlan;

namespace {

struct Demand {
  Time start{};
  Bytes volume{};
  std::vector<LinkIndex> links;
  std::vector<uint32_t> weights{};  ///< empty = all 1
};

struct CapacityChange {
  Time at{};
  LinkIndex link = 0;
  BytesPerSecond capacity{};
};

/// Plays demands in order of start against the network; gives when each finished.
class Player {
 public:
  explicit Player(const std::vector<BytesPerSecond>& capacities) : network_(capacities) {}

  std::vector<Time> play(const std::vector<Demand>& demands,
                         std::optional<CapacityChange> change = {}) {
    finished_.assign(demands.size(), Time::max());
    for (size_t next = 0; next < demands.size(); ++next) {
      if (change && change->at <= demands[next].start) {
        apply(*std::exchange(change, {}));
      }
      finish_until(demands[next].start);
      const Demand& demand = demands[next];
      const TransferPlan plan{
          {}, demand.volume, &demand.links, demand.weights.empty() ? nullptr : &demand.weights};
      const uint32_t flow = network_.start(demand.start, plan, forecasts_);
      demand_of_flow_.resize(std::max<size_t>(demand_of_flow_.size(), flow + 1));
      demand_of_flow_[flow] = next;
    }
    if (change) {
      apply(*change);
    }
    finish_until(Time::max());
    return finished_;
  }

 private:
  void apply(const CapacityChange& change) {
    finish_until(change.at);
    network_.set_capacity(change.at, change.link, change.capacity, forecasts_);
  }
  void finish_until(Time end) {
    while (true) {
      const auto first =
          std::min_element(forecasts_.begin(), forecasts_.end(),
                           [](const auto& a, const auto& b) { return a.finish < b.finish; });
      if (first == forecasts_.end() || first->finish > end) {
        return;
      }
      const FlowNetwork::Forecast forecast = *first;
      forecasts_.erase(first);
      if (network_.finish(forecast.finish, forecast.flow, forecast.generation, forecasts_)) {
        finished_[demand_of_flow_[forecast.flow]] = forecast.finish;
      }
    }
  }

  FlowNetwork network_;
  std::vector<FlowNetwork::Forecast> forecasts_;
  std::vector<size_t> demand_of_flow_;
  std::vector<Time> finished_;
};

/// The same by the definition: rates of all flows from scratch after every start and finish.
class ReferenceFluid {
 public:
  ReferenceFluid(const std::vector<BytesPerSecond>& capacities, const std::vector<Demand>& demands)
      : capacities_(capacities), demands_(demands) {
    for (const Demand& demand : demands) {
      left_.push_back(static_cast<double>(demand.volume.count()));
    }
  }

  std::vector<double> finish_times_s() {
    std::vector<double> finished(demands_.size(), -1);
    double now = 0;
    while (std::count(finished.begin(), finished.end(), -1) > 0) {
      const std::vector<double> rates = fair_rates(now, finished);
      double step = std::numeric_limits<double>::infinity();
      for (size_t flow = 0; flow < demands_.size(); ++flow) {
        const double start = seconds(demands_[flow].start);
        if (start > now) {
          step = std::min(step, start - now);
        } else if (finished[flow] < 0) {
          step = std::min(step, left_[flow] / rates[flow]);
        }
      }
      now += step;
      for (size_t flow = 0; flow < demands_.size(); ++flow) {
        left_[flow] -= rates[flow] * step;
        if (finished[flow] < 0 && rates[flow] > 0 && left_[flow] < 1e-3) {
          finished[flow] = now;
        }
      }
    }
    return finished;
  }

 private:
  uint32_t weight(size_t flow, LinkIndex link) const {
    const Demand& demand = demands_[flow];
    const auto place = std::find(demand.links.begin(), demand.links.end(), link);
    if (place == demand.links.end()) {
      return 0;
    }
    const auto index = static_cast<size_t>(place - demand.links.begin());
    return demand.weights.empty() ? 1 : demand.weights[index];
  }

  std::vector<double> fair_rates(double now, const std::vector<double>& finished) const {
    std::vector<double> rates(demands_.size(), 0);
    std::vector<size_t> growing;
    for (size_t flow = 0; flow < demands_.size(); ++flow) {
      if (finished[flow] < 0 && seconds(demands_[flow].start) <= now) {
        growing.push_back(flow);
      }
    }
    while (!growing.empty()) {
      double level = std::numeric_limits<double>::infinity();
      LinkIndex full = 0;
      for (LinkIndex link = 0; link < capacities_.size(); ++link) {
        double spent = 0;
        double weights = 0;
        for (size_t flow = 0; flow < demands_.size(); ++flow) {
          spent += rates[flow] * weight(flow, link);
        }
        for (const size_t flow : growing) {
          weights += weight(flow, link);
        }
        const double here = (static_cast<double>(capacities_[link].count()) - spent) / weights;
        if (weights > 0 && here < level) {
          level = here;
          full = link;
        }
      }
      for (const size_t flow : growing) {
        rates[flow] = weight(flow, full) > 0 ? level : 0;
      }
      std::erase_if(growing, [&](size_t flow) { return weight(flow, full) > 0; });
    }
    return rates;
  }

  std::vector<BytesPerSecond> capacities_;
  std::vector<Demand> demands_;
  std::vector<double> left_;
};

std::vector<Demand> drawn_demands(uint64_t seed, size_t links) {
  std::vector<Demand> demands;
  uint64_t number = 0;
  const auto draw = [&](uint64_t below) { return random_bits(seed, number++) % below; };
  for (int flow = 0; flow < 8; ++flow) {
    Demand demand{Time(static_cast<int64_t>(draw(1000)) * 1'000'000'000),
                  Bytes(static_cast<int64_t>(draw(1000) + 1) * 1'000'000),
                  {},
                  {}};
    for (LinkIndex link = 0; link < links; ++link) {
      if (draw(2) == 0) {
        demand.links.push_back(link);
        demand.weights.push_back(static_cast<uint32_t>(draw(3) + 1));
      }
    }
    if (!demand.links.empty()) {
      demands.push_back(demand);
    }
  }
  std::stable_sort(demands.begin(), demands.end(),
                   [](const Demand& a, const Demand& b) { return a.start < b.start; });
  return demands;
}

constexpr Bytes gigabytes(int64_t count) { return Bytes(1'000'000'000) * count; }

}  // namespace

TEST_CASE("a transfer alone takes its volume at the slowest link, to the picosecond") {
  Player player({7_GBps, 3_GBps, 5_GBps});
  // 1000 bytes at 3 GB/s: 333333.33 ps.
  CHECK(player.play({{10_ns, 1000_B, {0, 1, 2}}}) == std::vector{10_ns + 333333_ps});
}

TEST_CASE("a weight of two on a link halves what a transfer alone gets of it") {
  Player player({10_GBps, 6_GBps});
  CHECK(player.play({{{}, gigabytes(10), {0, 1}, {2, 1}}}) == std::vector{2_s});
}

TEST_CASE("two transfers on one link share it and the survivor speeds up") {
  // 5 GB/s each until the small one has its 5 GB after 1 s; then 5 GB are left at 10 GB/s.
  Player player({10_GBps});
  CHECK(player.play({{{}, gigabytes(10), {0}}, {{}, gigabytes(5), {0}}}) ==
        std::vector{1500_ms, 1_s});
}

TEST_CASE("three transfers on two links get max-min fair rates") {
  // Link 1 gives 2 GB/s to each of its two; the first link leaves 8 GB/s to the one alone on it.
  // After 1 s the second and third are done, the first has 2 GB left at 4 GB/s.
  Player player({10_GBps, 4_GBps});
  CHECK(
      player.play({{{}, gigabytes(4), {0, 1}}, {{}, gigabytes(8), {0}}, {{}, gigabytes(2), {1}}}) ==
      std::vector{1500_ms, 1_s, 1_s});
}

TEST_CASE("rates are fair by transfer: one of weight two takes two thirds of a shared link") {
  // Both at 4 GB/s: 8 + 4 = 12 GB/s. After 1 s the second is done; the first has 6 GB left at 6.
  Player player({12_GBps});
  CHECK(player.play({{{}, gigabytes(10), {0}, {2}}, {{}, gigabytes(4), {0}}}) ==
        std::vector{2_s, 1_s});
}

TEST_CASE("a link that slows down mid-way slows what is left") {
  // 5 GB in 0.5 s at 10 GB/s, the other 5 GB in 1 s at 5 GB/s.
  Player player({10_GBps});
  CHECK(player.play({{{}, gigabytes(10), {0}}}, CapacityChange{500_ms, 0, 5_GBps}) ==
        std::vector{1500_ms});
}

TEST_CASE("a link that speeds up mid-way hastens all that share it") {
  // 2 GB/s each for 1 s, then 4 GB/s each for the other 4 GB.
  Player player({4_GBps});
  CHECK(player.play({{{}, gigabytes(6), {0}}, {{}, gigabytes(6), {0}}},
                    CapacityChange{1_s, 0, 8_GBps}) == std::vector{2_s, 2_s});
}

TEST_CASE("a busy link moves all that it is asked for at its capacity") {
  // Whatever shares it: started while it is busy, the last ends when weight * volume has passed.
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<Demand> demands;
    int64_t bytes = 0;
    for (int64_t flow = 0; flow < 6; ++flow) {
      const auto weight = static_cast<uint32_t>(random_bits(seed, 2 * flow) % 4 + 1);
      const auto volume = static_cast<int64_t>(random_bits(seed, 2 * flow + 1) % 1000 + 1000);
      demands.push_back({Time(flow * 1'000'000), Bytes(volume * 1'000'000), {0}, {weight}});
      bytes += volume * 1'000'000 * weight;
    }
    const std::vector<Time> finished = Player({1_GBps}).play(demands);
    const Time last = *std::max_element(finished.begin(), finished.end());
    INFO("seed " << seed);
    CHECK(seconds(last) == Approx(static_cast<double>(bytes) * 1e-9).epsilon(1e-9));
  }
}

TEST_CASE("transfers finish when the definition of max-min fairness says so") {
  const std::vector<BytesPerSecond> capacities{1_GBps, 2_GBps, 3_GBps, 5_GBps};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Demand> demands = drawn_demands(seed, capacities.size());
    const std::vector<Time> finished = Player(capacities).play(demands);
    const std::vector<double> expected = ReferenceFluid(capacities, demands).finish_times_s();
    for (size_t flow = 0; flow < demands.size(); ++flow) {
      INFO("seed " << seed << ", flow " << flow);
      CHECK(seconds(finished[flow]) == Approx(expected[flow]).epsilon(1e-7).margin(1e-9));
    }
  }
}

TEST_CASE("what stands for others may not meet what crosses the links of those others otherwise") {
  FlowNetwork network({10_GBps, 10_GBps});
  std::vector<FlowNetwork::Forecast> forecasts;
  const std::vector<LinkIndex> both{0, 1};
  const std::vector<LinkIndex> second{1};
  const std::vector<LinkIndex> uneven{0};
  TransferPlan tree{{}, 1_MiB, &both};
  tree.uneven = &uneven;
  TransferPlan of_neighbours{{}, 1_MiB, &second};
  of_neighbours.stands_for_others = true;
  const uint32_t wide = network.start({}, tree, forecasts);
  CHECK_FALSE(network.is_shared_unevenly(wide));
  CHECK_FALSE(network.is_shared_unevenly(network.start({}, of_neighbours, forecasts)));
  of_neighbours.links = &both;
  CHECK(network.is_shared_unevenly(network.start({}, of_neighbours, forecasts)));
  CHECK(network.is_shared_unevenly(wide));
}

TEST_CASE("a transfer names links that it crosses on another node alone") {
  // A chain from the first of two nodes that are alike, out by link 0, to the second, in by link 1.
  // It crosses neither the other link of the second, 2, nor that of the first, 3.
  const std::vector<LinkIndex> chain_links{0, 1};
  const std::vector<LinkIndex> into_first{3};
  const std::vector<LinkIndex> uneven{0, 3};
  TransferPlan chain{{}, Bytes{1000}, &chain_links};
  chain.uneven = &uneven;
  TransferPlan alone{{}, Bytes{1000}, &into_first};
  const std::vector<BytesPerSecond> capacities(4, BytesPerSecond(1000));
  for (const bool chain_first : {true, false}) {
    for (const bool stands_for_others : {true, false}) {
      FlowNetwork network(capacities);
      std::vector<FlowNetwork::Forecast> forecasts;
      alone.stands_for_others = stands_for_others;
      const uint32_t first = network.start({}, chain_first ? chain : alone, forecasts);
      CHECK_FALSE(network.is_shared_unevenly(first));
      const uint32_t second = network.start({}, chain_first ? alone : chain, forecasts);
      CHECK(network.is_shared_unevenly(second) == stands_for_others);
    }
  }
}

}  // namespace flow_network_test
