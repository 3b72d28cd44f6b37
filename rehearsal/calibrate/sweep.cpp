#include "rehearsal/calibrate/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::cli {

namespace {

/// A network in one of several sizes, and how many samples it takes at once.
struct Subject {
  const char* name;
  std::string (*model)(int64_t scale);
  const char* optimizer;
  int64_t scale = 1;
  int64_t batch_size = 1;
};

std::string dense(int64_t scale) {
  const int64_t width = 32 * scale;
  return fmt::format(
      "  input: [{0}]\n  loss: {3}\n  layers:\n"
      "    - {{Linear: [{0}, {1}]}}\n    - ReLU\n    - {{Linear: [{1}, {2}]}}\n    - GELU\n"
      "    - {{LayerNorm: [{2}]}}\n    - {{Linear: [{2}, {2}]}}\n    - {{BatchNorm1d: [{2}]}}\n"
      "    - ReLU\n    - {{Bias: [{2}]}}\n    - {{Linear: [{2}, {0}]}}\n    - GELU\n"
      "    - {{Linear: {{in_features: {0}, out_features: {1}, bias: false}}}}\n"
      "    - {{LayerNorm: [{1}]}}\n    - {{BatchNorm1d: [{1}]}}\n    - {{Linear: [{1}, 16]}}\n",
      width, 2 * width, 8 * width, scale == 1 ? "MSELoss" : "CrossEntropyLoss");
}

std::string image(int64_t scale) {
  const int64_t width = 8 << scale;
  return fmt::format(
      "  input: [3, {3}, {3}]\n  layers:\n"
      "    - {{Conv2d: {{in_channels: 3, out_channels: {0}, kernel_size: 7, stride: 2, padding: 3, "
      "bias: false}}}}\n"
      "    - {{BatchNorm2d: [{0}]}}\n    - ReLU\n"
      "    - {{MaxPool2d: {{kernel_size: 3, stride: 2, padding: 1}}}}\n"
      "    - Residual:\n        layers:\n"
      "          - {{Conv2d: {{in_channels: {0}, out_channels: {0}, kernel_size: 3, padding: 1, "
      "bias: false}}}}\n"
      "          - {{BatchNorm2d: [{0}]}}\n          - ReLU\n"
      "          - {{Conv2d: {{in_channels: {0}, out_channels: {0}, kernel_size: 3, padding: 1, "
      "bias: false}}}}\n"
      "          - {{BatchNorm2d: [{0}]}}\n    - ReLU\n"
      "    - {{Conv2d: {{in_channels: {0}, out_channels: {1}, kernel_size: 3, stride: 2, padding: "
      "1}}}}\n"
      "    - {{BatchNorm2d: [{1}]}}\n    - ReLU\n"
      "    - {{Conv2d: {{in_channels: {1}, out_channels: {1}, kernel_size: 1}}}}\n"
      "    - {{BatchNorm2d: [{1}]}}\n    - ReLU\n    - {{AvgPool2d: 2}}\n"
      "    - {{Conv2d: {{in_channels: {1}, out_channels: {2}, kernel_size: 3, padding: 1}}}}\n"
      "    - {{BatchNorm2d: [{2}]}}\n    - ReLU\n    - {{AdaptiveAvgPool2d: 1}}\n    - Flatten\n"
      "    - {{Linear: [{2}, 10]}}\n",
      width, 2 * width, 8 * width, 32 * scale);
}

std::string token_block(int64_t width) {
  return fmt::format(
      "    - {{Residual: {{layers: [{{LayerNorm: [{0}]}}, {{CausalSelfAttention: [{0}, 4]}}, "
      "{{Dropout: 0.1}}]}}}}\n"
      "    - {{Residual: {{layers: [{{LayerNorm: [{0}]}}, {{Linear: [{0}, {1}]}}, {{GELU: "
      "{{approximate: tanh}}}}, {{Linear: [{1}, {0}]}}, {{Dropout: 0.1}}]}}}}\n",
      width, 4 * width);
}

std::string tokens(int64_t scale) {
  const int64_t width = 32 * scale;
  return fmt::format(
             "  input: [{2}]\n  layers:\n    - {{Embedding: [{1}, {0}]}}\n"
             "    - {{PositionalEmbedding: [{2}, {0}]}}\n",
             width, 512 * scale, 32 * std::min<int64_t>(scale, 2)) +
         token_block(width) + fmt::format("    - {{Linear: [{}, {}]}}\n", width, 2 * width) +
         token_block(2 * width) +
         fmt::format("    - {{Linear: [{}, {}]}}\n", 2 * width, 3 * width) +
         token_block(3 * width) +
         fmt::format(
             "    - {{MultiheadAttention: [{0}, 4]}}\n    - {{LayerNorm: [{0}]}}\n"
             "    - {{Linear: {{in_features: {0}, out_features: {1}, bias: false}}}}\n",
             3 * width, 512 * scale);
}

constexpr const char* momentum = "{SGD: {lr: 0.0001, momentum: 0.9}}";
constexpr const char* plain = "{SGD: {lr: 0.0001}}";
constexpr const char* adam = "{AdamW: {lr: 0.0001}}";

std::vector<Subject> subjects_of(bool is_quick) {
  std::vector<Subject> subjects;
  for (const int64_t batch_size : {4, 16, 64}) {
    subjects.push_back({"dense layers", dense, momentum, 1, batch_size});
  }
  for (const int64_t batch_size : {1, 2, 4}) {
    subjects.push_back({"images", image, plain, 1, 1 + batch_size});
    subjects.push_back({"tokens", tokens, adam, 1, batch_size});
  }
  if (!is_quick) {
    for (const int64_t batch_size : {8, 64}) {
      subjects.push_back({"wide dense layers", dense, plain, 4, batch_size});
    }
    subjects.push_back({"dense layers", dense, adam, 2, 256});
    subjects.push_back({"larger images", image, momentum, 2, 8});
    subjects.push_back({"many channels", image, plain, 3, 4});
    subjects.push_back({"wide tokens", tokens, adam, 4, 2});
    subjects.push_back({"wide tokens", tokens, plain, 4, 8});
    subjects.push_back({"wider tokens", tokens, plain, 8, 2});
  }
  return subjects;
}

std::string machine(const SweepOptions& options, int32_t ranks) {
  return options.on_gpus ? fmt::format("cluster: {{preset: dgx-h100, gpus: {}", std::max(8, ranks))
                         : fmt::format("cluster: {{gpu: cpu, preset: cpu, gpus: {}", ranks);
}

SweepRun training(const Subject& subject, const SweepOptions& options, int32_t ranks) {
  const int64_t accumulated = options.is_quick ? 2 : 4;
  const int64_t steps = options.is_quick ? 4 : 5;
  SweepRun run;
  run.name = fmt::format("{} in batches of {}, {} rank{}", subject.name, subject.batch_size, ranks,
                         ranks == 1 ? "" : "s");
  run.ranks = ranks;
  run.is_training = true;
  run.text = fmt::format(
      "version: 1\n{}}}\ntrainer: {{accelerator: {}, devices: {}, strategy: {}, max_steps: {}, "
      "accumulate_grad_batches: {}, limit_val_batches: 0, num_sanity_val_steps: 0, "
      "enable_checkpointing: false}}\n"
      "data: {{train: {{samples: {}, batch_size: {}}}}}\noptimizer: {}\n"
      "verify: {{numerics: true}}\nmodel:\n{}",
      machine(options, ranks), options.on_gpus ? "gpu" : "cpu", ranks, ranks > 1 ? "ddp" : "auto",
      steps, accumulated, steps * accumulated * ranks * subject.batch_size, subject.batch_size,
      subject.optimizer, subject.model(subject.scale));
  return run;
}

// ---- communication ----

/// Starts after a barrier, so that all ranks are there.
std::string repeated(int64_t times, const std::string& statement) {
  return fmt::format("    - repeat: {}\n      do:\n        - barrier\n{}", times, statement);
}

std::string statements_of_size(int64_t bytes, int64_t times, int32_t ranks) {
  const int64_t elements = std::max<int64_t>(1, bytes / 4);
  const int64_t whole = (elements + ranks - 1) / ranks * ranks;  // in equal parts
  std::string text = fmt::format("    - let: {{x: \"full({}, 0.0)\", parts: \"full({}, 0.0)\"}}\n",
                                 elements, whole);
  text += repeated(times, "        - all_reduce: x\n");
  text += repeated(times, "        - all_gather: {tensor: x, as: y}\n");
  text += repeated(times, "        - reduce_scatter: {tensor: parts, as: y}\n");
  text += repeated(times, "        - broadcast: x\n");
  text += repeated(times,
                   "        - if: rank == 0\n          then: [{send: {tensor: x, dst: 1}}]\n"
                   "        - if: rank == 1\n          then: [{recv: {tensor: x, src: 0}}]\n");
  return text;
}

SweepRun communication(const SweepOptions& options, int32_t ranks) {
  const int64_t most = options.is_quick ? int64_t{4} << 20 : int64_t{64} << 20;
  const int64_t step = options.is_quick ? 16 : 4;
  SweepRun run;
  run.name = fmt::format("communication, {} ranks", ranks);
  run.ranks = ranks;
  run.text = fmt::format(
      "version: 1\n{}, ranks: {}}}\nprocess_group: {{backend: {}}}\nprogram:\n  main:\n",
      machine(options, ranks), ranks, options.on_gpus ? "nccl" : "gloo");
  run.text += fmt::format("    - repeat: {}\n      do: [barrier]\n", options.is_quick ? 20 : 60);
  for (int64_t bytes = 4; bytes <= most; bytes *= step) {
    const int64_t in_all = options.is_quick ? int64_t{8} << 20 : int64_t{256} << 20;
    const int64_t times = std::clamp<int64_t>(in_all / bytes, 3, options.is_quick ? 8 : 20);
    run.text += statements_of_size(bytes, 1 + times, ranks);
  }
  return run;
}

}  // namespace

std::vector<SweepRun> sweep_of(const SweepOptions& options) {
  std::vector<SweepRun> runs;
  for (const Subject& subject : subjects_of(options.is_quick)) {
    runs.push_back(training(subject, options, options.ranks));
    if (options.ranks > 1 && !options.is_quick) {
      runs.push_back(training(subject, options, 1));
    }
  }
  for (int32_t ranks = 2; ranks < options.ranks; ranks *= 2) {
    runs.push_back(communication(options, ranks));
  }
  if (options.ranks > 1) {
    runs.push_back(communication(options, options.ranks));
  }
  return runs;
}

}  // namespace lockstep::cli
