#include "model/strategy/local_model/step_over_ranks.hpp"

#include <utility>

#include "model/network/optimizer/optimizer_rule.hpp"
#include "model/network/optimizer/update_kernel.hpp"
#include "model/strategy/local_model/elementwise.hpp"

namespace lockstep {

namespace {

/// The step of one tensor. Each norm is added up before the next is computed, and the host looks at
/// it, because Lamb asks whether it is 0.
class StepOfPart {
 public:
  StepOfPart(Rank& rank, const OptimizerPlan& optimizer, const PartOfTensor& part,
             const ComputeOptions& options, std::string_view share_site)
      : rank_(&rank),
        optimizer_(&optimizer),
        rule_(&rule_of(optimizer.kind)),
        part_(&part),
        options_(&options),
        share_site_(share_site) {}

  Program run() {
    const DType dtype =
        has_elements() && part_->tensor->value.dtype == DType::fp64 ? DType::fp64 : DType::fp32;
    const Slice squares = rank_->allocate(Purpose::workspace, dtype, norms);
    const Slice weights = squares.part(0, 1);
    const Slice change = squares.part(1, 1);
    if (has_elements()) {
      moment_ = {part_->tensor->steps,
                 rule_->advance(*optimizer_, part_->tensor->steps, part_->tensor->numbers)};
    }
    measure_weights(weights);
    const bool has_weights = co_await add_up(weights);
    if (has_weights) {
      measure_change(weights, change);
      // Once to compare it with 0, and once more to divide by it.
      const Slice again = rank_->allocate(Purpose::workspace, dtype, 1);
      elementwise(*rank_, Kernel::copy, {change}, {again}, 0, *options_);
      const bool has_change = co_await add_up(change);
      if (has_change) {
        co_await add_up(again);
      }
      rank_->release(again);
    } else {
      elementwise(*rank_, Kernel::fill, {}, {change}, 0, *options_);
    }
    update(weights, change);
    rank_->release(squares);
  }

 private:
  static constexpr int64_t norms = 2;  ///< of the parameter, and of its change

  bool has_elements() const { return part_->tensor != nullptr; }

  void measure_weights(const Slice& square) {
    if (!has_elements()) {
      elementwise(*rank_, Kernel::fill, {}, {square}, 0, *options_);
      return;
    }
    KernelCall call;
    call.kernel = Kernel::squared_norm;
    call.reads = {&part_->tensor->value, 1};
    call.writes = {&square, 1};
    call.memory_traffic = part_->tensor->value.bytes();
    rank_->compute(call, *options_);
  }

  void measure_change(const Slice& weights, const Slice& square) {
    if (!has_elements()) {
      elementwise(*rank_, Kernel::fill, {}, {square}, 0, *options_);
      return;
    }
    const OptimizedTensor& tensor = *part_->tensor;
    std::vector<Slice> reads{tensor.gradient, weights, tensor.value};
    reads.insert(reads.end(), tensor.state.begin(), tensor.state.end());
    const std::vector<double> scalars =
        scalars_of_part(*optimizer_, moment_, 1, UpdateCall::Use::measure);
    KernelCall call;
    call.kernel = rule_->kernel();
    call.reads = reads;
    call.writes = {&square, 1};
    call.scalars = scalars;
    call.memory_traffic = tensor.value.bytes() * std::ssize(reads);
    rank_->compute(call, *options_);
  }

  void update(const Slice& weights, const Slice& change) {
    if (!has_elements()) {
      return;
    }
    const OptimizedTensor& tensor = *part_->tensor;
    const std::vector<Slice> reads{tensor.gradient, weights, change};
    std::vector<Slice> writes{tensor.value};
    writes.insert(writes.end(), tensor.state.begin(), tensor.state.end());
    const std::vector<double> scalars =
        scalars_of_part(*optimizer_, moment_, norms, UpdateCall::Use::part);
    KernelCall call;
    call.kernel = rule_->kernel();
    call.reads = reads;
    call.writes = writes;
    call.scalars = scalars;
    call.memory_traffic = tensor.value.bytes() * (1 + 2 * std::ssize(writes));
    rank_->compute(call, *options_);
  }

  /// Adds the square up over the ranks of every dimension; whether it is not 0.
  Task<bool> add_up(Slice square) {
    const SiteId site = site_id(share_site_);
    Ticket done = rank_->event({options_->on, {}, site});
    for (const GroupId group : part_->over) {
      done = rank_->all_reduce(group, square, Reduction::sum, {communication_stream, {done}, site});
    }
    rank_->event({options_->on, {done}, site});
    co_await rank_->settle(done);
    const Values sum = rank_->read(square);
    co_return sum.empty() || sum.number(0) != 0;
  }

  Rank* rank_;
  const OptimizerPlan* optimizer_;
  const OptimizerRule* rule_;
  const PartOfTensor* part_;
  const ComputeOptions* options_;
  std::string_view share_site_;
  UpdateMoment moment_{};
};

}  // namespace

Program step_over_ranks(Rank& rank, const OptimizerPlan& optimizer, OptimizerKernels kernels,
                        const std::vector<PartOfTensor>& parts, const ComputeOptions& options,
                        std::string_view share_site) {
  for (const PartOfTensor& part : parts) {
    if (part.over.empty()) {
      optimizer_step(rank, optimizer, kernels, {part.tensor}, options);
      continue;
    }
    Slice held;
    if (part.tensor != nullptr) {
      ++part.tensor->steps;
      make_optimizer_state(rank, optimizer, *part.tensor, options);
      held = hold_temporaries(rank, optimizer, kernels, {part.tensor->value}, options.on.device());
    }
    StepOfPart step(rank, optimizer, part, options, share_site);
    co_await step.run();
    if (held.buffer != no_buffer) {
      rank.release(held);
    }
  }
}

}  // namespace lockstep
