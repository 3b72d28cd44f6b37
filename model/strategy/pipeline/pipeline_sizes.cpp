// The sizes of a pipeline by its arguments, and what to write for those that do not fit.
#include "model/strategy/pipeline/pipeline_sizes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/core/nearest_sizes.hpp"
#include "model/core/spelling.hpp"

namespace lockstep {

namespace {

[[noreturn]] void refuse_size(const std::string& message, const std::string& argument,
                              const std::string& remedy = "") {
  throw ArgumentProblem(message, argument, remedy);
}

}  // namespace

int32_t count_argument(const StrategyArguments& arguments, const std::string& name,
                       int64_t otherwise) {
  const int64_t count = arguments.integer(name, otherwise);
  const int64_t least = std::min<int64_t>(1, otherwise);
  constexpr int64_t most = 1'000'000;
  if (count < least || count > most) {
    refuse_size(fmt::format("{} must be {} to {}, not {}", name, least, most, count), name);
  }
  return static_cast<int32_t>(count);
}

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 1> unmodelled_schedules{{
    {"SpecTrain",
     "each stage computes with weights that it predicts from its momentum, and no released "
     "implementation has values to compare with"},
}};

}  // namespace

PipelineScheduleKind schedule_argument(const StrategyArguments& arguments) {
  const std::string name = arguments.text("schedule", "1F1B");
  const auto kind = pipeline_schedule_named(name);
  if (!kind) {
    for (const auto& [other, why] : unmodelled_schedules) {
      if (name == other) {
        throw UnmodelledArgument(fmt::format("the schedule {} is not modelled: {}", name, why),
                                 "schedule", "use PipeDream-2BW, PipeDream or 1F1B");
      }
    }
    const std::string nearest = did_you_mean(
        name, {"GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble",
               "ZBVZeroBubble", "DualPipeV", "PipeDream", "PipeDream-2BW"});
    refuse_size(
        fmt::format("unknown schedule `{}`{}{}", name, nearest.empty() ? "" : "; ", nearest),
        "schedule",
        "use GPipe, 1F1B, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, "
        "DualPipeV, PipeDream or PipeDream-2BW");
  }
  return *kind;
}

int32_t tensor_ranks_of(const StrategyArguments& arguments, int32_t world_size) {
  const int32_t ranks = count_argument(arguments, "tensor_parallel_size", 1);
  if (world_size % ranks != 0) {
    refuse_size(fmt::format("{} ranks cannot be divided into groups of {}", world_size, ranks),
                "tensor_parallel_size",
                fmt::format("write tensor_parallel_size: {}, which divides the number of ranks",
                            divisors_of(world_size, ranks)));
  }
  return ranks;
}

namespace {

// What one update is of.
void check_updates(PipelineScheduleKind kind, const PipelineShape& shape) {
  if (kind == PipelineScheduleKind::pipe_dream && shape.micro_batches != 1) {
    refuse_size(fmt::format("PipeDream updates after every minibatch, which is a batch of the "
                            "DataLoader, and does not cut it into {}",
                            shape.micro_batches),
                "n_microbatches",
                "leave n_microbatches out and divide batch_size, or use PipeDream-2BW");
  }
  if (kind == PipelineScheduleKind::pipe_dream_double_buffered &&
      shape.micro_batches < shape.ranks) {
    refuse_size(
        fmt::format("PipeDream-2BW has two versions of the weights only if n_microbatches ({}) "
                    "is at least the number of stages ({})",
                    shape.micro_batches, shape.ranks),
        "n_microbatches",
        fmt::format("write n_microbatches: {} or more, and a batch_size that it divides",
                    shape.ranks));
  }
}

std::string remedy_of_micro_batches(PipelineScheduleKind kind, PipelineShape shape) {
  const int32_t given = shape.micro_batches;
  std::vector<int64_t> possible;
  const auto is_possible = [&](int32_t count) {
    shape.micro_batches = count;
    return why_no_schedule(kind, shape).empty();
  };
  for (int32_t below = given - 1; below > 0 && possible.empty(); --below) {
    if (is_possible(below)) {
      possible.push_back(below);
    }
  }
  const size_t found = possible.size();
  const int32_t most = std::max(given, shape.stages()) + shape.ranks;  // a round more
  for (int32_t above = given + 1; above <= most && possible.size() == found; ++above) {
    if (is_possible(above)) {
      possible.push_back(above);
    }
  }
  return fmt::format("write n_microbatches: {}, and a batch_size that it divides",
                     one_of_numbers(possible));
}

/// Throws ArgumentProblem for what the schedule cannot be made of.
void check_schedule(PipelineScheduleKind kind, const PipelineShape& shape, int32_t usual) {
  const std::string why = why_no_schedule(kind, shape);
  if (why.empty()) {
    return;
  }
  const std::string message =
      why.starts_with(name_of(kind)) ? why : fmt::format("{}: {}", name_of(kind), why);
  const bool single = is_single_stage(kind);
  if ((single || shape.placement == StagePlacement::v) && shape.stages_per_rank != usual) {
    refuse_size(message, "stages",
                fmt::format("write stages: {}{}", usual * shape.ranks,
                            single ? ", or schedule: Interleaved1F1B" : ""));
  }
  refuse_size(message, "n_microbatches", remedy_of_micro_batches(kind, shape));
}

std::string remedy_of_pipelines(int32_t ranks, int32_t asked, bool by_stages) {
  const std::string divisors = divisors_of(ranks, asked);
  if (!by_stages) {
    return fmt::format("write pipeline_parallel_size: {}, which divides the number of ranks",
                       divisors);
  }
  return fmt::format("write stages: {}, which divides the number of ranks{}", divisors,
                     asked % ranks == 0 ? ", or schedule: Interleaved1F1B" : "");
}

}  // namespace

PipelineShape pipeline_shape_of(const StrategyArguments& arguments, int32_t all_ranks) {
  const int32_t world_size = all_ranks / tensor_ranks_of(arguments, all_ranks);
  const PipelineScheduleKind kind = schedule_argument(arguments);
  const int32_t usual = is_single_stage(kind) ? 1 : 2;
  PipelineShape shape;
  shape.placement = placement_of(kind);
  const bool single_stages = is_single_stage(kind) && arguments.has("stages");
  shape.ranks = count_argument(arguments, "pipeline_parallel_size",
                               single_stages ? count_argument(arguments, "stages", 1) : world_size);
  if (shape.ranks > world_size || world_size % shape.ranks != 0) {
    const bool by_stages = single_stages && !arguments.has("pipeline_parallel_size");
    refuse_size(
        fmt::format("{} ranks cannot be divided into pipelines of {}", world_size, shape.ranks),
        by_stages ? "stages" : "pipeline_parallel_size",
        remedy_of_pipelines(world_size, shape.ranks, by_stages));
  }
  const int32_t stages = count_argument(arguments, "stages", int64_t{usual} * shape.ranks);
  if (stages % shape.ranks != 0) {
    refuse_size(fmt::format("{} stages cannot be divided among {} ranks", stages, shape.ranks),
                "stages",
                fmt::format("write stages: {}, a multiple of the ranks of a pipeline",
                            nearest_multiples(stages, shape.ranks)));
  }
  shape.stages_per_rank = stages / shape.ranks;
  shape.micro_batches = count_argument(arguments, "n_microbatches",
                                       kind == PipelineScheduleKind::pipe_dream ? 1 : stages);
  check_updates(kind, shape);
  check_schedule(kind, shape, usual);
  return shape;
}

}  // namespace lockstep
