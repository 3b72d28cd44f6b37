// What DeepSpeed's buckets hold at the peak: `contiguous_gradients` moves each gradient into them.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "rehearsal/measure/advice.hpp"
#include "tests/unit/rehearsal/rehearsed.hpp"

namespace lockstep::cli::deepspeed_buckets_test {
namespace {

constexpr int64_t of_layer = 4096 * 4096 * 2;  ///< bytes in 16 bits

/// Purposes at the peak of rank 0.
const MemoryByPurpose& at_peak(const std::vector<Job>& jobs) {
  const Rehearsal& rehearsal = jobs.front().result;
  REQUIRE(rehearsal.results.prediction.step_time > Time{});
  return rehearsal.results.ranks[0].memory.peak_by_purpose;
}

std::vector<Job> trained(int layers, int devices, const std::string& strategy) {
  return test::rehearsed(fmt::format(
      "version: 1\ncluster: {{preset: dgx-h100, nodes: 1}}\n"
      "model: {{input: [4096], layers: [{{repeat: {}, layers: [{{Linear: {{in_features: 4096, "
      "out_features: 4096, bias: false}}}}]}}], loss: MSELoss}}\n"
      "optimizer: {{AdamW: {{lr: 1e-4}}}}\n"
      "data: {{train: {{samples: 64, batch_size: 1}}}}\n"
      "trainer: {{accelerator: gpu, devices: {}, max_steps: 3, num_sanity_val_steps: 0, "
      "limit_val_batches: 0, precision: bf16-mixed, enable_checkpointing: false, strategy: "
      "{{DeepSpeedStrategy: {{overlap_comm: false, {}}}}}}}\nverify: {{numerics: false}}\n",
      layers, devices, strategy));
}

int64_t bytes_of(const MemoryByPurpose& memory, Purpose purpose) {
  return memory[static_cast<size_t>(purpose)].count();
}

}  // namespace

// 150 M elements of 2 bytes, and the copy of eight layers that travels; of the gradients this
// rank's eighth alone. (stage_1_and_2.py, reduce_independent_p_g_buckets_and_remove_grads)
TEST_CASE("gradients of stage 2 lie in the bucket, and a copy of it travels") {
  const auto jobs = trained(8, 8, "stage: 2, reduce_bucket_size: 150_000_000");
  CHECK(bytes_of(at_peak(jobs), Purpose::communication) == 300'000'000 + 8 * of_layer);
  CHECK(bytes_of(at_peak(jobs), Purpose::gradient) == of_layer);
}

// average_tensor: gradient_reduction_w_predivide of the bucket itself.
TEST_CASE("without reduce_scatter the bucket itself travels") {
  const auto jobs =
      trained(8, 8, "stage: 2, reduce_bucket_size: 150_000_000, reduce_scatter: false");
  CHECK(bytes_of(at_peak(jobs), Purpose::communication) == 300'000'000);
}

// stage3.py, __init__: __ipg_bucket_flat_buffer. Where Adam makes its temporaries no call is under
// way.
TEST_CASE("the bucket of stage 3 stays for good") {
  for (const int64_t elements : {20'000'000, 60'000'000}) {
    CAPTURE(elements);
    const auto jobs = trained(32, 2, fmt::format("stage: 3, reduce_bucket_size: {}", elements));
    CHECK(bytes_of(at_peak(jobs), Purpose::communication) == 2 * elements);
  }
}

// FSDP casts to bf16, whatever the Trainer's precision is: half of 8 x 989.5 TFLOP/s are more than
// all of 8 x 66.9.
TEST_CASE("MFU is by the type in which layers compute") {
  const auto jobs = test::rehearsed(
      "version: 1\ncluster: {preset: dgx-h100, nodes: 1}\nmodel: {preset: gpt2}\n"
      "data: {train: {samples: 256, batch_size: 8}}\n"
      "trainer: {accelerator: gpu, devices: 8, max_steps: 3, num_sanity_val_steps: 0, "
      "limit_val_batches: 0, strategy: {FSDPStrategy: {auto_wrap_policy: blocks, mixed_precision: "
      "{param_dtype: bf16, reduce_dtype: bf16, buffer_dtype: bf16}}}}\n");
  const Prediction& prediction = jobs.front().result.results.prediction;
  CHECK_FALSE(prediction.implausible_mfu);
  REQUIRE(prediction.mfu);
  CHECK(*prediction.mfu > 0.2);
  CHECK(*prediction.mfu < 0.7);
}

// The engine converts the model, and nobody converts indices.
TEST_CASE("a type that only DeepSpeed's configuration names is not modelled, or does not run") {
  const auto problem_of = [](const std::string& model) {
    const auto jobs = test::rehearsed(
        "version: 1\ncluster: {preset: dgx-h100, nodes: 1}\nmodel: " + model +
        "\ndata: {train: {samples: 64, batch_size: 2}}\n"
        "trainer: {accelerator: gpu, devices: 8, max_steps: 3, strategy: {DeepSpeedStrategy: "
        "{config: {bf16: {enabled: true}, zero_optimization: {stage: 2}}}}}\n");
    REQUIRE_FALSE(jobs.front().result.problems.empty());
    return jobs.front().result.problems.front();
  };
  const Problem of_indices = problem_of("{preset: gpt2, seq_len: 512}");
  CHECK(of_indices.kind == Problem::Kind::unsupported);
  const Problem of_numbers = problem_of("{input: [8], layers: [{Linear: [8, 4]}], loss: MSELoss}");
  CHECK(of_numbers.kind == Problem::Kind::refused);
  CHECK(of_numbers.code == "LS501");
}

// 60 steps of which PowerSGD compresses all but ten: of 3 and of 12 it compresses fewer than half.
TEST_CASE("suggestions are tried on steps like most of the training's") {
  const Rehearsal rehearsal = test::predicted(
      "version: 1\nversions: {lightning: \"1.8\"}\n"
      "cluster: {preset: p3.16xlarge, nodes: 2}\nmodel: {preset: gpt2}\n"
      "data: {train: {samples: 100000, batch_size: 2}}\n"
      "trainer: {accelerator: gpu, devices: 4, num_nodes: 2, max_steps: 60, limit_val_batches: 0, "
      "strategy: {DDPStrategy: {ddp_comm_hook: powerSGD_hook, ddp_comm_state: "
      "{start_powerSGD_iter: 10}}}}\nverify: {numerics: false}\n");
  const Advice advice = advise(rehearsal, RehearseRequest());
  CHECK(advice.steps == 48);
  REQUIRE(advice.base);
  CHECK(advice.base->samples_per_s ==
        Approx(*rehearsal.results.prediction.samples_per_s).epsilon(0.02));
}

}  // namespace lockstep::cli::deepspeed_buckets_test
