#include "rehearsal/accuracy/row_source.hpp"

#include <fmt/format.h>

#include "rehearsal/accuracy/row_model.hpp"

namespace lockstep::cli {

namespace {

ThroughputRow one_process_of(ThroughputRow row) {
  const auto gpus = row.whole("gpus");
  const auto batch = row.whole("global_batch");
  const auto tokens = row.number("tokens_per_s");
  if (!gpus || *gpus < 2 || !batch || *batch % *gpus != 0 || !tokens) {
    return row;
  }
  row.set("gpus", "1");
  row.set("dp", "1");
  row.set("strategy", "single");
  row.set("global_batch", std::to_string(*batch / *gpus));
  row.set("tokens_per_s", fmt::format("{}", *tokens / static_cast<double>(*gpus)));
  return row;
}

/// lambdal/deeplearning-benchmark: pytorch/scripts/benchmark_pytorch.sh exports the variable for
/// each task. It starts Transformer-XL on several GPUs without `--multi_gpu ddp`
/// (pytorch/scripts/config_v1), and NVIDIA's train.py wraps nothing then: each process has its part
/// of the batch and a model of its own.
ThroughputRow as_lambda_ran(ThroughputRow row) {
  row.set("interconnect", row.text("interconnect") + " NCCL_P2P_DISABLE=1");
  return row.text("model").starts_with("transformerxl") ? one_process_of(std::move(row)) : row;
}

/// NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets/configs.yml: memory_format nhwc of
/// all resnet50 in AMP, of none in FP32 or TF32.
ThroughputRow as_examples_ran(ThroughputRow row) {
  if (contains(row.text("precision"), "AMP")) {
    row.set("precision", row.text("precision") + " nhwc");
  }
  return row;
}

}  // namespace

ThroughputRow with_scripts_of_source(const ThroughputRow& row) {
  return row.source == "lambda_gpu_bench"  ? as_lambda_ran(row)
         : row.source == "dle_pt_resnet50" ? as_examples_ran(row)
                                           : row;
}

}  // namespace lockstep::cli
