// What torch raises where an object is made, with torch's words: PyTorch 2.11.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace refused_objects_test {

namespace {

std::vector<Problem> stops_of(const std::string& lines) {
  std::vector<Problem> stops;
  for (const Problem& problem :
       prepare(scenario_of("version: 1\ntrainer: {accelerator: cpu, devices: 2, strategy: ddp, "
                           "max_epochs: 1}\n" +
                           lines + "\n"),
               standard_strategies())
           .problems) {
    if (problem.stops()) {
      stops.push_back(problem);
    }
  }
  return stops;
}

void refuses(const std::string& lines, const std::string& reason) {
  INFO(lines);
  const std::vector<Problem> stops = stops_of(lines);
  REQUIRE(stops.size() == 1);
  CHECK(stops.front().kind == Problem::Kind::refused);
  CHECK(stops.front().code == "LS501");
  CHECK(stops.front().place.line == 3);
  CHECK(stops.front().message.find(reason) != std::string::npos);
  CHECK_FALSE(stops.front().remedy.empty());
}

void accepts(const std::string& lines) {
  INFO(lines);
  CHECK(stops_of(lines).empty());
}

}  // namespace

TEST_CASE("an optimizer refuses what torch.optim refuses") {
  refuses("optimizer: {SGD: {lr: -0.1}}", "Invalid learning rate: -0.1");
  refuses("optimizer: {SGD: {lr: 0.1, momentum: -1}}", "Invalid momentum value: -1");
  refuses("optimizer: {SGD: {lr: 0.1, weight_decay: -0.5}}", "Invalid weight_decay value: -0.5");
  refuses("optimizer: {SGD: {lr: 0.1, nesterov: true}}",
          "Nesterov momentum requires a momentum and zero dampening");
  refuses("optimizer: {SGD: {lr: 0.1, momentum: 0.9, dampening: 0.1, nesterov: true}}",
          "Nesterov momentum requires a momentum and zero dampening");
  refuses("optimizer: {Adam: {betas: [1.0, 0.9]}}", "Invalid beta parameter at index 0: 1.0");
  refuses("optimizer: {AdamW: {betas: [0.9, -0.1]}}", "Invalid beta parameter at index 1: -0.1");
  refuses("optimizer: {AdamW: {eps: -1e-8}}", "Invalid epsilon value: -1e-08");
  refuses("optimizer: {Adadelta: {rho: 1.5}}", "Invalid rho value: 1.5");
  refuses("optimizer: {Adafactor: {d: 0.5}}", "Clipping threshold d should be >= 1 but is: 0.5");
  accepts("optimizer: {SGD: {lr: 0}}");
  accepts("optimizer: {Adam: {betas: [0, 0.999], eps: 0}}");
}

TEST_CASE("a scheduler refuses what torch refuses") {
  refuses("lr_scheduler: {StepLR: {step_size: 0}}", "`step_size` is at least 1");
  refuses("lr_scheduler: {CosineAnnealingLR: {T_max: 0}}", "`T_max` is at least 1");
  refuses("lr_scheduler: {ConstantLR: {factor: -0.5}}",
          "Constant multiplicative factor expected to be between 0 and 1.");
  refuses("lr_scheduler: {LinearLR: {end_factor: 1.5}}",
          "Ending multiplicative factor expected to be between 0 and 1.");
  refuses("lr_scheduler: {CosineAnnealingWarmRestarts: {T_0: 5, T_mult: 0}}",
          "Expected integer T_mult >= 1, but got 0");
  refuses("lr_scheduler: {OneCycleLR: {max_lr: 0.1}}",
          "You must define either total_steps OR (epochs AND steps_per_epoch)");
  accepts("lr_scheduler: {MultiStepLR: {milestones: [5, 2]}}");
}

TEST_CASE("a layer refuses what torch.nn refuses") {
  const auto layer = [](const std::string& input, const std::string& text) {
    return "model: {input: [" + input + "], layers: [" + text + "]}";
  };
  refuses(layer("4", "{Linear: [4, 2]}, {Dropout: 1.5}"),
          "dropout probability has to be between 0 and 1, but got 1.5");
  refuses(
      layer("3, 8, 8", "{Conv2d: {in_channels: 3, out_channels: 4, kernel_size: 3, groups: 2}}"),
      "in_channels must be divisible by groups");
  refuses(
      layer("4, 8, 8", "{Conv2d: {in_channels: 4, out_channels: 6, kernel_size: 3, groups: 4}}"),
      "out_channels must be divisible by groups");
  refuses(layer("3, 8, 8", "{MaxPool2d: {kernel_size: 2, padding: 2}}"),
          "pad should be at most half of effective kernel size");
  refuses(layer("3, 8, 8", "{AvgPool2d: {kernel_size: [4, 2], padding: [2, 2]}}"),
          "but got pad=2 and kernel_size=2");
  refuses(layer("4", "{Embedding: {num_embeddings: 10, embedding_dim: 4, padding_idx: 10}}"),
          "Padding_idx must be within num_embeddings");
  refuses(layer("5, 6", "{MultiheadAttention: {embed_dim: 6, num_heads: 4}}"),
          "embed_dim must be divisible by num_heads");
  refuses(layer("6, 4, 4", "{GroupNorm: {num_groups: 4, num_channels: 6}}"),
          "num_channels must be divisible by num_groups");
  accepts(layer("3, 8, 8",
                "{MaxPool2d: {kernel_size: 3, stride: 2, padding: 1}}, Flatten, "
                "{Linear: [48, 2]}"));
}

TEST_CASE("a loss refuses what torch refuses") {
  const std::string head = "model: {input: [4], layers: [{Linear: [4, 2]}], loss: ";
  refuses(head + "{CrossEntropyLoss: {reduction: average}}}",
          "average is not a valid value for reduction");
  refuses(head + "{CrossEntropyLoss: {label_smoothing: 1.5}}}",
          "label_smoothing must be between 0.0 and 1.0. Got: 1.5");
  refuses(head + "{HuberLoss: {delta: 0}}}",
          "huber_loss does not support non-positive values for delta.");
}

TEST_CASE("a loader refuses what DataLoader refuses") {
  refuses("data: {train: {samples: 8, prefetch_factor: 4}}",
          "prefetch_factor option could only be specified in multiprocessing");
  refuses("data: {train: {samples: 8, persistent_workers: true}}",
          "persistent_workers option needs num_workers > 0");
  accepts("data: {train: {samples: 8, num_workers: 2, prefetch_factor: 4}}");
}

}  // namespace refused_objects_test
