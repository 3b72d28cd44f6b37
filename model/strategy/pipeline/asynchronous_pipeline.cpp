#include "model/strategy/pipeline/asynchronous_pipeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

namespace {

// What a hook of the program may still ask for, which the arguments of the Trainer do not show.
[[noreturn]] void refuse_at_update(const TrainerLimit& limit) {
  throw ProgramException(site_id(pipeline_sites::update), limit.why_not + "; " + limit.remedy);
}

}  // namespace

AsynchronousPipeline::AsynchronousPipeline(const TrainingPlan& plan, PipelinePlan pipeline)
    : Pipeline(plan, plan, std::move(pipeline)) {}

AsynchronousOrder AsynchronousPipeline::order() const {
  return {shape(), std::max(shape().micro_batches, shape().ranks)};
}

// Neighbours know the shapes of what they exchange beforehand, as in the runtime of PipeDream:
// they exchange none.
Program AsynchronousPipeline::construct(Rank& rank) {
  hold_stages();
  replica_.allocate(rank);
  allocate_losses(rank);
  co_return;
}

Program AsynchronousPipeline::begin_fit(Rank&) { co_return; }

Program AsynchronousPipeline::before_batch(Rank& rank, bool training) {
  if (!training) {
    co_await drain(rank);
  }
  is_training_ = training;
  const int64_t before = (batches_ - empty_since_) * shape().micro_batches;
  training_steps_ = order().steps(place_.in_pipeline, before, shape().micro_batches);
}

Program AsynchronousPipeline::before_micro_batches(Rank&, const std::vector<Batch>&,
                                                   const StepOptions& options) {
  if (options.training && updates_asked_ != batches_) {
    throw ProgramException(site_id(pipeline_sites::update),
                           "a batch of an asynchronous pipeline came before the optimizer step of "
                           "the one before: each batch has an update of its own; let every "
                           "training step make one");
  }
  co_return;
}

StepOptions AsynchronousPipeline::as_computed(const StepOptions& options) const {
  if (options.training && (!options.synchronise || options.loss_factor != 1)) {
    refuse_at_update(limits_of(pipeline_.kind).accumulation);
  }
  return options;
}

// Of PipeDream the weights that the stage has, or with vertical sync those that the first stage had
// when the batch came to it; of 2BW those before the update of the batch before. None is older than
// an empty pipeline: then all stages have seen all batches.
int64_t AsynchronousPipeline::version_for(int64_t batch) const {
  const bool is_double_buffered =
      pipeline_.kind == PipelineScheduleKind::pipe_dream_double_buffered;
  const int64_t delay = is_double_buffered        ? int64_t{shape().ranks > 1 ? 1 : 0}
                        : pipeline_.vertical_sync ? order().ahead(0)
                                                  : order().ahead(place_.in_pipeline);
  return std::max(empty_since_, batch - delay);
}

void AsynchronousPipeline::begin_action(const PipelineAction& action) {
  if (!is_training_) {
    return;
  }
  if (action.work == PipelineWork::forward) {
    under_way_[action.micro_batch] = {batches_, version_for(batches_)};
  }
  versions_.turn_to(replica_, under_way_.at(action.micro_batch).version);
}

void AsynchronousPipeline::end_action(Rank& rank, const PipelineAction& action) {
  if (!is_training_) {
    return;
  }
  versions_.turn_back(replica_);
  if (action.work == PipelineWork::forward) {
    return;
  }
  const UnderWay done = under_way_.extract(action.micro_batch).mapped();
  if (++backwards_ % shape().micro_batches == 0) {
    staleness_.add(done.batch - done.version);
    update_what_came_back(rank);
  }
}

void AsynchronousPipeline::finish_gradients(Rank&, const StepOptions&) { ++batches_; }

Program AsynchronousPipeline::optimizer_step(Rank& rank, const UpdateOptions& options) {
  if (options.clipping.algorithm == GradientClipping::Algorithm::norm && shape().ranks > 1) {
    refuse_at_update(limits_of(pipeline_.kind).clipping_by_norm);
  }
  asked_.push_back(options);
  ++updates_asked_;
  update_what_came_back(rank);
  transfers_.end_step();
  co_return;
}

Program AsynchronousPipeline::zero_gradients(Rank&, size_t, bool) { co_return; }

// The last stage has the gradients before it is asked for the update, the others long after it.
void AsynchronousPipeline::update_what_came_back(Rank& rank) {
  const int64_t came_back = backwards_ / shape().micro_batches;
  if (versions_.newest() < came_back && !asked_.empty()) {
    update(rank, asked_.front());
    asked_.pop_front();
  }
}

bool AsynchronousPipeline::is_needed(int64_t version) const {
  const bool by_forward = !is_draining_ && version_for(batches_) <= version;
  return by_forward || std::ranges::any_of(under_way_, [version](const auto& micro_batch) {
           return micro_batch.second.version == version;
         });
}

int64_t AsynchronousPipeline::oldest_needed() const {
  int64_t oldest = versions_.newest();
  if (!is_draining_) {
    oldest = std::min(oldest, version_for(batches_));
  }
  for (const auto& [number, micro_batch] : under_way_) {
    oldest = std::min(oldest, micro_batch.version);
  }
  return oldest;
}

void AsynchronousPipeline::update(Rank& rank, const UpdateOptions& options) {
  std::vector<Slice> gradients;
  for (const Slice& gradient : replica_.state().gradients()) {
    if (gradient.buffer != no_buffer) {
      gradients.push_back(gradient);
    }
  }
  if (pipeline_.scales_gradients && shape().micro_batches > 1 && !gradients.empty()) {
    elementwise(rank, Kernel::scale, gradients, gradients, 1.0 / shape().micro_batches, {},
                site_id(pipeline_sites::scale_gradients));
  }
  versions_.forget_before(rank, oldest_needed());
  versions_.begin_update(rank, replica_, is_needed(versions_.newest()));
  replica_.optimizer_step(rank, options, site_id(pipeline_sites::update_of_stage));
  replica_.zero_gradients(rank, options.optimizer, true);
  versions_.forget_before(rank, oldest_needed());
}

// All ranks come here at the same place of the training; what they have begun comes back.
Program AsynchronousPipeline::drain(Rank& rank) {
  if (batches_ == empty_since_) {
    co_return;
  }
  is_draining_ = true;
  const int64_t begun = (batches_ - empty_since_) * shape().micro_batches;
  const std::vector<Batch> none(1);
  co_await run(rank, order().drain(place_.in_pipeline, begun), none, StepOptions());
  ensure(under_way_.empty(), "a pipeline that is empty");
  empty_since_ = batches_;
  versions_.forget_before(rank, oldest_needed());
  is_draining_ = false;
}

Program AsynchronousPipeline::teardown(Rank& rank) { co_await drain(rank); }

Task<WrittenBytes> AsynchronousPipeline::save_checkpoint(Rank& rank, CheckpointRequest request,
                                                         SiteId site) {
  co_await drain(rank);
  co_return co_await Pipeline::save_checkpoint(rank, std::move(request), site);
}

std::vector<KnownDifference> AsynchronousPipeline::known_differences() {
  std::vector<KnownDifference> known;
  if (staleness_.most > 0) {
    known.push_back({fmt::format("{} computes gradients by weights that have seen up to {} updates "
                                 "fewer than those that they change",
                                 name_of(pipeline_.kind), staleness_.most),
                     "", DifferenceKind::by_design});
  }
  return known;
}

}  // namespace lockstep
