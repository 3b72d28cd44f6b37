#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/io/scenario/memory_files.hpp"

namespace lockstep::malformed_test {
namespace {

/// A text with one mistake. `^^` stands where the complaint must point and is not part of the text.
struct Mistake {
  std::string text;
  std::string gist;    ///< in the message
  std::string remedy;  ///< in the remedy; may be empty
};

/// Below `version: 1`, so that most texts stay short.
Mistake in_scenario(const std::string& text, const std::string& gist,
                    const std::string& remedy = {}) {
  return {"version: 1\n" + text, gist, remedy};
}
Mistake in_main(const std::string& text, const std::string& gist, const std::string& remedy = {}) {
  return in_scenario("cluster: {ranks: 2}\nprogram:\n  main:\n" + text, gist, remedy);
}
Mistake in_step(const std::string& text, const std::string& gist, const std::string& remedy = {}) {
  return in_scenario("program:\n  training_step:\n" + text, gist, remedy);
}

void check(const Mistake& mistake) {
  std::string text = mistake.text;
  const size_t marker = text.find("^^");
  REQUIRE(marker != std::string::npos);
  text.erase(marker, 2);
  int line = 1;
  int column = 1;
  for (size_t i = 0; i < marker; ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  const LoadedScenarios loaded = test::load_text(text);
  CAPTURE(text, render(loaded.diagnostics, loaded.sources));
  REQUIRE(loaded.diagnostics.size() == 1);
  const Diagnostic& found = loaded.diagnostics.front();
  CHECK(loaded.scenarios.empty());
  CHECK(found.place.file == "s.yaml");
  CHECK(found.place.line == line);
  CHECK(found.place.column == column);
  CHECK_THAT(found.message, Catch::Contains(mistake.gist));
  CHECK_THAT(found.remedy, Catch::Contains(mistake.remedy));
}

void check_all(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    check(mistake);
  }
}

}  // namespace

TEST_CASE("YAML that this format does not take is refused where it is") {
  check_all({
      in_scenario("seed_everything: 1\n^^seed_everything: 2\n", "duplicate key", "keep one"),
      in_scenario("trainer: {devices: 2, ^^devices: 4}\n", "duplicate key `devices`"),
      in_scenario("^^seed_everything:\n", "`seed_everything` has no value", "null"),
      in_scenario("trainer:\n  ^^devices:\n  num_nodes: 2\n", "`devices` has no value"),
      in_scenario("^^seed_everything: ~\n", "has no value", "`null`"),
      in_scenario("trainer: ^^{devices: 2\n", "never closed", "close it with `}`"),
      in_scenario("seed_everything: ^^!!int 3\n", "tags"),
      in_scenario("trainer: &t {callbacks: [^^*t]}\n", "alias"),
      in_scenario("trainer: {devices: ^^*missing}\n", "not valid YAML"),
      in_scenario("^^<<: 3\n", "`<<` takes a map"),
      in_scenario("? ^^[a, b]\n: 3\n", "a key must be text"),
      {"^^- version: 1\n", "a scenario must be a map, not a list", "version: 1"},
      {"^^just words\n", "a scenario must be a map, not a scalar", ""},
      {"^^version:\n", "`version` has no value", ""},
      {"version: 1\nseed_everything: 1 ^^\x01\n", "control characters", ""},
      {"version: 1\n# ^^\xff\n", "not UTF-8", ""},
      in_scenario("verify:\n  world_sizes:\n    - 2\n    -\n    ^^- 4\n", "a list item is empty"),
  });
}

TEST_CASE("a second document is refused") {
  const LoadedScenarios loaded = test::load_text("version: 1\n---\nversion: 1\n");
  REQUIRE(loaded.diagnostics.size() == 1);
  CHECK_THAT(loaded.diagnostics[0].message, Catch::Contains("one YAML document"));
}

TEST_CASE("scalars of the wrong spelling are refused with the right one") {
  check_all({
      in_scenario("trainer: {benchmark: ^^yes}\n", "takes a bool, not `yes`", "write true"),
      in_scenario("trainer: {benchmark: ^^Off}\n", "takes a bool, not `Off`", "write false"),
      in_scenario("trainer: {benchmark: ^^True}\n", "takes a bool", "write true"),
      in_scenario("trainer: {benchmark: ^^1}\n", "takes a bool", "true"),
      in_scenario("trainer: {benchmark: ^^\"true\"}\n", "not quoted text", "remove the quotes"),
      in_scenario("seed_everything: ^^007\n", "leading zero", "write 7"),
      in_scenario("seed_everything: ^^1.5\n", "takes an int, but `1.5` is not one"),
      in_scenario("seed_everything: ^^1e-1\n", "takes an int"),
      in_scenario("seed_everything: ^^1__0\n", "stray underscore"),
      in_scenario("seed_everything: ^^99999999999999999999\n", "64 bits"),
      in_scenario("seed_everything: ^^many\n", "takes an int, not `many`"),
      in_scenario("seed_everything: ^^-1\n", "at least 0"),
      in_scenario("seed_everything: ^^[1]\n", "takes an int, not a list"),
      in_scenario("seed_everything: ^^{a: 1}\n", "takes an int, not a map"),
      in_scenario("trainer: {gradient_clip_val: ^^nan}\n", "not nan", "values"),
      in_scenario("trainer: {gradient_clip_val: ^^half}\n", "takes a number, not `half`"),
      in_scenario("trainer: {precision: ^^yes}\n", "takes a text", "\"yes\""),
      in_scenario("trainer: {callbacks: [{EarlyStopping: {verbose: ^^on}}]}\n",
                  "neither a bool nor a quoted text", "write true"),
      in_scenario("trainer: {callbacks: [{EarlyStopping: {patience: ^^010}}]}\n", "leading zero"),
      in_scenario("optimizer: {SGD: {lr: ^^None}}\n", "None", "write null"),
  });
}

TEST_CASE("quantities without a unit, with a wrong one or out of range are refused") {
  check_all({
      in_scenario("process_group: {timeout: ^^30}\n", "`timeout`"),
      in_scenario("process_group: {timeout: ^^30 GB}\n", "`timeout`"),
      in_scenario("process_group: {timeout: ^^30 sec}\n", "`timeout`"),
      in_scenario("process_group: {timeout: ^^-1 s}\n", "`timeout`"),
      in_scenario("process_group: {timeout: ^^nan s}\n", "`timeout`"),
      in_scenario("process_group: {timeout: ^^1000 y}\n", "`timeout`"),
      in_scenario("process_group: {eager_limit: ^^64}\n", "`eager_limit`"),
      in_scenario("cluster: {memory: ^^-1 GB}\n", "`memory`"),
      in_scenario("cluster: {memory: ^^nan}\n", "`memory`"),
      in_scenario("cluster: {nodes: ^^\"2\"}\n", "quoted text", "remove the quotes"),
      in_scenario("cluster: {pcie: ^^0 GB/s}\n", "cannot be zero"),
      in_scenario("cluster: {nvlink: ^^900 GB}\n", "`nvlink`"),
      in_scenario("cluster: {gpu: {flops: {bf16: ^^312 TFLOP}}}\n", "`bf16`"),
      in_scenario("cluster: {gpu: {flops: {^^bf61: 312 TFLOP/s}}}\n", "no key `bf61`", "bf16"),
      in_scenario("cluster: {network: {oversubscription: ^^0.5}}\n", "at least 1"),
      in_scenario("faults: [{slow_link: {between: [node 0, node 1], bandwidth: ^^0.25}}]\n",
                  "`bandwidth`"),
      in_scenario("faults: [{slow_link: {between: [node 0, node 1], bandwidth: ^^120 %}}]\n",
                  "at most 1"),
      in_scenario("faults: [{lost_rank: {rank: 0, at: ^^step -1}}]\n", "negative"),
      in_scenario("faults: [{lost_rank: {rank: 0, at: ^^step two}}]\n", "takes an int"),
      in_scenario("faults: [{lost_rank: {rank: 0, at: ^^later}}]\n", "`at`"),
  });
}

TEST_CASE("numbers of ranks are bounded") {
  check_all({
      in_scenario("program: {main: [barrier]}\ncluster: {ranks: ^^0}\n", "at least 1"),
      in_scenario("program: {main: [barrier]}\ncluster: {ranks: ^^1_000_000_000_000}\n",
                  "at most 1048576"),
      in_scenario("program: {main: [barrier]}\ncluster: {ranks: ^^1e12}\n", "at most 1048576"),
      in_scenario("trainer: {devices: ^^1_000_000_000_000}\n", "more than 1048576 ranks"),
      in_scenario("trainer: {devices: ^^1048576, num_nodes: 2}\n", "more than 1048576 ranks"),
      in_scenario("trainer: {num_nodes: ^^0}\n", "at least 1"),
      in_scenario("verify: {world_sizes: [2, ^^0]}\n", "at least 1"),
      in_scenario("faults: [{lost_rank: {rank: ^^-1}}]\n", "at least 0"),
      in_scenario("faults: [{lost_rank: {ranks: ^^[]}}]\n", "names no rank"),
      in_scenario("program: {main: [barrier]}\ncluster: {ranks: 2}\n"
                  "faults: [{lost_rank: {rank: ^^2}}]\n",
                  "there is no rank 2", "0 to 1"),
  });
}

TEST_CASE("unknown words are refused with the nearest legal one") {
  check_all({
      {"^^verson: 1\nversion: 1\n", "no key `verson`", "`version`"},
      {"version: ^^2\n", "is 1, not 2", "write `version: 1`"},
      in_scenario("^^traner: {devices: 2}\n", "no key `traner`", "`trainer`"),
      in_scenario("trainer: {^^device: 2}\n", "no key `device`", "`devices`"),
      in_scenario("cluster: {network: {^^bandwith: 1 GB/s}}\n", "`bandwith`", "`bandwidth`"),
      in_scenario("data: {^^tain: {samples: 3}}\n", "no key `tain`", "`train`"),
      in_scenario("data: {train: {^^batchsize: 3}}\n", "no key `batchsize`", "`batch_size`"),
      in_scenario("versions: {^^pytorch: \"2.6\"}\n", "no key `pytorch`", "`torch`"),
      in_scenario("versions: {torch: ^^newest}\n", "takes a version"),
      in_scenario("trainer: {strategy: ^^dpp}\n", "there is no strategy `dpp`", "`dp`"),
      in_scenario("trainer: {strategy: {^^DDPStrateg: {}}}\n", "`DDPStrateg`", "`DDPStrategy`"),
      in_scenario("trainer: {strategy: {DDPStrategy: {^^bucket_cap: 25}}}\n",
                  "has no argument `bucket_cap`", "`bucket_cap_mb`"),
      in_scenario("trainer: {strategy: {ddp_spawn: {^^join: true}}}\n", "no argument `join`",
                  "{DDPSpawnStrategy: {join: ..}}"),
      in_scenario("trainer: {strategy: {DDPStrategy: {find_unused_parameters: ^^3}}}\n",
                  "takes a bool"),
      in_scenario("optimizer: ^^Sgd2\n", "there is no optimizer `Sgd2`", "`SGD`"),
      in_scenario("optimizer: {class_path: ^^torch.optim.Adamm, init_args: {lr: 0.1}}\n",
                  "no optimizer `Adamm`", "`Adam`"),
      in_scenario("metrics: {f1: ^^BinaryF1}\n", "no metric `BinaryF1`"),
      in_scenario("launcher: {torchrun: {^^nproc: 4}}\n", "no argument `nproc`"),
      in_scenario("faults: [^^stragler]\n", "no fault `stragler`", "`straggler`"),
      in_scenario("process_group: {backend: ^^ncll}\n", "unknown value `ncll`", "`nccl`"),
      in_scenario("program: {^^trainin_step: [forward]}\n", "`trainin_step`", "`training_step`"),
      in_step("    - ^^allreduce: loss\n", "no statement `allreduce`", "`all_reduce`"),
      in_scenario("model: {layers: [{^^Liner: [3, 2]}]}\n", "no layer `Liner`", "`Linear`"),
      in_scenario("model: {layers: [{Linear: {^^in_feature: 3}}]}\n", "`in_feature`",
                  "`in_features`"),
      in_scenario("model: {layers: [{ReLU: [true, ^^2]}]}\n", "takes 1 arguments, not 2"),
  });
}

TEST_CASE("sections that contradict themselves are refused") {
  check_all({
      in_scenario("model: {preset: ^^gtp2}\n", "no model preset `gtp2`", "`gpt2`"),
      in_scenario("model: {preset: gpt2, ^^image_size: 3}\n", "`gpt2` has no `image_size`"),
      in_scenario("model: {preset: gpt2, ^^layers: [ReLU]}\n", "`preset` or `layers`, not both"),
      in_scenario("model: ^^{seq_len: 3}\n", "needs one of"),
      in_scenario("model: {layers: ^^[]}\n", "empty"),
      in_scenario("model: {layers: [^^{repeat: 3}]}\n", "`repeat` needs `layers`"),
      in_scenario("model: {layers: [{^^Sequential: {name: a}}]}\n", "needs its `layers`"),
      in_scenario("data: {train: {batches: ^^3, samples: 5}}\n",
                  "`batches` and `samples` cannot be combined"),
      in_scenario("data: {train: {samples: 5, tokens: ^^10}}\n",
                  "`tokens` and `samples` cannot be combined"),
      in_scenario("data: {values: ^^{csv: a.csv, score: 1}}\n", "CSV"),
      in_scenario("program: {main: [barrier]}\ntrainer: {}\ncluster: {ranks: ^^2}\n",
                  "without a trainer"),
      in_scenario("cluster: {ranks: ^^2}\n", "needs its `main`"),
      in_scenario("program: {main: [barrier], ^^training_step: []}\ncluster: {ranks: 2}\n",
                  "hook of a trainer"),
      in_main("    - ^^forward\n", "`forward` needs a trainer"),
      in_main("    - if: rank == 0\n      then: [^^save_checkpoint]\n", "needs a trainer"),
      in_scenario("faults: [{^^lost_node: {at: 3 s}}]\n", "`lost_node` needs `node`"),
      in_scenario("faults: [{^^straggler: {rank: 0, ranks: all, slowdown: 2}}]\n",
                  "`rank` and `ranks`"),
      in_scenario("faults: [^^lost_rank]\n", "`lost_rank` needs `rank`"),
      in_scenario("faults: [{^^slow_link: {between: [node 0]}}]\n", "two ends"),
      in_scenario("trainer: {strategy: {DDPStrategy: {}, ^^timeout: 3}}\n",
                  "`timeout` was written beside `DDPStrategy`", "inside"),
      in_scenario("trainer: {devices: ^^{find_usable_cuda_device: 2}}\n",
                  "find_usable_cuda_devices"),
      in_scenario("verify: {ignore: {^^hang: known}}\n", "not the code"),
      in_scenario("cases: ^^{}\n", "`cases`"),
      in_scenario("cases: {a: {^^version: 1}}\n", "cannot have its own `version`"),
      in_scenario("cases: {^^a b: {}}\n", "not a name for a case"),
  });
}

TEST_CASE("statements of the wrong form are refused") {
  check_all({
      in_step("    - if: rank == 0\n      then: []\n    - ^^then: [forward]\n",
              "`then` must be written beside `if`", "[{if: .., then: [..]}]"),
      in_step("    - ^^do: [forward]\n", "`do` must be written beside `repeat`", "repeat"),
      in_scenario("program: {training_step: [{repeat: 3, do: []}, ^^do: [forward]]}\n",
                  "`do` must be written beside `repeat`"),
      in_step("    - ^^repeat: 3\n", "`repeat` needs `do`"),
      in_step("    - ^^if: rank == 0\n", "`if` needs `then`"),
      in_step("    - if: rank == 0\n      then: ^^forward\n", "a list of statements"),
      in_step("    - forward: null\n      ^^skip: [a]\n",
              "`skip` cannot be written beside `forward`"),
      in_step("    - ^^all_reduce: {op: sum}\n", "needs `tensor` or `elements`"),
      in_step("    - ^^send: loss\n", "`send` needs `dst`"),
      in_step("    - ^^recv: loss\n", "`recv` needs `src`"),
      in_step("    - all_reduce: {tensor: loss, ^^opp: sum}\n", "no key `opp`", "`op`"),
      in_step("    - all_reduce: {tensor: loss, op: ^^mean}\n", "unknown value `mean`"),
      in_step("    - all_reduce: {tensor: loss, elements: ^^3}\n", "`tensor` and `elements`"),
      in_step("    - all_reduce: {elements: 3, dtype: ^^fp8}\n", "unknown value `fp8`"),
      in_step("    - all_reduce: {tensor: loss, dtype: ^^fp16}\n", "goes with `elements`"),
      in_step("    - all_reduce: {tensor: loss, async: ^^yes}\n", "takes a bool"),
      in_step("    - ^^new_group: {ranks: [0]}\n", "`new_group` needs `as`"),
      in_step("    - new_group: {ranks: [0], color: ^^1, as: g}\n", "`ranks` and `color`"),
      in_step("    - batch_isend_irecv:\n        - ^^barrier\n", "is not allowed in"),
      in_step("    - grouped:\n        - ^^host: 1 ms\n", "is not allowed in `grouped`"),
      in_step("    - empty_cache: ^^3\n", "takes no argument"),
      in_step("    - ^^kernel\n", "`kernel` needs `time` or `flops` or `bytes`"),
      in_step("    - kernel: {time: ^^1 ms, flops: 1 GFLOP}\n", "both a time and"),
      in_step("    - copy: {tensor: loss, to: ^^tpu}\n", "`cpu`, `device` or `gpu N`"),
      in_step("    - ^^let\n", "needs names"),
      in_step("    - let: ^^3\n", "a map NAME: expr"),
      in_step("    - let: {^^a-b: 3}\n", "not a name"),
      in_step("    - ^^log: {name: a}\n", "`log` needs `value`"),
      in_step("    - log_dict: {dictionary: {^^a b: loss}}\n", "not a name"),
      in_step("    - ^^fit\n", "belongs in `main`"),
      in_step("    - ^^[forward]\n", "a name or a map"),
      in_step("    - {all_reduce: {tensor: ^^full(2, 3), op: sum}}\n", "a comma", "quote"),
      in_step("    - log: {name: a, value: ^^max(1, 2)}\n", "cut `max(1` off", "quote"),
  });
}

TEST_CASE("expressions that cannot work are refused inside the scalar") {
  check_all({
      in_step("    - let: {x: \"1 +^^\"}\n", ""),
      in_step("    - assert: loss ^^& 1\n", ""),
      in_step("    - assert: rank < 1 ^^< 2\n", ""),
      in_step("    - assert: ^^losss > 1\n", "`losss` is not defined", "`loss`"),
      in_step("    - wait: ^^pending\n", "`pending` is not defined"),
      in_step("    - let: {a: ^^b}\n    - let: {b: 1}\n", "`b` is not defined"),
      in_step("    - let: {a: ^^self.count}\n", "`self.count` is not defined"),
      in_step("    - all_reduce: {tensor: loss, group: ^^pair}\n", "`pair` is not defined"),
      in_step("    - assert: ^^summ(loss) > 0\n", "no function `summ`", "`sum`"),
      in_step("    - optimizer_step: ^^generator\n", "no optimizer `generator`"),
      in_step("    - compute: ^^val_f1\n", "no metric `val_f1`"),
      in_step("    - forward: ^^generator\n", "no module `generator`"),
      in_scenario("optimizer: {SGD: {lr: 0.1, name: a}}\nlr_scheduler: {StepLR: {step_size: 1, "
                  "optimizer: ^^b}}\n",
                  "no optimizer `b`"),
      in_scenario("optimizer: {SGD: {lr: 0.1, module: ^^self.g}}\n", "no module `self.g`"),
      in_scenario("env: {A: ^^\"x{rank\"}\n", "not closed"),
      in_scenario("env: {A: \"x{rank +^^}\"}\n", ""),
      in_step("    - if: rank == 0\n      then: [{let: {a: 1}}]\n      else: [{assert: ^^a > 0}]\n",
              "`a` is not defined"),
      in_main("    - assert: ^^loss > 0\n", "`loss` is not defined"),
      in_main("    - let: {a: [1, ^^b]}\n", "`b` is not defined"),
  });
}

TEST_CASE("expectations that nothing can judge are refused") {
  check_all({
      in_scenario("expect: [^^no_hangs]\n", "no expectation `no_hangs`", "`no_hang`"),
      in_scenario("expect: [finding ^^101]\n", "takes a code"),
      in_scenario("expect: [\"^^steptime < 3 s\"]\n", "steptime", "`step_time`"),
      in_scenario("expect: [no_hang on rank ^^zero]\n", "takes a rank"),
      in_scenario("expect: [step_time < 3 s ^^+- 5 %]\n", "`+-` must follow"),
      in_scenario("expect: [mfu == 0.5 +- ^^mfu]\n", "constant"),
      in_scenario("expect: [^^other.step_time < 3 s]\n", "no case `other`"),
      in_scenario("expect: ^^no_hang\n", "a list"),
      in_scenario("expect: [^^{no_hang: 1}]\n", "words or expressions"),
  });
}

}  // namespace lockstep::malformed_test
