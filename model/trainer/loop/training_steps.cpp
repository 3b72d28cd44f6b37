// The step hooks of a batch, and its forward.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "model/core/random.hpp"
#include "model/expression/tensor.hpp"
#include "model/scenario/expressions_of.hpp"
#include "model/strategy/local_model/replica.hpp"
#include "model/trainer/loop/evaluation_loop.hpp"
#include "model/trainer/loop/fit_loop.hpp"
#include "model/trainer/loop/training.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

using Kind = StatementKind;

bool holds(const ProgramSpec& program, std::string_view hook, Kind kind) {
  const Hook* const found = program.find(hook);
  return found != nullptr && find_reached_statement(program, *found, kind) != nullptr;
}

constexpr Bytes most_output_values{int64_t{1} << 20};

}  // namespace

bool Training::holds_forward(std::string_view hook) const {
  return program_.scenario->program && holds(*program_.scenario->program, hook, Kind::forward);
}

Task<Flow> Training::step(std::string_view hook, Frame& frame) {
  co_await hooks_.begin(hook);
  forwarded_ = false;
  factor_of_copies_.reset();
  if (strategy_->steps_on_copies()) {
    // Manual optimization, which dp does not know, has one backward for all copies.
    const bool once =
        program_.scenario->program && holds(*program_.scenario->program, hook, Kind::backward);
    co_return co_await step_on_copies(hook, frame, once);
  }
  if (!holds_forward(hook) && program_.network->modules.empty()) {
    co_await forward(nullptr, frame);
  }
  co_return co_await hooks_.run_body(hook, frame);
}

void Training::enter_batch(const Batch& batch, const LoaderSettings& loader) {
  batch_ = whole_batch_ = &batch;
  columns_.begin_batch();
  loader_ = &loader;
}

void Training::leave_batch() {
  batch_ = whole_batch_ = nullptr;
  loader_ = nullptr;
}

Program Training::evaluation_batch(std::string_view step_hook) {
  forward_done_ = false;
  entered_wrapper_ = false;
  training_ = false;
  Frame frame;
  co_await step(step_hook, frame);
  const std::string step_end = std::string(step_hook) + "_end";
  co_await end_step(step_end, frame);
  hooks_.leave(step_hook, frame);
  forward_done_ = false;
}

namespace {

template <class Matches>
std::vector<size_t> layers_that(const Network& network, const Matches& matches) {
  std::vector<size_t> found;
  for (size_t layer = 0; layer < network.layers.size(); ++layer) {
    if (matches(std::string_view(network.layers[layer].name))) {
      found.push_back(layer);
    }
  }
  return found;
}

// A layer by its whole name ("encoder.fc"), by that within the module that runs, a container with
// all that it holds, or by the last part of the name.
std::vector<size_t> layers_named(const Statement& statement, const std::string& name,
                                 const Network& network) {
  std::vector<std::string> wholes = {name};
  if (statement.modules) {
    for (const std::string& module : statement.modules->value) {
      wholes.push_back(module + "." + name);
    }
  }
  for (const std::string& whole : wholes) {
    const std::vector<size_t> found = layers_that(network, [&](std::string_view layer) {
      return layer == whole || layer.starts_with(whole + ".");
    });
    if (!found.empty()) {
      return found;
    }
  }
  return layers_that(network, [&](std::string_view layer) { return layer.ends_with("." + name); });
}

bool is_end_of_residual(const Layer& layer) { return is_marker(layer.kind); }

// Empty: they can be left out. The ends of a residual cannot: what stands between them would lose
// its skip connection.
std::string why_not_skipped(const std::vector<size_t>& found, const Network& network) {
  if (found.empty()) {
    return "no layer of the model has this name";
  }
  std::vector<std::string_view> others;
  bool holds_end = false;
  for (const size_t layer : found) {
    holds_end |= is_end_of_residual(network.layers[layer]);
    if (!is_end_of_residual(network.layers[layer])) {
      others.push_back(network.layers[layer].name);
    }
  }
  constexpr size_t shown = 4;
  const bool more = others.size() > shown;
  others.resize(std::min(others.size(), shown));
  return !holds_end ? ""
                    : fmt::format(
                          "a Residual's shortcut and its addition always run; `skip` takes "
                          "layers and Sequentials, here {}{}",
                          fmt::join(others, ", "), more ? ", .." : "");
}

// The layers of `skip`, ascending.
std::vector<size_t> skipped_layers(const Statement& statement, const Network& network) {
  std::vector<size_t> skipped;
  for (const Placed<std::string>& name : statement.skip) {
    const std::vector<size_t> found = layers_named(statement, name.value, network);
    if (const std::string why = why_not_skipped(found, network); !why.empty()) {
      throw ProgramException(site_of(statement),
                             fmt::format("forward cannot skip `{}`: {}", name.value, why));
    }
    skipped.insert(skipped.end(), found.begin(), found.end());
  }
  std::ranges::sort(skipped);
  skipped.erase(std::unique(skipped.begin(), skipped.end()), skipped.end());
  return skipped;
}

}  // namespace

StepOptions Training::step_options() const {
  StepOptions options;
  options.training = training_;
  options.synchronise = synchronise_ && requires_gradient_sync_;
  options.loss_factor = loss_factor_;
  options.manual = training_ && !program_.trainer.automatic_optimization;
  options.only_optimizer = toggled_;
  return options;
}

namespace {

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

Program Training::forward(const Statement* statement, Frame& frame) {
  StepOptions options = step_options();
  if (statement != nullptr) {
    options.through_wrapper =
        !statement->through || statement->through->value == ForwardThrough::strategy;
    options.skipped_layers = skipped_layers(*statement, *program_.network);
    options.modules = modules_of(*statement, *program_.network);
    if (statement->loss_target) {
      options.target = statement->loss_target->value;
    }
  }
  // The wrapper's forward is the whole step: what comes before it comes once.
  options.enters_wrapper = options.through_wrapper && !entered_wrapper_;
  entered_wrapper_ = entered_wrapper_ || options.enters_wrapper;
  if (batch_ == nullptr) {
    throw ProgramException(statement == nullptr ? no_site : site_of(*statement),
                           "forward has no batch here; move it to a step hook");
  }
  if (!forwarded_ || part_ == 0) {  // of all copies at once
    keep_last_forward(statement, frame);
    interpreter_.streams().hand_over_compute();
    co_await strategy_->forward(rank_, *whole_batch_, options);
    forwarded_ = true;
    forward_since_update_ = true;
  }
  forward_done_ = true;
  graph_is_gone_ = false;
  co_await bind_output(statement, frame);
}

// A loss that the scenario gives by its `loss` column stands for the arithmetic; so does a random
// one where the network carries no values.
TensorPointer Training::loss_tensor() {
  const SampleColumns& columns = *loader_->columns;
  const bool computed = program_.plan.numerics && !columns.is_given("loss");
  if (!computed) {
    double sum = 0;
    if (columns.has("loss")) {
      const Value losses = columns.values("loss", batch_->samples, rank_.place());
      for (int64_t i = 0; i < losses.tensor().values.size(); ++i) {
        sum += losses.tensor().values.number(i);
      }
    }
    const double mean = sum / static_cast<double>(std::max<int64_t>(batch_->size(), 1));
    Tensor value{{}, Values::of(DType::fp32, {mean})};
    TensorPointer loss = interpreter_.expressions().tensor_from(Value(std::move(value)));
    loss->ready = strategy_->loss_ready();
    loss->ready_on = compute_stream;
    loss->uses[compute_stream] = loss->ready;
    loss->value_of_host = loss->ready;
    return loss;
  }
  return copied(strategy_->loss_of(part_), {});
}

TensorPointer Training::copied(const Slice& from, std::vector<int64_t> shape) {
  TensorPointer to = interpreter_.tensors().make(from.dtype, std::move(shape));
  KernelCall call;
  call.kernel = Kernel::copy;
  call.reads = {&from, 1};
  call.writes = {&to->slice, 1};
  call.memory_traffic = from.bytes() * 2;
  // On the device that holds it: what frees it there comes after this.
  const StreamId on = stream(queue::compute, DeviceId{static_cast<uint8_t>(part_)});
  to->ready = rank_.compute(call, {on, {strategy_->loss_ready()}, no_site});
  to->ready_on = on;
  to->uses[on] = to->ready;
  return to;
}

Program Training::bind_output(const Statement* statement, Frame& frame) {
  output_gradient_ = nullptr;
  loss_gradient_ = nullptr;
  forward_number_ = strategy_->copy(part_).last_forward();
  const bool comes_later = program_.plan.loss_of_whole_batch && strategy_->steps_on_copies();
  if (program_.uses_loss && !comes_later) {
    loss_gradient_ =
        training_ ? interpreter_.tape().new_result_of_forward(1, forward_number_, false) : nullptr;
    interpreter_.names().bind("loss", Variable{loss_tensor(), loss_gradient_}, frame);
  }
  const bool named = statement != nullptr && statement->result;
  if (!program_.uses_output && !named) {
    co_return;
  }
  if (program_.backward_in_forward) {
    lack_at(log_, statement == nullptr ? no_site : site_of(*statement),
            "the output of a pipeline, which its last stage alone has in parts, is not "
            "modelled",
            "use the loss");
  }
  const auto* loss = std::get_if<LossArguments>(&program_.plan.network->loss.arguments);
  if (loss != nullptr && loss->parts > 1) {
    lack_at(log_, statement == nullptr ? no_site : site_of(*statement),
            "an output whose classes lie on several ranks (loss_parallel) is not modelled "
            "in hooks",
            "use the loss, or let the last Linear give output_layouts=Replicate()");
  }
  std::vector<int64_t> shape = {batch_->size()};
  const Shape& of_sample = strategy_->copy(part_).output_shape();
  shape.insert(shape.end(), of_sample.begin(), of_sample.end());
  const int64_t elements = elements_of(shape);
  const Slice own = program_.plan.numerics ? strategy_->copy(part_).output() : Slice{};
  TensorPointer output;
  if (own.buffer != no_buffer && own.elements == elements) {
    output = copied(own, shape);
  } else if (elements > most_output_values.count() / size_of(DType::fp32)) {
    output = interpreter_.tensors().make_sized(DType::fp32, shape);
  } else {
    Values values(DType::fp32, elements);
    const int64_t row = batch_->size() == 0 ? 0 : elements / batch_->size();
    for (int64_t i = 0; i < elements; ++i) {
      const auto sample = static_cast<uint64_t>(batch_->samples[static_cast<size_t>(i / row)]);
      const uint64_t key =
          random_key(random_key(program_.settings.seed, site_id("output").value), sample);
      values.set(i, random_unit(key, static_cast<uint64_t>(i % row)));
    }
    Tensor value{shape, std::move(values)};
    output = interpreter_.expressions().tensor_from(Value(std::move(value)));
    output->ready = strategy_->loss_ready();
    output->ready_on = compute_stream;
    output->uses[compute_stream] = output->ready;
  }
  output_gradient_ =
      training_ ? interpreter_.tape().new_result_of_forward(elements, forward_number_, true)
                : nullptr;
  output_name_ = named ? statement->result->value : "output";
  interpreter_.names().bind(output_name_, Variable{output, output_gradient_}, frame);
}

Program Training::count_batches(const LoaderSettings& loader, OwnBatches& own) {
  Frame frame;
  if (loader.batches) {
    const SiteId site = site_of(loader.batches->place());
    own.count = co_await interpreter_.expressions().integer_of(*loader.batches, frame, site,
                                                               "the number of batches");
  }
  if (loader.batch_size_of_rank) {
    const SiteId site = site_of(loader.batch_size_of_rank->place());
    own.size = co_await interpreter_.expressions().integer_of(*loader.batch_size_of_rank, frame,
                                                              site, "`batch_size`");
    if (*own.size < 1) {
      // torch/utils/data/sampler.py, BatchSampler
      throw ProgramException(site, fmt::format("batch_size should be a positive integer value, but "
                                               "got batch_size={}",
                                               *own.size));
    }
  }
}

}  // namespace lockstep
