#include "rehearsal/plan/layout_bounds.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

constexpr auto picoseconds = static_cast<double>(picoseconds_per_second);

int64_t micro_batches_of(const Layout& layout) {
  return layout.batch_size * layout.accumulated / layout.micro_batch;
}

/// Micro-batches whose forward through a stage of its own the first rank of a pipeline runs before
/// its first backward: 1F1B, or interleaved stages (Narayanan et al. 2021, section 2.2).
int64_t forwards_ahead(const Layout& layout) {
  const int64_t stages = layout.stages;
  const int64_t of_rank = layout.stages_per_rank;
  const int64_t ahead = of_rank == 1 ? stages : (of_rank - 1) * stages + 2 * (stages - 1) + 1;
  return std::min(ahead, of_rank * micro_batches_of(layout));
}

}  // namespace

Time least_time_of(const LayoutTask& task, const Layout& layout) {
  const LayoutBounds& bounds = task.bounds;
  if (!bounds.times) {
    return {};
  }
  const int64_t count = micro_batches_of(layout);
  const LeastTimes times = bounds.times(layout.micro_batch, layout.tensor, layout.context);
  double blocks = static_cast<double>(times.blocks.count());
  if (layout.recompute == Recompute::full) {
    blocks += static_cast<double>(times.blocks_again.count());
  }
  const auto seconds_of = [](double bytes, BytesPerSecond rate) {
    return rate > BytesPerSecond{} ? bytes / static_cast<double>(rate.count()) : 0.0;
  };
  if (const auto found = bounds.exchanges.find(layout.tensor); found != bounds.exchanges.end()) {
    const double bytes = static_cast<double>(bounds.between_blocks.count()) *
                         static_cast<double>(layout.micro_batch) / layout.context *
                         (layout.tensor - 1) / layout.tensor;
    blocks += picoseconds * static_cast<double>(found->second) *
              seconds_of(bytes, bounds.between_devices);
  }
  double least = static_cast<double>(count) * (blocks + static_cast<double>(times.others.count()));
  if (layout.stages > 1) {  // the last rank has so many blocks, and waits for those before it
    const int64_t on_rank =
        task.blocks / (layout.stages * layout.stages_per_rank) * layout.stages_per_rank;
    const double own = blocks * static_cast<double>(on_rank) / static_cast<double>(task.blocks);
    least = own * (static_cast<double>(count) +
                   static_cast<double>(layout.stages - 1) / layout.stages_per_rank);
  }
  if (layout.gathers && task.ranks > task.ranks_per_node) {
    const double nodes = static_cast<double>(task.ranks) / task.ranks_per_node;
    const double bytes =
        static_cast<double>(task.parameters) *
        static_cast<double>(std::min(task.parameter_bytes.count(), least_parameter_bytes)) *
        (1 - 1 / nodes);
    least = std::max(
        least, picoseconds * static_cast<double>(count) * seconds_of(bytes, bounds.between_nodes));
  }
  return Time(static_cast<int64_t>(least));
}

// Under context parallelism attention is always computed by a flash kernel, which keeps no scores.
Bytes least_memory_of(const LayoutTask& task, const Layout& layout) {
  const auto& by_ranks = layout.is_megatron ? task.bounds.kept_by_megatron : task.bounds.kept;
  const auto known = by_ranks.find(layout.tensor);
  if (known == by_ranks.end()) {
    return layout.model_states;
  }
  const Recompute kind = layout.context > 1 ? Recompute::full : layout.recompute;
  const auto kept = static_cast<double>(known->second.of_blocks[static_cast<size_t>(kind)].count());
  const int64_t blocks = std::max<int64_t>(1, task.blocks);
  const int64_t of_stage = blocks / (int64_t{layout.stages} * layout.stages_per_rank);
  double held =
      kept * static_cast<double>(of_stage * forwards_ahead(layout)) / static_cast<double>(blocks);
  if (layout.stages == 1) {
    held += static_cast<double>(known->second.of_others.count());
  }
  held *= static_cast<double>(layout.micro_batch) / layout.context;
  return layout.model_states + Bytes(static_cast<int64_t>(held));
}

// Of the ranks that do the same some are simulated: two replicas at most, and of the ranks that
// compute layers together the first and those that share its link to the host.
int64_t simulated_blocks(const LayoutTask& task, const Layout& layout) {
  constexpr int32_t simulated_columns = 3;
  const int64_t ranks = std::min<int64_t>(layout.replicas, 2) *
                        std::min(layout.tensor, simulated_columns) * layout.context;
  return micro_batches_of(layout) * std::max<int64_t>(1, task.blocks) * ranks;
}

}  // namespace lockstep::cli
