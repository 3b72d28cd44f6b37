// What an operation costs under the strategies that shard, beside ddp's: every rank and every step
// of bench/sharded_strategies.yaml is simulated, by the whole command `run`.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "bench/measured_command.hpp"

namespace {

struct Run {
  double cpu_s = 0;
  double operations = 0;
};

// "section": {.., "key": N, ..}
std::optional<double> number_in(const std::string& json, const std::string& section,
                                const std::string& key) {
  const size_t begin = json.find("\"" + section + "\": {");
  const std::string name = "\"" + key + "\":";
  const size_t at = begin == json.npos ? json.npos : json.find(name, begin);
  return at == json.npos ? std::nullopt
                         : std::optional(std::strtod(json.c_str() + at + name.size(), nullptr));
}

// Of a run that took as many steps as it was asked for.
std::optional<double> operations_in(const std::string& json, int steps) {
  const std::optional<double> taken = number_in(json, "prediction", "steps");
  return taken == steps ? number_in(json, "operations", "simulated") : std::nullopt;
}

std::optional<Run> run_of(const std::string& strategy, int steps) {
  const std::filesystem::path output =
      std::filesystem::temp_directory_path() /
      ("lockstep_strategy_bench." + std::to_string(getpid()) + ".json");
  const lockstep::bench::EndedCommand ended = lockstep::bench::run_command(
      {LOCKSTEP_PROGRAM, "run",
       std::string(LOCKSTEP_SOURCE_DIR) + "/bench/sharded_strategies.yaml:" + strategy, "--set",
       "trainer.max_steps=" + std::to_string(steps), "--format", "json", "-o", output.string()});
  std::ifstream in(output);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(output);
  const std::optional<double> operations = operations_in(json, steps);
  const bool answered = WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
  return answered && operations ? std::optional(Run{ended.cpu_s(), *operations}) : std::nullopt;
}

// The difference between a long and a short run: reading, preparing and printing are the same.
void cost_of_an_operation(benchmark::State& state, const char* strategy) {
  constexpr int few_steps = 60;
  constexpr int many_steps = 180;
  double cpu_s = 0;
  double operations = 0;
  for (auto iteration : state) {
    const std::optional<Run> few = run_of(strategy, few_steps);
    const std::optional<Run> many = run_of(strategy, many_steps);
    if (!few || !many) {
      state.SkipWithError("the command did not answer");
      return;
    }
    cpu_s += many->cpu_s - few->cpu_s;
    operations += many->operations - few->operations;
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.counters["operations_per_step"] = operations / rounds / (many_steps - few_steps);
  state.counters["ns_per_operation"] = cpu_s / operations * 1e9;
  state.counters["ms_per_step"] = cpu_s / rounds / (many_steps - few_steps) * 1e3;
}

}  // namespace

#define LOCKSTEP_STRATEGY(name)                        \
  BENCHMARK_CAPTURE(cost_of_an_operation, name, #name) \
      ->Iterations(5)                                  \
      ->UseRealTime()                                  \
      ->Unit(benchmark::kMillisecond)
LOCKSTEP_STRATEGY(ddp);
LOCKSTEP_STRATEGY(zero_redundancy_optimizer);
LOCKSTEP_STRATEGY(deepspeed_stage_1);
LOCKSTEP_STRATEGY(deepspeed_stage_2);
LOCKSTEP_STRATEGY(deepspeed_stage_3);
LOCKSTEP_STRATEGY(fsdp_by_blocks);
LOCKSTEP_STRATEGY(fsdp2_by_blocks);
LOCKSTEP_STRATEGY(ddp_sharded);
LOCKSTEP_STRATEGY(ddp_fully_sharded);
