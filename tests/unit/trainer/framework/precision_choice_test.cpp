#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/strategy/registry.hpp"
#include "model/trainer/framework/precision_choice.hpp"

using namespace lockstep;

namespace precision_choice_test {

namespace {

const std::vector<std::string> names_of_2 = {"32-true",
                                             "64-true",
                                             "16-true",
                                             "bf16-true",
                                             "16-mixed",
                                             "bf16-mixed",
                                             "transformer-engine",
                                             "transformer-engine-float16"};

PrecisionSituation under(const std::string& strategy, Version lightning = {2, 6, 0}) {
  PrecisionSituation situation;
  situation.lightning = lightning;
  situation.strategy = strategy;
  situation.traits = standard_strategies().traits_of(strategy);
  situation.compute_capability = 90;
  return situation;
}

std::vector<std::string> taken_by(const std::string& strategy) {
  std::vector<std::string> taken;
  for (const std::string& name : names_of_2) {
    if (choose_precision(name, under(strategy)).refusal.empty()) {
      taken.push_back(name);
    }
  }
  return taken;
}

}  // namespace

TEST_CASE("each strategy takes its precisions and refuses the others") {
  const std::vector<std::string> five = {"32-true", "16-true", "bf16-true", "16-mixed",
                                         "bf16-mixed"};
  for (const char* strategy : {"single_device", "ddp", "ddp_spawn", "ddp_fork", "ddp_notebook"}) {
    CHECK(taken_by(strategy) == names_of_2);
  }
  CHECK(taken_by("fsdp") == five);
  PrecisionSituation model_parallel = under("ddp");
  model_parallel.traits.precisions = Precisions::no_double_nor_scaler;
  CHECK(choose_precision("bf16-mixed", model_parallel).refusal.empty());
  CHECK_FALSE(choose_precision("16-mixed", model_parallel).refusal.empty());
}

TEST_CASE("a precision is a type of parameters and one of activations") {
  struct Row {
    std::string name;
    DType parameters;
    DType activations;
  };
  for (const Row& row :
       {Row{"32-true", DType::fp32, DType::fp32}, Row{"64-true", DType::fp64, DType::fp64},
        Row{"16-true", DType::fp16, DType::fp16}, Row{"bf16-true", DType::bf16, DType::bf16},
        Row{"16-mixed", DType::fp32, DType::fp16}, Row{"bf16-mixed", DType::fp32, DType::bf16}}) {
    const PrecisionChoice choice = choose_precision(row.name, under("ddp"));
    CHECK(choice.parameters == row.parameters);
    CHECK(choice.activations == row.activations);
  }
}

TEST_CASE("the short names are mixed, in 1.x they are all there is") {
  const Version v1_6{1, 6, 5};
  CHECK(choose_precision("16", under("ddp")).name == "16-mixed");
  CHECK(choose_precision("bf16", under("ddp", v1_6)).name == "bf16-mixed");
  CHECK(choose_precision("32", under("ddp", v1_6)).name == "32-true");
  CHECK(choose_precision("64", under("ddp", v1_6)).name == "64-true");
  CHECK_FALSE(choose_precision("16-mixed", under("ddp", v1_6)).refusal.empty());
  CHECK_FALSE(choose_precision("8", under("ddp")).refusal.empty());
}

TEST_CASE("what 2.x renamed means the same by its name of 1.x, and nothing else has one") {
  PrecisionSituation of_1;
  of_1.lightning = {1, 9, 0};
  for (const char* name : {"16-mixed", "bf16-mixed", "32-true", "64-true"}) {
    const std::string older(precision_before_2_0(name));
    CAPTURE(name, older);
    CHECK_FALSE(older.empty());
    CHECK(choose_precision(older, of_1).refusal.empty());
    CHECK(choose_precision(older, of_1).name == name);
    CHECK_FALSE(choose_precision(name, of_1).refusal.empty());
  }
  CHECK(precision_before_2_0("bf16-true").empty());
  CHECK(precision_before_2_0("bf16").empty());
}

TEST_CASE("16 bit on CPU becomes bf16") {
  PrecisionSituation cpu = under("ddp");
  cpu.cpu = true;
  cpu.compute_capability = 0;
  const PrecisionChoice choice = choose_precision("16-mixed", cpu);
  CHECK(choice.name == "bf16-mixed");
  CHECK(choice.activations == DType::bf16);
  CHECK_FALSE(choice.warning.empty());
}

TEST_CASE("Apex knows no bf16 and no sharded strategy") {
  PrecisionSituation apex = under("ddp", {1, 6, 5});
  apex.apex = true;
  CHECK(choose_precision("16", apex).refusal.empty());
  CHECK_FALSE(choose_precision("bf16", apex).refusal.empty());
  apex.strategy = "ddp_sharded";
  apex.traits.takes_apex = false;
  CHECK_FALSE(choose_precision("16", apex).refusal.empty());
  apex.apex = false;
  CHECK(choose_precision("16", apex).refusal.empty());
}

TEST_CASE("dp takes 16 bit although its documentation says otherwise") {
  const PrecisionChoice choice = choose_precision("16", under("dp", {1, 6, 5}));
  CHECK(choice.refusal.empty());
  CHECK_FALSE(choice.note.empty());
}

TEST_CASE("bf16 needs Ampere, and fp16 is fast from Volta on") {
  PrecisionSituation situation = under("ddp");
  situation.compute_capability = 70;
  CHECK(choose_precision("bf16-mixed", situation).refusal.empty());
  CHECK_FALSE(choose_precision("bf16-mixed", situation).warning.empty());  // emulated
  situation.torch = {2, 3, 0};
  CHECK_FALSE(choose_precision("bf16-mixed", situation).refusal.empty());
  CHECK_FALSE(choose_precision("bf16-true", situation).warning.empty());
  CHECK(choose_precision("16-mixed", situation).warning.empty());
  situation.compute_capability = 61;
  CHECK_FALSE(choose_precision("16-mixed", situation).warning.empty());
  situation.compute_capability = 80;
  CHECK(choose_precision("bf16-mixed", situation).refusal.empty());
}

// transformer_engine/pytorch/fp8.py; Lightning does not look.
TEST_CASE("FP8 needs a GPU of compute capability 8.9") {
  PrecisionSituation situation = under("ddp");
  CHECK(choose_precision("transformer-engine", situation).note.find("FP8") != std::string::npos);
  situation.compute_capability = 80;
  CHECK(choose_precision("transformer-engine", situation).refusal ==
        "Device compute capability 8.9 or higher required for FP8 execution");
  CHECK(choose_precision("bf16-mixed", situation).refusal.empty());
  situation.cpu = true;
  CHECK_FALSE(choose_precision("transformer-engine-float16", situation).refusal.empty());
}

TEST_CASE("GradScaler runs under 16-mixed on GPUs, or it is said that it is not modelled") {
  for (const char* strategy :
       {"single_device", "dp", "ddp", "ddp_spawn", "ddp2", "fsdp", "fsdp_native", "ddp_sharded",
        "ddp_fully_sharded", "bagua", "horovod"}) {
    INFO(strategy);
    CHECK(choose_precision("16-mixed", under(strategy)).scales_loss);
    CHECK(choose_precision("16-mixed", under(strategy)).note.find("GradScaler") ==
          std::string::npos);
    CHECK_FALSE(choose_precision("bf16-mixed", under(strategy)).scales_loss);
    CHECK_FALSE(choose_precision("32-true", under(strategy)).scales_loss);
  }
  for (const char* strategy : {"deepspeed", "MegatronStrategy"}) {  // scalers of their own
    CHECK_FALSE(choose_precision("16-mixed", under(strategy)).scales_loss);
    CHECK(choose_precision("16-mixed", under(strategy)).note.empty());
  }
  for (const char* strategy : {"parameter_server", "PipelineStrategy"}) {
    CHECK_FALSE(choose_precision("16-mixed", under(strategy)).scales_loss);
    CHECK(choose_precision("16-mixed", under(strategy)).note ==
          std::string("GradScaler (unscaling and inf check) is not modelled under ") + strategy);
  }
  PrecisionSituation cpu = under("ddp");
  cpu.cpu = true;
  CHECK_FALSE(choose_precision("16-mixed", cpu).scales_loss);
  CHECK(choose_precision("16", under("ddp", {1, 6, 5})).scales_loss);
}

namespace {

PrecisionChoice on_device(DeviceType device, const std::string& precision,
                          Version lightning = {2, 6, 0}) {
  PrecisionSituation situation =
      under(device == DeviceType::tpu ? "xla" : "single_device", lightning);
  situation.device = device;
  situation.compute_capability = 0;
  return choose_precision(precision, situation);
}

}  // namespace

// plugins/precision/xla.py from 2.1 on; accelerator_connector.py of 2.0 and of 1.x.
TEST_CASE("TPUs take one type for everything") {
  for (const char* taken : {"32-true", "16-true", "bf16-true", "32"}) {
    CHECK(on_device(DeviceType::tpu, taken).refusal.empty());
  }
  for (const char* other : {"64-true", "bf16-mixed", "16-mixed", "transformer-engine"}) {
    CHECK(on_device(DeviceType::tpu, other).refusal.find("is not supported in XLA") !=
          std::string::npos);
  }
  for (const Version& older : {Version{1, 9, 5}, Version{2, 0, 9}}) {
    const PrecisionChoice mixed = on_device(DeviceType::tpu, "16", older);
    CHECK(mixed.refusal.empty());
    CHECK_FALSE(mixed.warning.empty());
    CHECK(mixed.name == "bf16-mixed");
    CHECK(mixed.parameters == DType::bf16);
    CHECK_FALSE(mixed.scales_loss);
    CHECK(on_device(DeviceType::tpu, "bf16", older).parameters == DType::bf16);
    CHECK(on_device(DeviceType::tpu, "64", older).refusal.find("is not implemented") !=
          std::string::npos);
  }
}

TEST_CASE("MPS has no float64, and autocast of CUDA does nothing there") {
  CHECK(on_device(DeviceType::mps, "64-true").refusal.find("float64") != std::string::npos);
  const PrecisionChoice mixed = on_device(DeviceType::mps, "16-mixed");
  CHECK(mixed.activations == DType::fp32);
  CHECK_FALSE(mixed.warning.empty());
  CHECK_FALSE(mixed.scales_loss);
  CHECK(on_device(DeviceType::mps, "bf16-true").refusal.empty());
}

}  // namespace precision_choice_test
