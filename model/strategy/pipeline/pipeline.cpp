#include "model/strategy/pipeline/pipeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/core/ensure.hpp"
#include "model/core/nearest_sizes.hpp"
#include "model/network/mixture.hpp"
#include "model/network/output_type.hpp"
#include "model/strategy/local_model/elementwise.hpp"
#include "model/strategy/pipeline/pipeline_marks.hpp"
#include "model/strategy/pipeline/pipeline_sites.hpp"

namespace lockstep {

namespace {

constexpr std::string_view activations_sent = "activations_sent";
constexpr std::string_view gradients_sent = "gradients_sent";

/// torch.tensor_split: the first pieces have one sample more where they are not equal.
std::vector<int64_t> split_lengths(int64_t samples, int64_t pieces) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < pieces; ++i) {
    lengths.push_back(samples / pieces + (i < samples % pieces ? 1 : 0));
  }
  return lengths;
}

void release(Rank& rank, std::initializer_list<std::optional<Slice>*> all) {
  for (std::optional<Slice>* const each : all) {
    if (*each) {
      rank.release(**each);
      each->reset();
    }
  }
}

}  // namespace

Pipeline::Pipeline(const TrainingPlan& plan, TrainingPlan computing, PipelinePlan pipeline)
    : DistributedStrategy(plan),
      pipeline_(std::move(pipeline)),
      computing_plan_(std::move(computing)),
      replica_(computing_plan_, DeviceId{0}),
      transfers_({data_to_devices, activations_sent, gradients_sent}) {}

Program Pipeline::before_batch(Rank&, bool) { co_return; }
Program Pipeline::before_action(Rank&, const PipelineAction&) { co_return; }
Program Pipeline::end_exchange(Rank&) { co_return; }

// One step

// 1. The batch becomes micro-batches. 2. They go forth and back through the stages in the order of
// the schedule. 3. Gradients and losses of all micro-batches become means.
Program Pipeline::forward(Rank& rank, const Batch& batch, const StepOptions& options) {
  // The host runs at most one step ahead of the device.
  co_await rank.settle(loss_ready_);
  co_await before_batch(rank, options.training);
  transfers_.begin_forward(options.training);
  const std::vector<Batch> batches = micro_batches_of(batch);
  co_await before_micro_batches(rank, batches, as_computed(options));
  for (const int32_t stage : own_stages_) {
    backwards_left_[stage] = shape().micro_batches;
  }
  trains_ = options.training;
  if (!options.training && evaluation_steps_.empty()) {
    evaluation_steps_ = steps_by_slots(forward_schedule(shape()), place_.in_pipeline);
  }
  co_await run(rank, options.training ? training_steps_ : evaluation_steps_, batches,
               as_computed(options),
               options.training && !options.in_full ? training_periods_ : std::nullopt);
  finish_step(rank, options);
}

namespace {

// `fixed`: the size of a batch whose micro-batches have the shape that came first; 0: this is it.
std::string remedy_of_batch(int64_t samples, int32_t micro_batches, int64_t fixed) {
  if (fixed == 0) {
    return fmt::format("use a batch_size that n_microbatches ({}) divides, such as {}",
                       micro_batches, nearest_multiples(samples, micro_batches));
  }
  return fmt::format(
      "give every batch {} samples, those of evaluations, too, and set drop_last: "
      "true where the last one has fewer",
      fixed);
}

}  // namespace

// All have the shape of the first one that came (PipeliningShapeError).
std::vector<Batch> Pipeline::micro_batches_of(const Batch& batch) {
  const int64_t fixed = micro_batch_size_.value_or(0) * shape().micro_batches;
  std::vector<Batch> batches;
  auto next = batch.samples.begin();
  for (const int64_t length : split_lengths(batch.size(), shape().micro_batches)) {
    if (length != micro_batch_size_.value_or(length) || length == 0) {
      throw ProgramException(
          site_id(pipeline_sites::exchange),
          fmt::format("PipeliningShapeError: a batch of {} samples has a micro-batch of {} of "
                      "them, and the shapes of messages are fixed for {}; {}",
                      batch.size(), length, micro_batch_size_.value_or(1),
                      remedy_of_batch(batch.size(), shape().micro_batches, fixed)));
    }
    micro_batch_size_ = length;
    batches.push_back({{next, next + length}, batch.given});
    next += length;
  }
  return batches;
}

namespace {

bool is_forward(const PipelineStep& step) {
  return step.kind == PipelineStep::Kind::compute && step.action.work == PipelineWork::forward;
}

}  // namespace

Program Pipeline::run(Rank& rank, const std::vector<PipelineStep>& steps,
                      const std::vector<Batch>& batches, const StepOptions& options,
                      const std::optional<MicroBatchPeriods>& periods) {
  for (size_t at = 0; at < steps.size(); ++at) {
    if (is_forward(steps[at])) {  // else a host would submit the whole step before others begin
      co_await rank.catch_up();
    }
    if (periods && periods->begin_at(at)) {
      at = behind_left_out(rank, steps, at, *periods, options);
    }
    const PipelineStep& step = steps[at];
    switch (step.kind) {
      case PipelineStep::Kind::compute:
        co_await before_action(rank, step.action);
        co_await compute(rank, step.action,
                         batches[static_cast<size_t>(step.action.micro_batch) % batches.size()],
                         options);
        break;
      case PipelineStep::Kind::exchange: wait_for(rank, {exchange(rank, step.messages)}); break;
      case PipelineStep::Kind::begin_sends:
        passages_.begin_sends(exchange(rank, step.messages));
        break;
      case PipelineStep::Kind::begin_receives: begin_receives(rank, step.messages); break;
      case PipelineStep::Kind::finish_sends: wait_for(rank, passages_.take_sends()); break;
      case PipelineStep::Kind::gather_stage:
      case PipelineStep::Kind::free_stage:
      case PipelineStep::Kind::reduce_stage: share_stage(rank, step); break;
    }
  }
  co_await rank.catch_up();
}

Program Pipeline::compute(Rank& rank, const PipelineAction& action, const Batch& batch,
                          const StepOptions& options) {
  Passage& passage = passages_[{action.stage, action.micro_batch}];
  if (passage.arriving && action.work != PipelineWork::weight_gradient) {
    rank.event(
        {replica_.compute(), {std::exchange(passage.arriving, {})}, site_id(pipeline_sites::wait)});
  }
  begin_action(action);
  if (action.work == PipelineWork::forward) {
    mark_action(rank, replica_.compute(), action);
    co_await forward_of(rank, action, batch, options);
  } else {
    co_await backward_of(rank, action, options);
  }
  end_action(rank, action);
}

// Messages

Slice Pipeline::boundary_before(Rank& rank, int32_t stage, Purpose purpose) const {
  const Network& network = replica_.network();
  const size_t layer = layers_of(stage).first;
  return rank.allocate(purpose, input_type_of(network, layer, computing_plan_.types()),
                       *micro_batch_size_ * elements_of(network.layers[layer - 1].output));
}

// Activations and gradients at the same boundary have the same shape. What is received has memory
// of its own for each micro-batch.
SentMessages Pipeline::exchange(Rank& rank, const std::vector<PipelineMessage>& messages) {
  const SiteId site = site_id(pipeline_sites::exchange);
  const Ticket made = rank.event({replica_.compute(), {}, site});
  GroupedCall calls(rank, {communication_stream, {made}, site});
  SentMessages sent;
  for (const PipelineMessage& message : messages) {
    const bool is_activation = message.content == PipelineMessage::Content::activation;
    const int32_t peer = place_.rank_in_world(message.peer, pipeline_.mesh);
    Passage& passage = passages_[{message.stage, message.micro_batch}];
    if (message.is_send) {
      const Slice& data = is_activation ? passage.output : passage.input_gradient;
      calls.send(group_, data, peer);
      transfers_.add(is_activation ? activations_sent : gradients_sent, data.bytes());
      if (is_activation) {
        sent.activations.emplace_back(message.stage, message.micro_batch);
      } else {
        sent.gradients.push_back(std::exchange(passage.input_gradient, {}));
      }
      continue;
    }
    std::optional<Slice>& received = is_activation ? passage.activation : passage.gradient;
    if (!received) {
      received =
          boundary_before(rank, message.stage + (is_activation ? 0 : 1), Purpose::communication);
    }
    calls.receive(group_, *received, peer);
  }
  sent.done = calls.submit();
  return sent;
}

void Pipeline::begin_receives(Rank& rank, const std::vector<PipelineMessage>& messages) {
  const Ticket arriving = exchange(rank, messages).done;
  for (const PipelineMessage& message : messages) {
    passages_[{message.stage, message.micro_batch}].arriving = arriving;
  }
}

void Pipeline::wait_for(Rank& rank, const std::vector<SentMessages>& sent) {
  std::vector<Ticket> tickets;
  for (const SentMessages& each : sent) {
    tickets.push_back(each.done);
  }
  rank.event({replica_.compute(), tickets, site_id(pipeline_sites::wait)});
  for (const SentMessages& each : sent) {
    for (const Slice& gradient : each.gradients) {
      rank.release(gradient);
    }
    for (const PassageKey& key : each.activations) {
      end_evaluation(rank, key);
    }
  }
}

// Computation

Program Pipeline::run_layers(Rank& rank, const StageLayers& layers, const StepOptions& options) {
  for (size_t layer = layers.first; layer < layers.end; ++layer) {
    before_layer(rank, layer);
    if (are_experts_divided(replica_.network().layers[layer])) {
      co_await rank.settle(replica_.announce_tokens(rank, layer, options));
    }
    replica_.forward_layer(rank, layer, options);
    after_layer(rank, layer);
  }
}

Program Pipeline::forward_of(Rank& rank, const PipelineAction& action, const Batch& batch,
                             const StepOptions& options) {
  Passage& passage = passages_[{action.stage, action.micro_batch}];
  Replica::Part part;
  part.has_loss = is_last(action.stage);
  if (action.stage > 0) {
    part.input = is_own(action.stage - 1) ? passages_[{action.stage - 1, action.micro_batch}].output
                                          : passage.activation;
  }
  replica_.begin_part(rank, batch, options, part);
  co_await run_layers(rank, layers_of(action.stage), options);
  if (action.stage == 0 || part.has_loss) {
    transfers_.add(data_to_devices, replica_.batch_bytes());
  }
  if (part.has_loss) {
    replica_.end_forward(rank, options);
    elementwise(rank, Kernel::copy, {replica_.loss()},
                {losses_.part(action.micro_batch % shape().micro_batches, 1)}, 0, {},
                site_id(pipeline_sites::average_loss));
  } else {
    replica_.end_part(rank, options);
    passage.output = plan().numerics ? replica_.output()
                                     : boundary_before(rank, action.stage + 1, Purpose::activation);
  }
  passage.forward = replica_.forwards().last();
  replica_.forwards().keep();
  if (action.stage > 0 && is_own(action.stage - 1)) {
    end_evaluation(rank, {action.stage - 1, action.micro_batch});
  }
  if (part.has_loss) {
    end_evaluation(rank, {action.stage, action.micro_batch});
  }
}

// Of a micro-batch that no backward will ask for: the stage behind has what this one gave.
void Pipeline::end_evaluation(Rank& rank, const PassageKey& key) {
  const auto found = passages_.find(key);
  if (trains_ || keeps_received() || found == passages_.end()) {
    return;
  }
  replica_.forwards().drop(rank, found->second.forward);
  release_output(rank, found->second, plan().numerics);
  release(rank, {&found->second.activation, &found->second.gradient});
  passages_.erase(found);
}

namespace {

BackwardHalf half_of(PipelineWork work) {
  switch (work) {
    case PipelineWork::input_gradient: return BackwardHalf::input;
    case PipelineWork::weight_gradient: return BackwardHalf::weights;
    default: return BackwardHalf::both;
  }
}

}  // namespace

Program Pipeline::backward_of(Rank& rank, const PipelineAction& action,
                              const StepOptions& options) {
  const bool is_first = action.stage == 0;
  if (is_first && action.work == PipelineWork::input_gradient) {
    co_return;  // nobody waits for it: its backward is one, and comes with the weights'
  }
  Passage& passage = passages_[{action.stage, action.micro_batch}];
  mark_action(rank, replica_.compute(),
              {is_first ? PipelineWork::backward : action.work, action.stage, action.micro_batch});
  const BackwardHalf half = is_first ? BackwardHalf::both : half_of(action.work);
  const bool ends = half != BackwardHalf::input;
  backwards_left_[action.stage] -= ends ? 1 : 0;
  replica_.forwards().turn_to(passage.forward);
  if (ends) {
    begin_exchange(action, options);
  }
  if (half != BackwardHalf::weights && is_last(action.stage)) {
    replica_.backward_of_loss(rank, options);
  } else if (half != BackwardHalf::weights) {
    const Passage& behind = passages_[{action.stage + 1, action.micro_batch}];
    replica_.begin_backward_of_part(is_own(action.stage + 1) ? behind.input_gradient
                                                             : *passage.gradient);
  }
  for (const size_t layer : replica_.layers_last_to_first()) {
    if (!before_backward_of_layer(rank, action, layer, half)) {
      continue;
    }
    const Ticket done = replica_.backward(rank, layer, half);
    gradients_ready(rank, action.stage, layer, done);
  }
  if (half != BackwardHalf::weights && !is_first) {
    passage.input_gradient = plan().numerics
                                 ? replica_.take_input_gradient()
                                 : boundary_before(rank, action.stage, Purpose::workspace);
  }
  if (ends) {
    end_backward(rank, action);
  }
  replica_.forwards().return_to(0);
  co_await end_exchange(rank);
}

void Pipeline::end_backward(Rank& rank, const PipelineAction& action) {
  replica_.forget_forward(rank);
  Passage& passage = passages_[{action.stage, action.micro_batch}];
  release_output(rank, passage, plan().numerics);
  if (!keeps_received()) {
    release(rank, {&passage.activation, &passage.gradient});
  }
  if (!is_last(action.stage) && is_own(action.stage + 1)) {
    Passage& behind = passages_[{action.stage + 1, action.micro_batch}];
    rank.release(std::exchange(behind.input_gradient, {}));
  }
}

}  // namespace lockstep
