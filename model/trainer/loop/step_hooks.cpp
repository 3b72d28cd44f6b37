#include "model/trainer/loop/step_hooks.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/scenario/expressions_of.hpp"
#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

bool holds(const ProgramSpec& program, std::string_view hook, Kind kind) {
  const Hook* const found = program.find(hook);
  return found != nullptr && find_reached_statement(program, *found, kind) != nullptr;
}

// The return value of a step hook: `output`, else `loss`.
const Variable* result_of(const Frame& frame) {
  for (const char* name : {"output", "loss"}) {
    const auto found = frame.find(name);
    if (found != frame.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

}  // namespace

StepHooks::StepHooks(const TrainingContext& context, HookRunner& hooks, Progress& progress,
                     BatchUnderWay& batch, ForwardGraphs& graphs, ModelForward& forward)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      hooks_(hooks),
      progress_(progress),
      batch_(batch),
      graphs_(graphs),
      forward_(forward) {}

Task<Flow> StepHooks::step(std::string_view hook, Frame& frame) {
  co_await hooks_.begin(hook);
  forward_.begin_step();
  factor_of_copies_.reset();
  strategy_.in_step_hook(true);
  const Flow flow = co_await run_step(hook, frame);
  strategy_.in_step_hook(false);
  co_return flow;
}

Task<Flow> StepHooks::run_step(std::string_view hook, Frame& frame) {
  if (strategy_.steps_on_copies()) {
    // Manual optimization, which dp does not know, has one backward for all copies.
    const bool once =
        program_.scenario->program && holds(*program_.scenario->program, hook, Kind::backward);
    co_return co_await step_on_copies(hook, frame, once);
  }
  if (!holds_forward(hook) && program_.network->modules.empty()) {
    co_await forward_.run(nullptr, frame);
  }
  co_return co_await hooks_.run_body(hook, frame);
}

bool StepHooks::holds_forward(std::string_view hook) const {
  return program_.scenario->program && holds(*program_.scenario->program, hook, Kind::forward);
}

// Each copy has names and a part of the batch of its own; what it binds to the module goes with it.
// `once`: the first represents all, with the whole batch.
Task<Flow> StepHooks::step_on_copies(std::string_view hook, Frame& frame, bool once) {
  const int64_t whole_size = progress_.batch_size;
  const std::vector<Batch> parts =
      once ? std::vector<Batch>{batch_.whole()} : strategy_.parts(batch_.whole());
  Variable::List returned;
  bool returns_loss = false;
  Flow flow = Flow::next;
  for (size_t copy = 0; copy < parts.size(); ++copy) {
    batch_.take_part(copy, parts[copy]);
    progress_.batch_size = batch_.batch().size();
    interpreter_.names().begin_replica();
    Frame names;
    if (!holds_forward(hook)) {
      co_await forward_.run(nullptr, names);
    }
    flow = co_await hooks_.run_body(hook, names);
    interpreter_.names().end_replica();
    if (batch_.trains() && !once && program_.trainer.automatic_optimization) {
      co_await note_factor(hook, names);
    }
    if (const Variable* const result = result_of(names)) {
      returned.push_back(*result);
    }
    returns_loss = names.count("output") == 0;
    hooks_.leave(hook, names);
  }
  batch_.take_whole();
  progress_.batch_size = whole_size;
  if (program_.plan.loss_of_whole_batch && forward_.is_done()) {
    frame["loss"] = Variable{forward_.loss_tensor()};
  }
  if (returned.size() != parts.size()) {
    co_return flow;
  }
  if (hook == "training_step" && returns_loss && !hooks_.has("training_step_end")) {
    frame["loss"] = Variable{forward_.copied(strategy_.loss(), {})};  // the strategy reduces it
  } else {
    frame["output"] = gathered(returned);
  }
  co_return flow;
}

// Strategies have one backward for all copies.
Program StepHooks::note_factor(std::string_view hook, const Frame& names) {
  const std::optional<double> before = std::exchange(factor_of_copies_, std::nullopt);
  const BackwardStart start = co_await start_of_returned(hook, names);
  if (!start.of_output.empty()) {
    lack_at(log_, no_site, "a loss of its own on each copy of dp is not modelled", "use ddp");
  }
  const double factor = start.of_loss;
  if (before && *before != factor) {
    lack_at(log_, no_site,
            "copies that return different multiples of their losses are not modelled");
  }
  factor_of_copies_ = factor;
}

// Automatic optimization calls backward on what training_step returns. What training_step_end
// of 1.x makes of it counts as its loss itself.
Task<BackwardStart> StepHooks::start_of_returned(std::string_view hook, const Frame& frame) {
  BackwardStart start;
  start.of_loss = factor_of_copies_.value_or(1);
  const auto loss = frame.find("loss");
  if (factor_of_copies_ || loss == frame.end() || hooks_.has(std::string(hook) + "_end")) {
    co_return start;
  }
  const Hook* own = hooks_.find(hook);
  const SiteId site = own == nullptr ? no_site : site_of(own->place);
  start =
      co_await interpreter_.backward().gradient_of(loss->second.gradient, graphs_.results(), site);
  co_return start;
}

// torch's gather: on the first device, one behind the other; scalars become a vector.
Variable StepHooks::gathered(const Variable::List& returned) {
  std::vector<TensorPointer> parts;
  int64_t rows = 0;
  for (const Variable& result : returned) {
    const auto* const tensor = std::get_if<TensorPointer>(&result.content);
    if (tensor == nullptr || (*tensor)->slice.buffer == no_buffer ||
        (*tensor)->slice.dtype != (parts.empty() ? *tensor : parts.front())->slice.dtype) {
      return Variable{returned};  // what is no tensor is handed on as a list
    }
    parts.push_back(*tensor);
    rows += (*tensor)->shape.empty() ? 1 : (*tensor)->shape.front();
  }
  std::vector<int64_t> shape = parts.front()->shape;
  shape.resize(std::max<size_t>(1, shape.size()));
  shape.front() = rows;
  const TensorPointer whole = interpreter_.tensors().make(parts.front()->slice.dtype, shape);
  int64_t at = 0;
  for (const TensorPointer& part : parts) {
    const int64_t elements = part->slice.elements;
    if (at + elements > whole->slice.elements) {
      return Variable{returned};  // rows of different width
    }
    const Slice there = whole->slice.part(at, elements);
    const CommunicationOptions options{compute_stream, {part->ready}, no_site};
    whole->ready = part == parts.front() ? rank_.copy(part->slice, there, options)
                                         : copy_between_devices(rank_, part->slice, there, options);
    part->uses = {{compute_stream, whole->ready}};  // it came after what made the part
    at += elements;
  }
  whole->ready_on = compute_stream;
  whole->uses[compute_stream] = whole->ready;
  return Variable{whole};
}

// The hook gets what the step returned, and what it returns itself takes its place.
Program StepHooks::end_step(std::string_view hook, Frame& frame) {
  const Variable* result = result_of(frame);
  Frame names;
  if (result != nullptr) {
    names["outputs"] = *result;
  }
  const std::optional<ModelSpec>& model = program_.scenario->model;
  const bool computes_loss =
      model && value_or(model->loss_in, LossHook::training_step) == LossHook::training_step_end;
  if (const auto loss = frame.find("loss"); computes_loss && loss != frame.end()) {
    names["loss"] = loss->second;
  }
  if (program_.trainer.lightning < Version{2, 0, 0}) {
    co_await hooks_.run_with(hook, names);
  }
  const Variable* const own = result_of(names);
  result = own != nullptr ? own : result;
  if (result != nullptr) {
    outputs_.push_back(*result);
  }
}

}  // namespace lockstep
