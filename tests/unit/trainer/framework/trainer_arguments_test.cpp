// The blocks that LightningCLI writes: every argument of the Trainer with its default.
#include <catch2/catch.hpp>

#include "tests/unit/trainer/scenario_text.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace trainer_arguments_test {

namespace {

Preparation prepared(const std::string& trainer, const std::string& version = "") {
  const std::string versions =
      version.empty() ? "" : "versions: {lightning: \"" + version + "\"}\n";
  return prepare(scenario_of("version: 1\n" + versions +
                             "cluster: {preset: dgx-a100, nodes: 1}\nmodel: {preset: mlp}\n"
                             "trainer:\n" +
                             trainer),
                 standard_strategies());
}

std::string problems_of(const Preparation& preparation) {
  std::string text;
  for (const Problem& problem : preparation.problems) {
    text += problem.message + "\n";
  }
  return text;
}

// Lightning 2.6, `python main.py fit --print_config`.
const std::string block_of_2_6 = R"yaml(
  accelerator: auto
  strategy: auto
  devices: auto
  num_nodes: 1
  precision: null
  logger: null
  callbacks: null
  fast_dev_run: false
  max_epochs: 1
  min_epochs: null
  max_steps: -1
  min_steps: null
  max_time: null
  limit_train_batches: null
  limit_val_batches: null
  limit_test_batches: null
  limit_predict_batches: null
  overfit_batches: 0.0
  val_check_interval: null
  check_val_every_n_epoch: 1
  num_sanity_val_steps: null
  log_every_n_steps: null
  enable_checkpointing: null
  enable_progress_bar: null
  enable_model_summary: null
  accumulate_grad_batches: 1
  gradient_clip_val: null
  gradient_clip_algorithm: null
  deterministic: null
  benchmark: null
  inference_mode: true
  use_distributed_sampler: true
  profiler: null
  detect_anomaly: false
  barebones: false
  plugins: null
  sync_batchnorm: false
  reload_dataloaders_every_n_epochs: 0
  default_root_dir: null
  model_registry: null
  enable_autolog_hparams: true
)yaml";

// Lightning 1.6.
const std::string block_of_1_6 = R"yaml(
  logger: true
  checkpoint_callback: null
  enable_checkpointing: true
  callbacks: null
  default_root_dir: null
  gradient_clip_val: null
  gradient_clip_algorithm: null
  process_position: 0
  num_nodes: 1
  num_processes: null
  devices: null
  gpus: 2
  auto_select_gpus: false
  tpu_cores: null
  ipus: null
  log_gpu_memory: null
  progress_bar_refresh_rate: null
  enable_progress_bar: true
  overfit_batches: 0.0
  track_grad_norm: -1
  check_val_every_n_epoch: 1
  fast_dev_run: false
  accumulate_grad_batches: null
  max_epochs: 1
  min_epochs: null
  max_steps: -1
  min_steps: null
  max_time: null
  limit_train_batches: null
  limit_val_batches: null
  limit_test_batches: null
  limit_predict_batches: null
  val_check_interval: null
  flush_logs_every_n_steps: null
  log_every_n_steps: 50
  accelerator: null
  strategy: ddp
  sync_batchnorm: false
  precision: 32
  enable_model_summary: true
  weights_summary: top
  weights_save_path: null
  num_sanity_val_steps: 2
  resume_from_checkpoint: null
  profiler: null
  benchmark: null
  deterministic: null
  reload_dataloaders_every_n_epochs: 0
  auto_lr_find: false
  replace_sampler_ddp: true
  detect_anomaly: false
  auto_scale_batch_size: false
  prepare_data_per_node: null
  plugins: null
  amp_backend: native
  amp_level: null
  move_metrics_to_cpu: false
  multiple_trainloader_mode: max_size_cycle
  stochastic_weight_avg: false
  terminate_on_nan: null
)yaml";

}  // namespace

TEST_CASE("the defaults that LightningCLI writes ask for nothing") {
  const Preparation of_2_6 = prepared(block_of_2_6);
  INFO(problems_of(of_2_6));
  CHECK(of_2_6.runnable());
  CHECK(of_2_6.problems.empty());
  const Preparation of_1_6 = prepared(block_of_1_6, "1.6");
  INFO(problems_of(of_1_6));
  CHECK(of_1_6.runnable());
  CHECK(of_1_6.problems.empty());
}

TEST_CASE("an argument of other versions chooses one of them, or is refused") {
  CHECK(prepared("  track_grad_norm: -1\n").placement.lightning == Version{1, 9, 0});
  CHECK(prepared("  weights_summary: top\n").placement.lightning == Version{1, 6, 0});
  CHECK(problems_of(prepared("  track_grad_norm: -1\n", "2.0"))
            .find("Lightning 2.0 removed the argument `track_grad_norm`") != std::string::npos);
  CHECK(problems_of(prepared("  enable_autolog_hparams: true\n", "2.1"))
            .find("came with Lightning 2.5") != std::string::npos);
}

TEST_CASE("what is not the default is named as not modelled, or as without effect") {
  const auto kind_of = [](const std::string& trainer, const std::string& version) {
    const Preparation preparation = prepared(trainer, version);
    INFO(problems_of(preparation));
    CHECK(preparation.problems.size() == 1);
    return preparation.problems.empty() ? Problem::Kind::invalid
                                        : preparation.problems.front().kind;
  };
  CHECK(kind_of("  {gpus: 2, overfit_batches: 2}\n", "1.9") == Problem::Kind::unsupported);
  CHECK(kind_of("  {gpus: 2, reload_dataloaders_every_n_epochs: 1}\n", "1.9") ==
        Problem::Kind::unsupported);
  CHECK(kind_of("  {gpus: 2, stochastic_weight_avg: true}\n", "1.5") == Problem::Kind::unsupported);
  CHECK(kind_of("  {gpus: 2, auto_lr_find: true}\n", "1.9") == Problem::Kind::note);
  CHECK(kind_of("  {devices: 2, benchmark: true}\n", "2.6") == Problem::Kind::note);
  CHECK(kind_of("  {devices: 2, callbacks: [DeviceStatsMonitor]}\n", "2.6") == Problem::Kind::note);
  CHECK(kind_of("  {devices: 2, logger: false, callbacks: [DeviceStatsMonitor]}\n", "2.6") ==
        Problem::Kind::refused);
  CHECK(kind_of("  {devices: 2, overfit_batches: 2, limit_val_batches: 3}\n", "2.6") ==
        Problem::Kind::warning);
}

TEST_CASE("amp_backend is native, or apex where it does nothing") {
  CHECK(prepared("  {gpus: 2, strategy: ddp, precision: 16, amp_backend: native}\n", "1.9")
            .runnable());
  CHECK(prepared("  {gpus: 2, strategy: ddp, amp_backend: apex}\n", "1.9").runnable());
  CHECK(
      problems_of(prepared("  {gpus: 2, strategy: ddp, precision: 16, amp_backend: apex}\n", "1.9"))
          .find("`amp_backend` with this value is not modelled") != std::string::npos);
  CHECK(problems_of(prepared("  {gpus: 2, strategy: ddp, amp_level: O2}\n", "1.9"))
            .find("only supported with `amp_backend='apex'`") != std::string::npos);
}

}  // namespace trainer_arguments_test
