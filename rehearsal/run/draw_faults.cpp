#include "rehearsal/run/draw_faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/random.hpp"

namespace lockstep::cli {

namespace {

constexpr std::string_view lost_signals[] = {"SIGKILL", "SIGSEGV", "SIGABRT"};

/// Draws one fault; every value from a turn of its own.
class Draw {
 public:
  Draw(const OneRun& healthy, World world, uint64_t key)
      : run_(healthy),
        scenario_(*healthy.preparation.scenario),
        world_(world),
        bare_(scenario_.is_bare_program()),
        key_(key) {}

  std::string fault() {
    const std::vector<FaultKind> kinds = possible();
    const FaultKind kind = kinds[below(kinds.size())];
    const uint64_t rank = below(static_cast<uint64_t>(run_.preparation.options.world_size));
    const std::string name(name_of(kind));
    switch (kind) {
      case FaultKind::lost_rank: return fmt::format("{{{}: {{rank: {}{}}}}}", name, rank, at());
      case FaultKind::signal:
        return fmt::format("{{{}: {{rank: {}, name: {}{}}}}}", name, rank,
                           lost_signals[below(std::size(lost_signals))], at());
      case FaultKind::exception:
      case FaultKind::out_of_memory:
        return fmt::format("{{{}: {{rank: {}, hook: {}{}}}}}", name, rank, hook(),
                           bare_ ? std::string() : at());
      case FaultKind::lost_message:
      case FaultKind::corrupted_value:
        return fmt::format("{{{}: {{rank: {}, call: {}}}}}", name, rank, 1 + below(calls(rank)));
      case FaultKind::slow_link: return slow_link();
      default:
        return fmt::format("{{{}: {{rank: {}, slowdown: {}.0{}}}}}", name, rank, 2 + below(9),
                           at());
    }
  }

 private:
  uint64_t below(uint64_t bound) { return random_below(key_, turn_++, bound); }

  std::vector<FaultKind> possible() const {
    std::vector<FaultKind> kinds = {FaultKind::lost_message, FaultKind::corrupted_value,
                                    FaultKind::exception, FaultKind::out_of_memory};
    const bool simulated = world_ == World::simulated;
    if (simulated || !bare_) {
      kinds.insert(kinds.end(), {FaultKind::lost_rank, FaultKind::signal});
    }
    if (simulated) {
      kinds.push_back(FaultKind::straggler);
    }
    if (simulated && loads_data()) {
      kinds.push_back(FaultKind::slow_data);
    }
    if (simulated && run_.machine.cluster.devices() > 1) {
      kinds.push_back(FaultKind::slow_link);
    }
    return kinds;
  }

  bool loads_data() const {
    return scenario_.data && !bare_ &&
           (value_or(scenario_.data->common.sample_time, Time{}) > Time{} ||
            std::ranges::any_of(scenario_.data->train, [](const LoaderSpec& loader) {
              return value_or(loader.sample_time, Time{}) > Time{};
            }));
  }

  // Within the fault-free run.
  std::string at() {
    if (bare_) {
      const int64_t microseconds = run_.result.total_time.count() / 1'000'000;
      return fmt::format(", at: {} us", below(static_cast<uint64_t>(microseconds) + 1));
    }
    const int64_t steps = std::max<int64_t>(1, run_.preparation.log->ranks.front().steps);
    return fmt::format(", at: step {}", below(static_cast<uint64_t>(steps)));
  }

  std::string hook() {
    if (bare_) {
      return "main";
    }
    std::vector<std::string> hooks = {"training_step", "on_train_batch_start",
                                      "on_train_batch_end"};
    return hooks[below(hooks.size())];
  }

  uint64_t calls(uint64_t rank) const {
    uint64_t count = 0;
    const Journal& journal = *run_.result.journal;
    const auto number = static_cast<int32_t>(rank);
    for (int32_t lane = 0; lane < journal.lanes(number); ++lane) {
      journal.lane(number, lane).for_each([&count](const Row& row) {
        count +=
            row.row == RowKind::op && (row.kind == OpKind::send ||
                                       (is_collective(row.kind) && row.kind != OpKind::new_group))
                ? 1
                : 0;
      });
    }
    return std::max<uint64_t>(1, count);
  }

  std::string slow_link() {
    const Cluster& cluster = run_.machine.cluster;
    const bool nodes = cluster.nodes > 1;
    const auto count = static_cast<uint64_t>(nodes ? cluster.nodes : cluster.devices());
    const uint64_t from = below(count);
    const uint64_t to = (from + 1 + below(count - 1)) % count;
    const char* end = nodes ? "node" : "gpu";
    return fmt::format("{{slow_link: {{between: [{} {}, {} {}], bandwidth: {} %{}}}}}", end, from,
                       end, to, 5 + below(90), at());
  }

  const OneRun& run_;
  const Scenario& scenario_;
  World world_;
  bool bare_;
  uint64_t key_;
  uint64_t turn_ = 0;
};

}  // namespace

std::vector<std::string> draw_faults(const OneRun& healthy, World world, uint64_t seed,
                                     int64_t count) {
  const uint64_t key = random_key(seed, site_id("drawn faults").value);
  std::vector<std::string> faults;
  for (int64_t number = 0; number < count; ++number) {
    faults.push_back(Draw(healthy, world, random_key(key, static_cast<uint64_t>(number))).fault());
  }
  return faults;
}

std::string setting_of_faults(const std::vector<std::string>& faults) {
  return fmt::format("faults=[{}]", fmt::join(faults, ", "));
}

}  // namespace lockstep::cli
