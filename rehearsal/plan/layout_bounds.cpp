#include "rehearsal/plan/layout_bounds.hpp"

#include <algorithm>

namespace lockstep::cli {

namespace {

constexpr auto picoseconds = static_cast<double>(picoseconds_per_second);

}  // namespace

Time least_time_of(const LayoutTask& task, const Layout& layout) {
  const LayoutBounds& bounds = task.bounds;
  if (!bounds.times) {
    return {};
  }
  const int64_t count = layout.batch_size * layout.accumulated / layout.micro_batch;
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

// The first rank of a pipeline keeps the activations of as many micro-batches as it has stages.
// Under context parallelism attention is always computed by a flash kernel, which keeps no scores.
Bytes least_memory_of(const LayoutTask& task, const Layout& layout) {
  const int64_t count = layout.batch_size * layout.accumulated / layout.micro_batch;
  const Recompute kind = layout.context > 1 ? Recompute::full : layout.recompute;
  const auto kept = static_cast<double>(task.bounds.kept[static_cast<size_t>(kind)].count());
  const int64_t blocks = std::max<int64_t>(1, task.blocks);
  const double on_rank = static_cast<double>(blocks / layout.stages) / static_cast<double>(blocks);
  const double held =
      kept * on_rank / (layout.tensor * layout.context) *
      static_cast<double>(layout.micro_batch * std::min<int64_t>(count, layout.stages));
  return layout.model_states + Bytes(static_cast<int64_t>(held));
}

}  // namespace lockstep::cli
