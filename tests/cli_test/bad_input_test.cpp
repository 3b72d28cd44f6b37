// Whatever a file holds, the program says what is wrong with it, where, and exits 3 (4, 5).
#include <catch2/catch.hpp>

#include "tests/cli_test/program.hpp"

using namespace lockstep::test;

namespace bad_input_test {

namespace {

void refused(const std::string& text, const std::string& message, int code = 3) {
  const Folder folder;
  const std::string file = folder.write("scenario.yaml", text);
  for (const char* command : {"run", "verify"}) {
    const Ended ended = run_program(std::string(command) + " " + file);
    INFO(ended.output);
    CHECK(ended.code == code);
    CHECK(ended.output.find(message) != std::string::npos);
    CHECK(ended.output.size() < 20'000);
  }
}

const std::string bare = "version: 1\ncluster: {ranks: 2, network: {bandwidth: 1 GB/s}}\n";

}  // namespace

TEST_CASE("a missing file is reported by its name") {
  const Ended ended = run_program("verify /nowhere/train.yaml");
  CHECK(ended.code == 3);
  CHECK(ended.output.find("/nowhere/train.yaml") != std::string::npos);
}

TEST_CASE("a folder is no scenario") {
  const Folder folder;
  CHECK(run_program("run " + folder.path()).code == 3);
}

TEST_CASE("a folder without scenarios does not pass") {
  const Folder folder;
  CHECK(run_program("test " + folder.path()).code == 3);
}

TEST_CASE("200,000 brackets are refused") {
  refused(std::string(200'000, '['), "error");
  refused("version: 1\nexpect: " + std::string(200'000, '[') + "\n", "error");
}

TEST_CASE("sizes that are no numbers are refused") {
  refused("version: 1\nmodel: {layers: [{Linear: [nan, 2]}], input: [4]}\n", "nan");
  refused("version: 1\ncluster: {ranks: nan}\nprogram: {main: [barrier]}\n", "nan");
  // An expression of a program is evaluated when the program reaches it.
  refused(bare + "program: {main: [{kernel: nan}]}\n", "nan", 1);
}

TEST_CASE("no ranks, or more than there can be, are refused") {
  refused("version: 1\ncluster: {ranks: 0}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ncluster: {ranks: 1000000000000}\nprogram: {main: [barrier]}\n", "ranks");
  refused("version: 1\ntrainer: {devices: 1000000000000, max_steps: 1}\n", "1000000000000");
}

TEST_CASE("an unknown strategy is reported with the nearest spelling") {
  refused("version: 1\ntrainer: {strategy: dpp, devices: 2, max_steps: 1}\n", "dpp");
}

TEST_CASE("a preset by a wrong name is refused with the nearest one") {
  refused("version: 1\ncluster: {preset: dgx-a10}\n", "did you mean `dgx-a100`?");
  refused("version: 1\ncluster: {gpu: rtx-3091}\n", "did you mean `rtx-3090`?");
  refused("version: 1\ncluster: {gpu: {preset: a100x}}\n", "did you mean `a100`?");
  refused("version: 1\ncluster: {preset: g5}\n",
          "name its size: g5.xlarge, g5.12xlarge, g5.48xlarge");
  refused("version: 1\nmodel: {preset: gpt5}\n", "did you mean `gpt2`?");
}

TEST_CASE("a preset that exists and is not modelled exits 5 with the nearest one") {
  refused("version: 1\ncluster: {preset: dgx-gh200}\n", "use `dgx-h200`", 5);
  refused("version: 1\ncluster: {gpu: b100}\n", "use `b200-sxm-180gb`", 5);
  refused("version: 1\ncluster: {gpu: mi300x}\n", "not as ROCm and RCCL do", 5);
  refused("version: 1\nmodel: {preset: distilbert}\n", "use `bert-base`", 5);
}

TEST_CASE("a class by a wrong name is refused with the nearest one") {
  const auto near = [](const std::string& text, const std::string& name) {
    refused("version: 1\n" + text + "\n", "did you mean `" + name + "`?");
  };
  near("optimizer: {LBGFS: {lr: 0.1}}", "LBFGS");
  near("lr_scheduler: CosineAnealingLR", "CosineAnnealingLR");
  near("model: {input: [4], layers: [{Linear: [4, 2]}], loss: CTCLos}", "CTCLoss");
  near("model: {input: [4], layers: [{Linear: [4, 2]}, LeakyRelu]}", "LeakyReLU");
  near("trainer: {callbacks: [EarlyStoping]}", "EarlyStopping");
  near("trainer: {plugins: [AsyncCheckpointO]}", "AsyncCheckpointIO");
  near("trainer: {logger: TensorBordLogger}", "TensorBoardLogger");
  near("trainer: {logger: [CSVLogger, {WandbLoger: {project: a}}]}", "WandbLogger");
  near("trainer: {profiler: SimpelProfiler}", "SimpleProfiler");
  near("trainer: {strategy: fsdpp}", "fsdp");
  near("trainer: {precision: bf16mixed}", "bf16-mixed");
  near("data: {sampler: distribute}", "distributed");
  near("launcher: torchrunn", "torchrun");
  near("metrics: {f1: BinaryF1Scor}", "BinaryF1Score");
  near("program: {training_step: [{let: {a: sofmax(output)}}]}", "softmax");
  refused("version: 1\ntrainer: {callbacks: [MyCallback]}\n", "write its hooks under `program`");
}

TEST_CASE("a class that exists and is not modelled exits 5 and says what is") {
  const auto other = [](const std::string& text, const std::string& remedy) {
    refused("version: 1\n" + text + "\n", remedy, 5);
  };
  other("optimizer: {LBFGS: {lr: 0.1}}", "supported: SGD, Adam, AdamW");
  other("lr_scheduler: SWALR", "supported: StepLR");
  other("model: {input: [4], layers: [{Linear: [4, 2]}], loss: CTCLoss}", "loss CTCLoss is not");
  other("model: {input: [4], layers: [{Linear: [4, 2]}, {GRU: [2, 2]}]}", "layer GRU is not");
  other("trainer: {callbacks: [LambdaCallback]}", "supported: EarlyStopping");
  other("trainer: {plugins: [BitsandbytesPrecision]}", "BitsandbytesPrecision is not modelled");
  other("trainer: {strategy: colossalai}", "use deepspeed_stage_3");
  other("launcher: accelerate", "the launcher accelerate is not modelled");
  other("metrics: {a: BERTScore}\nprogram: {training_step: [{update: a}]}", "BERTScore");
  other("program: {training_step: [forward, {let: {a: relu(output)}}]}",
        "the function `relu` is not supported yet");
}

TEST_CASE("a preset is found by what people call it") {
  const Folder folder;
  const auto ran = [&](const std::string& text) {
    return run_program("run " + folder.write("a.yaml", "version: 1\n" + text)).output;
  };
  CHECK(ran("cluster: {gpu: A100-40GB}\n").find("8 x a100-sxm4-40gb") != std::string::npos);
  CHECK(ran("cluster: {preset: DGX-1}\n").find("8 x v100-sxm2-32gb") != std::string::npos);
  CHECK(ran("model: {preset: ResNet-18}\n").find("resnet18 (") != std::string::npos);
}

TEST_CASE("every refusal has a place and a remedy") {
  refused("version: 1\ntrainer: {devices: -3, strategy: ddp}\n", "= write devices: 1");
  refused("version: 1\ncluster: {ranks: -4}\nprogram: {main: [barrier]}\n",
          "= write a number from 1 to");
  refused("version: 2\n", "= write `version: 1`");
  refused("seed_everything: 1\n", "scenario.yaml:1:1");
  refused("version: 1\ncluster:\n\tranks: 2\n", "scenario.yaml:3:1");
  refused("version: 1\ncluster: {ranks: 2\nprogram: {main: [barrier]}\n",
          "the `{` is never closed");
  refused("version: 1\nprogram: {main: [barrier}\n", "scenario.yaml:2:25");
  refused("version: 1\nexpect: " + std::string(100, '[') + "\n", "never closed");
  refused("version: 1\nexpect: " + std::string(100, '[') + std::string(100, ']') + "\n",
          "nested deeper than 64 levels");
  refused("version: 1\n#" + std::string(4 << 20, 'x') + "\n", "larger than 4 MiB");
}

TEST_CASE("an expectation that nothing can meet or miss is refused with its place") {
  const auto expects = [](const std::string& text, const std::string& message) {
    refused(
        "version: 1\ntrainer: {devices: 2, strategy: ddp, max_steps: 2}\nprogram:\n"
        "  training_step: [{log: {name: train_loss, value: loss}}]\nexpect: [\"" +
            text + "\"]\n",
        message);
  };
  expects("finding LS999", "scenario.yaml:5:19");
  expects("no_finding LS110", "no finding has the code `LS110`");
  expects("metric train_lass > 0", "did you mean `train_loss`?");
  expects("step_time < 3 GiB", "`step_time` is a time");
  expects("mfu > 0 or memory.peak < 3 s", "`<` does not take bytes and time");
  expects("world_size == 2 +- 3 ms", "scenario.yaml:5");
  expects("steps == 2 on rank 7", "ranks are 0 to 1");
  expects("transfers.all_redcue == 3", "did you mean `all_reduce`?");
  for (const std::string result : {"step_time.low"}) {
    refused("version: 1\ntrainer: {max_steps: 1}\nexpect: [\"" + result + " == " + result + "\"]\n",
            "`" + result + "` is not available", 5);
  }
  refused("version: 1\nverify: {ignore: {LS999: noise}}\n", "no finding has the code `LS999`");
}

TEST_CASE("expectations of a case that could not run are not judged") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\n"
      "trainer: {devices: 2, strategy: {PipelineStrategy: {schedule: SpecTrain}}, max_steps: 2}\n"
      "expect: [steps == 2, no_hang, no_findings, finding LS101]\n");
  for (const char* command : {"run ", "verify ", "test "}) {
    const Ended ended = run_program(command + file);
    INFO(ended.output);
    CHECK(ended.code == 5);
    CHECK(ended.output.find("not met") == std::string::npos);
  }
}

TEST_CASE("what the Trainer cannot ask of an asynchronous pipeline is refused at its place") {
  const Folder folder;
  const auto refused_at = [&folder](const std::string& schedule, const std::string& line,
                                    const std::string& message) {
    const std::string file = folder.write(
        "a.yaml",
        "version: 1\n"
        "cluster: {preset: dgx-a100, nodes: 1}\n"
        "model: {input: [4], layers: [{Linear: [4, 4]}, {Linear: [4, 4]}], loss: MSELoss}\n"
        "trainer:\n"
        "  accelerator: gpu\n"
        "  devices: 2\n"
        "  max_steps: 4\n"
        "  strategy: {PipelineStrategy: {schedule: " +
            schedule + "}}\n" + line + "\n");
    const Ended ended = run_program("run " + file);
    INFO(ended.output);
    CHECK(ended.code == 3);
    CHECK(ended.output.find(message) != std::string::npos);
    CHECK(ended.output.find("a.yaml:9:") != std::string::npos);
  };
  refused_at("PipeDream", "  accumulate_grad_batches: 2",
             "PipeDream updates after every batch, and cannot accumulate several");
  refused_at("PipeDream-2BW", "  accumulate_grad_batches: 2",
             "make batch_size and n_microbatches larger");
  refused_at("PipeDream", "  gradient_clip_val: 0.1", "gradient_clip_algorithm: value");
  refused_at("PipeDream", "program: {automatic_optimization: false}", "use automatic optimization");
}

TEST_CASE("what is sound is not refused with it") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\ntrainer: {devices: 2, strategy: ddp, max_steps: 2}\nprogram:\n"
      "  training_step: [{log: {name: train_loss, value: loss}}]\n"
      "expect: [metric train_loss > 0, \"step_time > 0\", \"1 / (steps - world_size + 1) == 1\","
      " \"transfers.all_reduce >= 1 on rank 1\", \"strategy == 'ddp'\", devices == 2 +- 10 %]\n");
  const Ended ended = run_program("test " + file);
  INFO(ended.output);
  CHECK(ended.code == 0);
}

TEST_CASE("a group of all ranks is written `all`") {
  const Folder folder;
  const std::string file = folder.write(
      "a.yaml",
      "version: 1\ncluster: {ranks: 3, network: {bandwidth: 1 GB/s}}\nprogram:\n  main:\n"
      "    - new_group: {ranks: all, as: everyone}\n    - let: {x: \"full(1, 1.0)\"}\n"
      "    - all_reduce: {tensor: x, group: everyone, as: y}\n"
      "    - assert: sum(y) == 3\nexpect: [no_findings, no_hang]\n");
  CHECK(run_program("test " + file).code == 0);
  CHECK(run_program("test " + file + " --world threads").code == 0);
}

TEST_CASE("an endless loop is undecided") {
  refused(bare + "program:\n  main:\n    - {repeat: 1_000_000_000, do: [{let: {x: 1}}]}\n",
          "endless loop", 4);
}

TEST_CASE("a size that is too large is refused in both worlds alike") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml", bare + "program: {main: [{all_reduce: {elements: 1e18}}]}\n");
  const Ended simulated = run_program("verify " + file);
  const Ended threads = run_program("verify " + file + " --world threads");
  CHECK(simulated.code == 3);
  CHECK(threads.code == 3);
  CHECK(simulated.output == threads.output);
}

TEST_CASE("times beyond 64 bits are refused") {
  refused(bare + "program:\n  main:\n    - {repeat: 100, do: [{kernel: 100 d}]}\n", "64 bits");
}

TEST_CASE("a case that is not there is reported") {
  const Folder folder;
  const std::string file =
      folder.write("a.yaml", "version: 1\ncases:\n  one: {trainer: {devices: 1}}\n");
  const Ended ended = run_program("run " + file + ":two");
  CHECK(ended.code == 3);
  CHECK(ended.output.find("no case `two`") != std::string::npos);
}

TEST_CASE("bytes that are no text are refused") {
  refused(std::string("version: 1\n\x00\x01\xff\xfe", 15), "error");
}

TEST_CASE("a value that a comma has cut is one error") {
  const Folder folder;
  for (const char* statements :
       {"[{let: {a: full(2, 3)}}, {all_reduce: a}]", "[{let: {a: [max(1, 2), min(3, 4)]}}]",
        "[{let: {a: full([2, 2], max(1, 2))}}, {all_reduce: {tensor: a}}]"}) {
    const std::string file =
        folder.write("scenario.yaml", bare + "program: {main: " + statements + "}\n");
    const Ended ended = run_program("verify " + file);
    INFO(ended.output);
    CHECK(ended.code == 3);
    CHECK(ended.output.find("a comma inside braces or brackets has cut") != std::string::npos);
    CHECK(ended.output.find("is not defined") == std::string::npos);
    CHECK(ended.output.find("not null") == std::string::npos);
  }
}

TEST_CASE("an exception's message of several lines keeps to its line") {
  const Folder folder;
  const std::string file =
      folder.write("scenario.yaml", bare + "program: {main: [{raise: \"one\\ntwo\\tthree\"}]}\n");
  const Ended ended = run_program("verify " + file);
  INFO(ended.output);
  CHECK(ended.code == 1);
  CHECK(ended.output.find("raised 'one\\ntwo\\tthree'\n") != std::string::npos);
}

TEST_CASE("an error of an option that is short for a key names the option") {
  const Folder folder;
  const std::string file = folder.write("scenario.yaml", bare + "program: {main: [barrier]}\n");
  const Ended ended = run_program("run --calibration nowhere.json " + file);
  INFO(ended.output);
  CHECK(ended.code == 3);
  CHECK(ended.output.find("--> --calibration:1:") != std::string::npos);
  CHECK(ended.output.find("--set") == std::string::npos);
}

TEST_CASE("exec takes a time within which ranks must join") {
  const Folder folder;
  const std::string file = folder.write("scenario.yaml", bare + "program: {main: [barrier]}\n");
  CHECK(run_program("exec --join-timeout 0 " + file).code == 2);
  CHECK(run_program("exec --join-timeout never " + file).code == 2);
  CHECK(run_program("exec --join-timeout 30 " + file).code != 2);
}

TEST_CASE("a configuration of Hugging Face that cannot be used is reported with its place") {
  const std::string scenario = "version: 1\nmodel: {hf: config.json}\n";
  struct Given {
    std::string json;
    std::string message;
    int code;
  };
  for (const Given& given :
       {Given{"{\"model_type\": ", "config.json is not JSON", 3},
        Given{"[]", "holds no JSON object", 3}, Given{"{\"model_type\": 1}", "`model_type`", 3},
        Given{"{\"model_type\": \"gpt-5\"}", "there is no model_type `gpt-5`", 3},
        Given{"{\"model_type\": \"gpt_neox\"}", "the model_type `gpt_neox` is not modelled yet", 5},
        Given{"{\"model_type\": \"llama\"}", "config.json needs `num_hidden_layers`", 3},
        Given{std::string(2 << 20, ' '), "has more than 1 MiB", 3}}) {
    const Folder folder;
    folder.write("config.json", given.json);
    const Ended ended = run_program("run " + folder.write("scenario.yaml", scenario));
    INFO(given.message << "\n" << ended.output);
    CHECK(ended.code == given.code);
    CHECK(ended.output.find(given.message) != std::string::npos);
    CHECK(ended.output.find("scenario.yaml:2:13") != std::string::npos);
  }
}

TEST_CASE("a DeepSpeed configuration that cannot be read is reported with its place") {
  const std::string scenario =
      "version: 1\ncluster: {preset: dgx-a100, nodes: 1}\n"
      "trainer: {accelerator: gpu, devices: 2, strategy: {DeepSpeedStrategy: {config: ds.json}}}\n";
  for (const auto& [json, message] : std::vector<std::pair<std::string, std::string>>{
           {"{\n  \"zero_optimization\": {,}\n}", "ds.json is not JSON (line 2, column 25)"},
           {"{\"bf16\": {}, \"bf16\": {}}", "has the key `bf16` twice"},
           {"{\"bf16\": {},\n \"fp16\": {},\n \"bf16\": {}}", "ds.json:3:3"},
           {"[1, 2]", "holds no JSON object"},
           {std::string(100, '[') + std::string(100, ']'), "more than 32 levels"}}) {
    const Folder folder;
    folder.write("ds.json", json);
    const Ended ended = run_program("verify " + folder.write("scenario.yaml", scenario));
    INFO(ended.output);
    CHECK(ended.code == 3);
    CHECK(ended.output.find(message) != std::string::npos);
    CHECK(ended.output.find("json.exception") == std::string::npos);
  }
  const Folder folder;
  const Ended ended = run_program("verify " + folder.write("scenario.yaml", scenario));
  CHECK(ended.code == 3);
  CHECK(ended.output.find("paths are relative to the scenario file") != std::string::npos);
}

}  // namespace bad_input_test
