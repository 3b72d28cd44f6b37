// Whole commands, from the start of the process to its end: what a user waits for.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/measured_command.hpp"

namespace {

enum class Workload : uint8_t { bare, ddp, epochs, sweep_mlp, sweep_gpt2 };

// A training on 64 GPUs with so many settings: batch sizes, and 20 sizes of DDP's buckets.
std::vector<std::string> sweep(Workload workload, int64_t cases) {
  std::string batch_sizes = "1";
  for (int64_t size = 2; size <= cases / 20; ++size) {
    batch_sizes += "," + std::to_string(size);
  }
  std::string buckets;
  for (int64_t mebibytes = 5; mebibytes <= 100; mebibytes += 5) {
    buckets += (buckets.empty() ? "" : ",") + std::string("{DDPStrategy: {bucket_cap_mb: ") +
               std::to_string(mebibytes) + "}}";
  }
  std::vector<std::string> words{LOCKSTEP_PROGRAM, "sweep",
                                 std::string(LOCKSTEP_SOURCE_DIR) + "/bench/ddp_nodes.yaml"};
  words.insert(words.end(),
               {"--set", "cluster.nodes=8", "--set", "trainer.num_nodes=8", "--set",
                "data.train.samples=16384", "--vary", "data.train.batch_size=" + batch_sizes,
                "--vary", "trainer.strategy=" + buckets});
  if (workload == Workload::sweep_gpt2) {
    words.insert(words.end(), {"--set", "model={preset: gpt2}"});
  }
  return words;
}

// `size`: ranks, epochs, or cases.
std::vector<std::string> command(const char* verb, Workload workload, int64_t size) {
  if (workload == Workload::sweep_mlp || workload == Workload::sweep_gpt2) {
    return sweep(workload, size);
  }
  const std::string root = LOCKSTEP_SOURCE_DIR;
  std::vector<std::string> words{LOCKSTEP_PROGRAM, verb};
  if (workload == Workload::bare) {
    words.push_back(root + "/scenarios/iteration-16-layers.yaml");
    words.insert(words.end(), {"--set", "cluster.ranks=" + std::to_string(size)});
  } else if (workload == Workload::epochs) {
    words.push_back(root + "/bench/resnet-50-ninety-epochs.yaml");
    words.insert(words.end(), {"--set", "trainer.max_epochs=" + std::to_string(size)});
  } else {
    const std::string nodes = std::to_string(size / 8);
    words.push_back(root + "/bench/ddp_nodes.yaml");
    words.insert(words.end(),
                 {"--set", "cluster.nodes=" + nodes, "--set", "trainer.num_nodes=" + nodes, "--set",
                  "data.train.samples=" + std::to_string(size * 24)});
  }
  return words;
}

// The expectation in the bare scenario is about 512 ranks: a different number is a clean answer
// with exit code 1, and everything above that an error of the benchmark.
void whole_command(benchmark::State& state, const char* verb, Workload workload) {
  double peak_mebibytes = 0;
  double cpu_s = 0;
  for (auto iteration : state) {
    const lockstep::bench::EndedCommand ended =
        lockstep::bench::run_command(command(verb, workload, state.range(0)));
    const int most = workload == Workload::epochs ? 0 : 1;  // its number of steps is expected there
    if (!WIFEXITED(ended.status) || WEXITSTATUS(ended.status) > most) {
      state.SkipWithError("the command did not answer");
      break;
    }
    peak_mebibytes = std::max(peak_mebibytes, static_cast<double>(ended.used.ru_maxrss) / 1024);
    cpu_s += ended.cpu_s();
  }
  state.counters["process_cpu_s"] = benchmark::Counter(cpu_s, benchmark::Counter::kAvgIterations);
  state.counters["peak_MiB"] = peak_mebibytes;
}

}  // namespace

BENCHMARK_CAPTURE(whole_command, verify_ddp, "verify", Workload::ddp)
    ->Arg(24)
    ->Arg(1'000)
    ->Arg(10'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, run_ddp, "run", Workload::ddp)
    ->Arg(24)
    ->Arg(1'000)
    ->Arg(10'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, verify_bare, "verify", Workload::bare)
    ->Arg(24)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, run_bare, "run", Workload::bare)
    ->Arg(24)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, run_epochs, "run", Workload::epochs)
    ->Arg(90)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, verify_epochs, "verify", Workload::epochs)
    ->Arg(90)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, sweep_mlp, "sweep", Workload::sweep_mlp)
    ->Arg(1'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_command, sweep_gpt2, "sweep", Workload::sweep_gpt2)
    ->Arg(1'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
