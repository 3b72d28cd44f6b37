#include "model/trainer/loop/model_forward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/core/random.hpp"
#include "model/expression/tensor.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/skipped_layers.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

constexpr Bytes most_output_values{int64_t{1} << 20};

// Indices of the modules that a forward names; their order has been checked.
std::vector<size_t> modules_of(const Statement& statement, const Network& network) {
  std::vector<size_t> modules;
  if (!statement.modules) {
    return modules;
  }
  for (const std::string& name : statement.modules->value) {
    for (size_t module = 0; module < network.modules.size(); ++module) {
      if (network.modules[module].name == name) {
        modules.push_back(module);
      }
    }
  }
  return modules;
}

}  // namespace

ModelForward::ModelForward(const TrainingContext& context, const Surroundings& around)
    : rank_(context.rank),
      program_(context.program),
      log_(context.log),
      strategy_(context.strategy),
      interpreter_(context.interpreter),
      batch_(around.batch),
      switches_(around.switches),
      graphs_(around.graphs),
      tally_(around.tally) {}

void ModelForward::begin_batch() {
  is_done_ = false;
  entered_wrapper_ = false;
}

StepOptions ModelForward::options_of(const Statement* statement) {
  StepOptions options = switches_.options(batch_.trains());
  if (statement != nullptr) {
    options.through_wrapper =
        !statement->through || statement->through->value == ForwardThrough::strategy;
    options.modules = modules_of(*statement, *program_.network);
    options.skipped_layers = skipped_layers(*statement, *program_.network, options.modules, log_);
    if (statement->loss_target) {
      options.target = statement->loss_target->value;
    }
  }
  // The wrapper's forward is the whole step: what comes before it comes once.
  options.enters_wrapper = options.through_wrapper && !entered_wrapper_;
  entered_wrapper_ = entered_wrapper_ || options.enters_wrapper;
  return options;
}

Program ModelForward::run(const Statement* statement, Frame& frame) {
  const StepOptions options = options_of(statement);
  if (!batch_.is_there()) {
    throw ProgramException(statement == nullptr ? no_site : site_of(*statement),
                           "forward has no batch here; move it to a step hook");
  }
  if (!has_run_ || batch_.copy() == 0) {  // of all copies at once
    const bool named = statement != nullptr && statement->result;
    graphs_.keep_last(named ? statement->result->value : "output", frame,
                      batch_.trains() && is_done_);
    interpreter_.streams().hand_over_compute();
    co_await strategy_.forward(rank_, batch_.whole(), options);
    has_run_ = true;
    tally_.note_forward();
  }
  is_done_ = true;
  graphs_.begin(strategy_.copy(batch_.copy()).forwards().last());
  bind_loss(frame);
  bind_output(statement, frame);
}

// A loss that the scenario gives by its `loss` column stands for the arithmetic; so does a random
// one where the network carries no values.
TensorPointer ModelForward::loss_tensor() {
  const SampleColumns& columns = batch_.columns();
  const bool computed = program_.plan.numerics && !columns.is_given("loss");
  if (!computed) {
    double sum = 0;
    if (columns.has("loss")) {
      const Value losses = columns.values("loss", batch_.batch().samples, rank_.place());
      for (int64_t i = 0; i < losses.tensor().values.size(); ++i) {
        sum += losses.tensor().values.number(i);
      }
    }
    const double mean = sum / static_cast<double>(std::max<int64_t>(batch_.batch().size(), 1));
    Tensor value{{}, Values::of(DType::fp32, {mean})};
    TensorPointer loss = interpreter_.expressions().tensor_from(Value(std::move(value)));
    loss->ready = strategy_.loss_ready();
    loss->ready_on = compute_stream;
    loss->uses[compute_stream] = loss->ready;
    loss->value_of_host = loss->ready;
    return loss;
  }
  return copied(strategy_.loss_of(batch_.copy()), {});
}

TensorPointer ModelForward::copied(const Slice& from, std::vector<int64_t> shape) {
  TensorPointer to = interpreter_.tensors().make(from.dtype, std::move(shape));
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = {&from, 1};
  call.writes = {&to->slice, 1};
  call.memory_traffic = from.bytes() * 2;
  // On the device that holds it: what frees it there comes after this.
  const StreamId on = stream(queue::compute, DeviceId{static_cast<uint8_t>(batch_.copy())});
  to->ready = rank_.compute(call, {on, {strategy_.loss_ready()}, no_site});
  to->ready_on = on;
  to->uses[on] = to->ready;
  return to;
}

void ModelForward::bind_loss(Frame& frame) {
  const bool comes_later = program_.plan.loss_of_whole_batch && strategy_.steps_on_copies();
  if (!program_.uses_loss || comes_later) {
    return;
  }
  const GradientPointer gradient =
      batch_.trains() ? interpreter_.tape().new_result_of_forward(1, graphs_.last(), false)
                      : nullptr;
  graphs_.set_loss(gradient);
  interpreter_.names().bind("loss", Variable{loss_tensor(), gradient}, frame);
}

// What statements may name and nobody modelled.
void ModelForward::check_output(const Statement* statement) {
  const SiteId site = statement == nullptr ? no_site : site_of(*statement);
  if (program_.backward_in_forward) {
    lack_at(log_, site,
            "the output of a pipeline, which its last stage alone has in parts, is not "
            "modelled",
            "use the loss");
  }
  const auto* loss = std::get_if<LossArguments>(&program_.plan.network->loss.arguments);
  if (loss != nullptr && loss->parts > 1) {
    lack_at(log_, site,
            "an output whose classes lie on several ranks (loss_parallel) is not modelled "
            "in hooks",
            "use the loss, or let the last Linear give output_layouts=Replicate()");
  }
}

// Random where the network carries no values, by sample.
TensorPointer ModelForward::output_tensor(const std::vector<int64_t>& shape) {
  const int64_t elements = elements_of(shape);
  const Slice own = program_.plan.numerics ? strategy_.copy(batch_.copy()).output() : Slice{};
  if (own.buffer != no_buffer && own.elements == elements) {
    return copied(own, shape);
  }
  if (elements > most_output_values.count() / size_of(DType::fp32)) {
    return interpreter_.tensors().make_sized(DType::fp32, shape);
  }
  Values values(DType::fp32, elements);
  const int64_t row = batch_.batch().size() == 0 ? 0 : elements / batch_.batch().size();
  for (int64_t i = 0; i < elements; ++i) {
    const auto sample = static_cast<uint64_t>(batch_.batch().samples[static_cast<size_t>(i / row)]);
    const uint64_t key =
        random_key(random_key(program_.settings.seed, site_id("output").value), sample);
    values.set(i, random_unit(key, static_cast<uint64_t>(i % row)));
  }
  Tensor value{shape, std::move(values)};
  TensorPointer output = interpreter_.expressions().tensor_from(Value(std::move(value)));
  output->ready = strategy_.loss_ready();
  output->ready_on = compute_stream;
  output->uses[compute_stream] = output->ready;
  return output;
}

void ModelForward::bind_output(const Statement* statement, Frame& frame) {
  const bool named = statement != nullptr && statement->result;
  if (!program_.uses_output && !named) {
    return;
  }
  check_output(statement);
  std::vector<int64_t> shape = {batch_.batch().size()};
  const Shape& of_sample = strategy_.copy(batch_.copy()).output_shape();
  shape.insert(shape.end(), of_sample.begin(), of_sample.end());
  TensorPointer output = output_tensor(shape);
  const GradientPointer gradient = batch_.trains() ? interpreter_.tape().new_result_of_forward(
                                                         elements_of(shape), graphs_.last(), true)
                                                   : nullptr;
  const std::string name = named ? statement->result->value : "output";
  graphs_.set_output(name, gradient);
  interpreter_.names().bind(name, Variable{std::move(output), gradient}, frame);
}

}  // namespace lockstep
