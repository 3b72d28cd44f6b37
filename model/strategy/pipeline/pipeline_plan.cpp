#include "model/strategy/pipeline/pipeline_plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "model/network/mixture.hpp"
#include "model/strategy/data_parallel/ddp_arguments.hpp"
#include "model/strategy/pipeline/message_times.hpp"
#include "model/strategy/pipeline/pipeline_sizes.hpp"
#include "model/strategy/tensor/tensor_arguments.hpp"

namespace lockstep {

namespace {

// torch.distributed.pipelining: the class of the schedule, its n_microbatches and scale_grads; the
// cuts and the mesh are what a script writes around it.
constexpr std::array pipeline_rows{
    StrategyArgument{
        "schedule", "text", "1F1B",
        "its name in torch (GPipe, 1F1B, Interleaved1F1B, ..), PipeDream or PipeDream-2BW"},
    StrategyArgument{"n_microbatches", "int", "null", "parts into which a batch is cut",
                     ArgumentUse::strategy, "null: as many as there are stages; 1 with PipeDream"},
    StrategyArgument{"pipeline_parallel_size", "int", "null", "ranks of one pipeline",
                     ArgumentUse::strategy, "null: all ranks, or as many as single stages"},
    StrategyArgument{"tensor_parallel_size", "int", "1",
                     "neighbouring ranks that compute the layers of a stage together"},
    StrategyArgument{parallelize_plan, "", "null",
                     "what the script calls parallelize_module with: a style for each module",
                     ArgumentUse::strategy,
                     "null: no layer is cut; auto: as transformers usually are"},
    StrategyArgument{"fully_shard", "map", "null",
                     "what the script calls fully_shard with, around each stage and its modules",
                     ArgumentUse::strategy, "null: DistributedDataParallel around each stage"},
    StrategyArgument{"stages", "int", "null",
                     "stages of one pipeline, on all of its ranks together", ArgumentUse::strategy,
                     "null: one a rank, and two a rank for schedules of several"},
    StrategyArgument{"split", "", "null",
                     "blocks, parameters or time; or the layers that begin the later stages",
                     ArgumentUse::strategy,
                     "null: blocks, or parameters where fewer blocks repeat than there are stages"},
    StrategyArgument{"first_stage_less_blocks", "int", "0",
                     "blocks that the layers before them count as: the first stage has fewer"},
    StrategyArgument{"last_stage_less_blocks", "int", "0",
                     "the same of the layers behind them, and of the last stage"},
    StrategyArgument{"scale_grads", "bool", "true",
                     "divides gradients by n_microbatches after the last backward"},
    StrategyArgument{"loss_on_all_stages", "bool", "null",
                     "the last stage sends the mean loss to the others; else theirs is -1",
                     ArgumentUse::strategy,
                     "null: true; in trainings with PipeDream and PipeDream-2BW false"},
    StrategyArgument{"vertical_sync", "bool", "false",
                     "PipeDream: all stages compute a batch by one version of the weights"},
};

[[noreturn]] void refuse(const std::string& message, const std::string& argument,
                         const std::string& remedy = "") {
  throw ArgumentProblem(message, argument, remedy);
}

constexpr std::array<std::pair<std::string_view, StageSplit>, 3> split_rules{
    {{"blocks", StageSplit::blocks},
     {"parameters", StageSplit::parameters},
     {"time", StageSplit::time}}};

/// Nothing: it is a list of layers.
std::optional<StageSplit> rule_named(const std::vector<std::string>& split) {
  const auto* found = split.size() == 1
                          ? std::ranges::find(split_rules, split.front(),
                                              &std::pair<std::string_view, StageSplit>::first)
                          : split_rules.end();
  return found == split_rules.end() ? std::nullopt : std::optional(found->second);
}

std::vector<int64_t> numbers_in(const std::vector<std::string>& texts) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      refuse(
          fmt::format("split takes blocks, parameters, time or numbers of layers, not `{}`", text),
          "split");
    }
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> split_argument(const StrategyArguments& arguments) {
  std::vector<std::string> split = arguments.texts("split");
  const bool is_map = std::ranges::any_of(
      arguments.all(), [](const auto& one) { return one.first.starts_with("split."); });
  if (is_map || (arguments.has("split") && split.empty())) {
    refuse("split takes blocks, parameters, time or a list of layers", "split",
           "name the first layer of each stage but the first, as in split: [4, 8]");
  }
  return split;
}

}  // namespace

std::optional<int32_t> stages_in_split(const StrategyArguments& arguments) {
  const std::vector<std::string> split = split_argument(arguments);
  const bool is_list = arguments.has("split") && !rule_named(split);
  return is_list ? std::optional(static_cast<int32_t>(split.size()) + 1) : std::nullopt;
}

std::vector<StageLayers> stages_of_split(const StrategyArguments& arguments, const Network& network,
                                         int32_t stages, const EndsInBlocks& ends) {
  const bool is_given = arguments.has("split");
  const std::vector<std::string> split = split_argument(arguments);
  const std::optional<StageSplit> rule = is_given ? rule_named(split) : StageSplit::blocks;
  StageCuts cuts = rule ? cut_into_stages(network, stages, *rule, ends)
                        : cut_before_layers(network, stages, numbers_in(split));
  if (!cuts.why_not.empty() && !is_given && ends.first == 0 && ends.last == 0) {
    cuts = cut_into_stages(network, stages, StageSplit::parameters);  // a network of single layers
  }
  if (!cuts.why_not.empty()) {
    const bool by_ends = rule && (ends.first > 0 || ends.last > 0) &&
                         cut_into_stages(network, stages, *rule).why_not.empty();
    const char* const of_ends =
        ends.first > 0 ? "first_stage_less_blocks" : "last_stage_less_blocks";
    refuse(cuts.why_not, by_ends ? of_ends : is_given ? "split" : "", cuts.remedy);
  }
  return cuts.stages;
}

ArgumentRows pipeline_arguments() { return pipeline_rows; }

namespace {

/// Throws ArgumentProblem for what an asynchronous pipeline cannot do.
void check_asynchronous(const PipelinePlan& pipeline, const Network& network) {
  const std::string_view name = name_of(pipeline.kind);
  if (pipeline.mesh.columns() > 1) {
    throw UnmodelledArgument(
        fmt::format("{} with several pipelines or tensor parallelism is not modelled", name),
        pipeline.mesh.tensor_ranks > 1 ? "tensor_parallel_size" : "pipeline_parallel_size",
        "use all ranks for one pipeline");
  }
  const auto stage_of = [&pipeline](size_t layer) {
    return std::ranges::find_if(pipeline.stages,
                                [layer](const StageLayers& stage) { return stage.holds(layer); });
  };
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    const std::optional<size_t> tied = network.layers[layer].tied_layer;
    if (tied && stage_of(*tied) != stage_of(layer)) {
      throw UnmodelledArgument(
          fmt::format("{} with a weight that stages on several ranks share is not modelled: each "
                      "updates its copy at another time",
                      name),
          "schedule", "use untied weights, or 1F1B");
    }
  }
}

}  // namespace

PipelinePlan pipeline_plan_of(const TrainingPlan& plan, const StrategyArguments& arguments) {
  PipelinePlan pipeline;
  pipeline.kind = schedule_argument(arguments);
  pipeline.shape = pipeline_shape_of(arguments, std::max(1, plan.world_size));
  if (!plan.network->modules.empty()) {
    throw UnmodelledArgument("a pipeline over several modules is not modelled", "",
                             "give it one model");
  }
  if (plan.optimizers.size() != 1 ||
      plan.optimizers.front().sharding != OptimizerPlan::Sharding::none) {
    throw UnmodelledArgument(
        "a pipeline with several optimizers, or with a divided one, is not "
        "modelled",
        "", "give it one optimizer");
  }
  for (const auto& [module, style] : parallel_plan_of(arguments)) {
    if (style.kind == ParallelStyle::Kind::experts) {
      throw UnmodelledArgument("ExpertParallel in a pipeline is not modelled",
                               fmt::format("{}.{}", parallelize_plan, module));
    }
  }
  const Network& whole = plan.whole_network != nullptr ? *plan.whole_network : *plan.network;
  if (has_auxiliary_loss(whole)) {
    throw UnmodelledArgument("the auxiliary loss of experts in a pipeline is not modelled", "",
                             "set aux_loss_coef: 0");
  }
  pipeline.stages = stages_of_split(arguments, whole, pipeline.shape.stages(),
                                    {count_argument(arguments, "first_stage_less_blocks", 0),
                                     count_argument(arguments, "last_stage_less_blocks", 0)});
  if (plan.whole_network != nullptr) {
    pipeline.stages = stages_of_part(pipeline.stages, whole, *plan.network);
  }
  pipeline.scales_gradients = arguments.boolean(
      "scale_grads", plan.pipelines_scale_gradients || is_asynchronous(pipeline.kind));
  pipeline.loss_on_all_stages = arguments.boolean("loss_on_all_stages", true);
  pipeline.training_loss_on_all_stages =
      arguments.boolean("loss_on_all_stages", !is_asynchronous(pipeline.kind));
  pipeline.vertical_sync = arguments.boolean("vertical_sync", false);
  if (pipeline.vertical_sync && pipeline.kind != PipelineScheduleKind::pipe_dream) {
    refuse(
        fmt::format("vertical_sync is an option of PipeDream, not of {}", name_of(pipeline.kind)),
        "vertical_sync", "leave it out");
  }
  const int32_t world_size = std::max(1, plan.world_size);
  pipeline.mesh.tensor_ranks = tensor_ranks_of(arguments, world_size);
  pipeline.mesh.replicas = world_size / pipeline.mesh.tensor_ranks / pipeline.shape.ranks;
  if (is_asynchronous(pipeline.kind)) {
    check_asynchronous(pipeline, whole);
  }
  pipeline.shards = pipeline_shards(plan, arguments, pipeline);
  return pipeline;
}

namespace {

// Of the micro-batches that come while the pipeline is full: what more of them take longer, without
// the time in which it fills and empties.
PipelineBubble steady_bubble(PipelineScheduleKind kind, PipelineShape shape,
                             const PipelineDurations& durations) {
  const int32_t more = std::max(shape.ranks, shape.micro_batches);
  const auto played = [&](int32_t micro_batches) {
    shape.micro_batches = micro_batches;
    const PipelineSchedule schedule = make_pipeline_schedule(kind, shape);
    return std::pair(makespan(schedule, durations),
                     makespan_with_messages(pipeline_steps(kind, schedule), durations));
  };
  const auto [alone, with_messages] = played(more);
  const auto [longer, longer_with_messages] = played(2 * more);
  const double work = more * (durations.forward + durations.backward);
  return {1 - work / (longer - alone), 1 - work / (longer_with_messages - with_messages)};
}

}  // namespace

std::optional<PipelineBubble> ideal_bubble(const StrategyArguments& arguments, int32_t world_size) {
  const PipelineShape shape = pipeline_shape_of(arguments, world_size);
  if (shape.ranks == 1) {
    return std::nullopt;
  }
  const PipelineScheduleKind kind = schedule_argument(arguments);
  const PipelineDurations usual{};  // a backward of two forwards, in halves
  if (is_asynchronous(kind)) {
    return steady_bubble(kind, shape, usual);
  }
  const PipelineSchedule schedule = make_pipeline_schedule(kind, shape);
  const double work =
      shape.stages_per_rank * shape.micro_batches * (usual.forward + usual.backward);
  return PipelineBubble{1 - work / makespan(schedule, usual),
                        1 - work / makespan_with_messages(pipeline_steps(kind, schedule), usual)};
}

TrainerLimits limits_of(PipelineScheduleKind kind) {
  if (!is_asynchronous(kind)) {
    return {};
  }
  const std::string_view name = name_of(kind);
  TrainerLimits limits;
  limits.accumulation = {
      fmt::format("{} updates after every batch, and cannot accumulate several", name),
      kind == PipelineScheduleKind::pipe_dream
          ? "leave it out, or use PipeDream-2BW, which adds up n_microbatches"
          : "leave it out, and make batch_size and n_microbatches larger"};
  limits.clipping_by_norm = {
      fmt::format("{} cannot clip by the norm of the whole model: its stages update at different "
                  "times, and none knows the gradients of the others",
                  name),
      "use gradient_clip_algorithm: value, or schedule: 1F1B"};
  limits.manual = {fmt::format("{} under manual optimization is not modelled: stages update when a "
                               "batch has come back to them, not where training_step says so",
                               name),
                   "use automatic optimization"};
  return limits;
}

namespace {

// torch/distributed/pipelining/schedules.py of the releases.
Version release_of(PipelineScheduleKind kind) {
  switch (kind) {
    case PipelineScheduleKind::interleaved_zero_bubble:
    case PipelineScheduleKind::zero_bubble_v: return {2, 6, 0};
    case PipelineScheduleKind::dual_pipe_v: return {2, 9, 0};
    default: return {2, 4, 0};
  }
}

}  // namespace

std::optional<TorchFeature> pipeline_feature(const StrategyArguments& arguments) {
  const PipelineScheduleKind kind = schedule_argument(arguments);
  if (is_asynchronous(kind)) {
    return std::nullopt;  // none of torch's
  }
  const Version release = release_of(kind);
  const Version scales{2, 7, 0};  // pytorch pull request 144352
  if (arguments.has("scale_grads") && release < scales) {
    return TorchFeature{scales, "scale_grads of a pipeline's schedule", "scale_grads"};
  }
  return release > Version{2, 4, 0}
             ? TorchFeature{release, fmt::format("the schedule {}", name_of(kind)), "schedule"}
             : TorchFeature{release, "torch.distributed.pipelining", ""};
}

TrainerLimits pipeline_limits(const StrategyArguments& arguments) {
  return limits_of(schedule_argument(arguments));
}

TrainerMembership pipeline_membership(const StrategyArguments& arguments, const Place& place) {
  TrainerMembership membership = TrainerMembership::of_every_rank(place);
  PipelineMesh mesh;
  try {
    const PipelineShape shape = pipeline_shape_of(arguments, place.world_size);
    mesh.tensor_ranks = tensor_ranks_of(arguments, place.world_size);
    mesh.replicas = place.world_size / mesh.tensor_ranks / shape.ranks;
    membership.batch_size_multiple = shape.micro_batches;
  } catch (const ArgumentProblem&) {
    return membership;  // the strategy itself refuses them
  }
  const PipelinePlace here = PipelinePlace::of(static_cast<int32_t>(place.rank.value), mesh);
  membership.data_parallel_size = mesh.replicas;
  membership.data_parallel_index = here.replica;
  membership.counts_samples = here.in_pipeline == 0 && here.in_tensor == 0;
  return membership;
}

}  // namespace lockstep
