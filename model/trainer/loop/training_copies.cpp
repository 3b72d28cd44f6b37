// A step hook on copies of the module, and what its outputs become (overrides/data_parallel.py).
#include <fmt/core.h>

#include <utility>

#include "model/strategy/data_parallel/device_copy.hpp"
#include "model/trainer/loop/training.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

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

// Each copy has names and a part of the batch of its own; what it binds to the module goes with it.
// `once`: the first represents all, with the whole batch.
Task<Flow> Training::step_on_copies(std::string_view hook, Frame& frame, bool once) {
  const int64_t whole_size = progress.batch_size;
  const std::vector<Batch> parts =
      once ? std::vector<Batch>{*whole_batch_} : strategy_->parts(*whole_batch_);
  Variable::List returned;
  bool returns_loss = false;
  Flow flow = Flow::next;
  for (part_ = 0; part_ < parts.size(); ++part_) {
    batch_ = &parts[part_];
    progress.batch_size = batch_->size();
    columns_.begin_batch();
    interpreter_.names().begin_replica();
    Frame names;
    if (!holds_forward(hook)) {
      co_await forward(nullptr, names);
    }
    flow = co_await hooks_.run_body(hook, names);
    interpreter_.names().end_replica();
    if (training_ && !once && program_.trainer.automatic_optimization) {
      co_await note_factor(hook, names);
    }
    if (const Variable* const result = result_of(names)) {
      returned.push_back(*result);
    }
    returns_loss = names.count("output") == 0;
    hooks_.leave(hook, names);
  }
  part_ = 0;
  batch_ = whole_batch_;
  progress.batch_size = whole_size;
  columns_.begin_batch();
  if (program_.plan.loss_of_whole_batch && forward_done_) {
    frame["loss"] = Variable{loss_tensor()};
  }
  if (returned.size() != parts.size()) {
    co_return flow;
  }
  if (hook == "training_step" && returns_loss && !hooks_.has("training_step_end")) {
    frame["loss"] = Variable{copied(strategy_->loss(), {})};  // the strategy reduces it
  } else {
    frame["output"] = gathered(returned);
  }
  co_return flow;
}

// Strategies have one backward for all copies.
Program Training::note_factor(std::string_view hook, const Frame& names) {
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

// torch's gather: on the first device, one behind the other; scalars become a vector.
Variable Training::gathered(const Variable::List& returned) {
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
Program Training::end_step(std::string_view hook, Frame& frame) {
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
    outputs.push_back(*result);
  }
}

}  // namespace lockstep
