// Values, loaders, layers and cases of the language, from the text to what a run made of them.
#include <catch2/catch.hpp>

#include "tests/unit/io/scenario/memory_files.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

using namespace lockstep;
using namespace lockstep::cli;
using namespace lockstep::test;

namespace language_test {

namespace {

Rehearsal ran(const std::string& text) { return std::move(rehearsed(text).front().result); }

std::string titles(const Rehearsal& rehearsal) {
  std::string text;
  for (const Finding& finding : rehearsal.findings) {
    text += (text.empty() ? "" : ", ") + finding.title;
  }
  return text;
}

// Nothing is found only where every `assert` holds.
std::string titles_of_main(const std::string& statements) {
  return titles(ran(bare_text(2, statements)));
}

std::string training(const std::string& sections) {
  return "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
         "trainer: {accelerator: gpu, devices: 2, strategy: ddp, max_epochs: 1}\n" +
         sections;
}

}  // namespace

TEST_CASE("tensors keep their dimensions through indices, functions and collectives") {
  CHECK(titles_of_main(R"yaml(
    - let: {x: "full([2, 3], 1.0 + rank)"}
    - assert: shape(x) == [2, 3]
    - assert: shape(x[1]) == [3]
    - assert: mean(x) == 1.0 + rank
    - assert: "shape(concat([x, x])) == [4, 3]"
    - all_reduce: {tensor: x, as: y}
    - assert: shape(y) == [2, 3] and y[1][2] == 3
    - all_gather: {tensor: x, as: all}
    - assert: shape(all) == [2, 2, 3] and all[1][0][2] == 2
    - broadcast: x
    - assert: shape(x) == [2, 3] and sum(x) == 6
)yaml")
            .empty());
}

TEST_CASE("inf and nan are numbers of the language") {
  CHECK(titles_of_main(R"yaml(
    - let: {low: -inf, none: nan}
    - assert: low < -1e300 and isnan(none)
    - let: {x: "full([2], inf)"}
    - all_reduce: {tensor: x, op: min}
    - assert: x[0] == inf
)yaml")
            .empty());
}

TEST_CASE("parameter('NAME') is this rank's value") {
  const std::string model =
      "model: {input: [2], layers: [{Linear: [2, 1], name: fc}], loss: MSELoss}\n"
      "data: {train: {samples: 4, batch_size: 2}}\n";
  CHECK(titles(ran(training(model + R"yaml(
program:
  on_train_start: [{let: {self.before: "parameter('fc.weight')"}}]
  on_train_end:
    - let: {after: "parameter('fc.weight')"}
    - assert: shape(after) == [1, 2]
    - assert: sum(abs(after - self.before)) > 0
)yaml")))
            .empty());
  CHECK(titles(ran(training(model + R"yaml(
program: {on_train_end: [{let: {x: "parameter('fc.wieght')"}}]}
)yaml")))
            .find("the model has no parameter 'fc.wieght'") != std::string::npos);
}

TEST_CASE("the loss of a step through parameter(..) is refused, not computed without it") {
  const Rehearsal refused = ran(training(R"yaml(
model: {input: [2], layers: [{Linear: [2, 1], name: fc}], loss: MSELoss}
data: {train: {samples: 4, batch_size: 2}}
program:
  training_step: [forward, {let: {loss: "loss + sum(parameter('fc.weight') ** 2)"}}]
)yaml"));
  CHECK(refused.unsupported());
}

TEST_CASE("ranks have batches of their own size") {
  // 32 samples, 16 per rank: 4 batches of 4 on rank 0, 2 of 8 on rank 1.
  CHECK(titles(ran(training(R"yaml(
model: {preset: mlp}
data: {train: {samples: 32, batch_size: 4 + 4 * rank}}
program:
  training_step: [forward, {assert: batch_size == 4 + 4 * rank}]
)yaml")))
            .find("assertion") == std::string::npos);
  const Rehearsal uneven = ran(training(R"yaml(
model: {preset: mlp}
data: {train: {samples: 32, batch_size: 4 + 4 * rank}}
)yaml"));
  CHECK(uneven.hung);
  CHECK_FALSE(uneven.results.effective_batch_size);
}

TEST_CASE("a column holds a mask of tokens, by sample and by rank") {
  CHECK(titles(ran(training(R"yaml(
model: {preset: mlp}
data: {train: {samples: 8, batch_size: 2, values: {mask: "arange(4) < 1 + rank", w: 1 + sample}}}
program:
  training_step:
    - forward
    - assert: shape(mask) == [2, 4]
    - assert: sum(mask) == 2 * (1 + rank)
    - assert: min(w) >= 1
)yaml")))
            .empty());
}

TEST_CASE("the keys of every layer stand beside positional arguments too") {
  const LoadedScenarios loaded = load_text(
      "version: 1\nmodel:\n  input: [8]\n  layers:\n"
      "    - {Linear: [8, 8], name: aux, trainable: false, checkpoint: true}\n"
      "    - {Linear: [8, 2], device: 1}\n    - {name: last, Linear: [2, 2]}\n"
      "    - {Sequential: [{Linear: [2, 2]}], name: head}\n");
  REQUIRE(loaded.ok());
  const std::vector<LayerSpec>& layers = loaded.scenarios[0].model->layers;
  CHECK(layers[0].name->value == "aux");
  CHECK(layers[0].trainable->value == false);
  CHECK(layers[0].checkpoint->value == LayerCheckpoint::torch);
  CHECK(layers[1].device->value == 1);
  CHECK(layers[2].name->value == "last");
  CHECK(layers[3].name->value == "head");
  const LoadedScenarios wrong =
      load_text("version: 1\nmodel: {input: [8], layers: [{Linear: [8, 8], nmae: aux}]}\n");
  CHECK_FALSE(wrong.ok());
}

TEST_CASE("a nested layer is skipped by its whole name, its last part or its container") {
  for (const std::string skip : {"body.extra", "extra", "body"}) {
    const std::string text = training(R"yaml(
model:
  input: [4]
  layers: [{Linear: [4, 4]}, {Sequential: {name: body, layers: [{Linear: [4, 4], name: extra}]}}]
  loss: MSELoss
data: {train: {samples: 8, batch_size: 2}}
program: {training_step: [{forward: {skip: [)yaml" +
                                      skip + "]}}]}\n");
    INFO(skip << ": " << titles(ran(text)));
    CHECK(titles(ran(text)).find("no layer of the model") == std::string::npos);
  }
}

TEST_CASE("a model of unpicklable parts alone is the default model") {
  const std::string text = training("model: {unpicklable: [model]}\n");
  CHECK(ran(text).run.ran);
  CHECK_FALSE(load_text("version: 1\nmodel: {loss: MSELoss}\n").ok());
}

TEST_CASE("a quantity may be quoted, as in JSON") {
  const LoadedScenarios loaded = load_text(
      R"({"version": 1, "process_group": {"timeout": "1 min"}, "cluster": {"preset": "dgx-a100",
      "nvlink": "100 GB/s"}, "faults": [{"slow_link": {"between": ["gpu 0", "gpu 1"],
      "bandwidth": "50 %", "at": "2 ms"}}]})");
  REQUIRE(loaded.ok());
  CHECK(loaded.scenarios[0].process_group->timeout->value == 60_s);
  CHECK_FALSE(load_text("version: 1\nseed_everything: \"8\"\n").ok());
}

TEST_CASE("a case is merged over another case, or over nothing") {
  const LoadedScenarios loaded = load_text(R"yaml(
version: 1
seed_everything: 1
trainer: {max_steps: 1}
cases:
  longest: {base: longer, trainer: {max_steps: 3}}
  longer: {base: long, seed_everything: 2}
  long: {trainer: {min_steps: 2}}
  alone: {base: none, seed_everything: 5}
)yaml");
  REQUIRE(loaded.ok());
  const Scenario& longest = loaded.scenarios[0];
  CHECK(longest.seed->value == 2);
  CHECK(longest.trainer->max_steps->value == 3);
  CHECK(longest.trainer->min_steps->value == 2);
  CHECK_FALSE(loaded.scenarios[3].trainer);
  CHECK(loaded.scenarios[3].seed->value == 5);
}

TEST_CASE("a case that is based on itself or on nobody is refused") {
  const auto message = [](const std::string& cases) {
    const LoadedScenarios loaded = load_text("version: 1\ncases: " + cases + "\n");
    return loaded.ok() ? std::string() : loaded.diagnostics.front().message;
  };
  CHECK(message("{a: {base: b}, b: {base: a}}").find("based on itself") != std::string::npos);
  CHECK(message("{a: {base: a}}").find("based on itself") != std::string::npos);
  CHECK(message("{first: {base: frist}}") == "the file has no case `frist`");
}

}  // namespace language_test
