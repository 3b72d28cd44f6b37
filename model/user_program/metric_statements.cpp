#include "model/user_program/metric_statements.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/core/numbers.hpp"
#include "model/expression/tensor.hpp"
#include "model/metric/labels.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

namespace {

Expression named_expression(const char* name) {
  ExpressionNode node;
  node.kind = ExpressionNode::Kind::name;
  node.name = name;
  return {make_expression_node(std::move(node)), name};
}

}  // namespace

MetricStatements::MetricStatements(Interpreter& interpreter, Strategy& strategy,
                                   const TrainingProgram& program)
    : interpreter_(interpreter),
      program_(program),
      exchange_(interpreter, strategy, program.membership(interpreter.rank().place()).trainers) {
  for (const MetricDefinition& definition : program.metrics) {
    metrics_[definition.name] = std::make_unique<MetricInstance>(definition);
  }
}

MetricInstance* MetricStatements::find(const std::string& written) {
  const auto found = metrics_.find(metric_name_of(written));
  return found == metrics_.end() ? nullptr : found->second.get();
}

MetricInstance* MetricStatements::named(const Expression& expression, Frame& frame) {
  const ExpressionNode& root = expression.root();
  const bool is_name = root.kind == ExpressionNode::Kind::name;
  return is_name && interpreter_.names().find(root.name, frame) == nullptr ? find(root.name)
                                                                           : nullptr;
}

void MetricStatements::fail(SiteId site, const MetricDefinition& metric,
                            const OperationError& error) {
  const std::string message =
      fmt::format("the metric `{}` ({}): {}", metric.name, metric.class_name, error.what());
  interpreter_.log().add({"evaluation", site, message, error.remedy()});
  throw ProgramException(site, message);
}

Program MetricStatements::run(const Statement& statement, Frame& frame) {
  MetricInstance* const metric = find(statement.name->value);
  ensure(metric != nullptr, "every metric of a statement is declared");
  if (statement.kind == StatementKind::update) {
    co_await update(statement, frame, metric);
  } else if (statement.kind == StatementKind::compute) {
    co_await compute(statement, frame, metric);
  } else {
    metric->reset();
  }
}

Task<Tensor> MetricStatements::input(const Given<Expression>* given, const Expression* otherwise,
                                     Frame* frame, SiteId site) {
  const Value value = co_await interpreter_.expressions().value_of(
      *given ? (*given)->value : *otherwise, *frame, site);
  co_return tensor_of(value);
}

Program MetricStatements::update(const Statement& statement, Frame& frame, MetricInstance* metric) {
  const SiteId site = site_of(statement);
  const MetricDefinition& definition = metric->definition();
  const Expression score = named_expression("score");
  const Expression target_column = named_expression("target");
  const Expression indexes_column = named_expression("indexes");
  try {
    const MetricInputKind kind = metric->objects().front().definition().metric->input_kind();
    const Tensor predictions = co_await input(&statement.preds, &score, &frame, site);
    Tensor target;
    Tensor other;
    MetricInputs inputs{&predictions};
    if (kind != MetricInputKind::value) {
      target = co_await input(&statement.target, &target_column, &frame, site);
      inputs.target = &target;
    }
    if (kind == MetricInputKind::queries) {
      other = co_await input(&statement.indexes, &indexes_column, &frame, site);
      inputs.indexes = &other;
    } else if (kind == MetricInputKind::value && statement.weight) {
      other = co_await input(&statement.weight, nullptr, &frame, site);
      inputs.weight = &other;
    }
    co_await update_with(statement, frame, *metric, inputs);
  } catch (const OperationError& error) {
    fail(site, definition, error);
  }
}

Program MetricStatements::update_with(const Statement& statement, Frame& frame,
                                      MetricInstance& metric, const MetricInputs& inputs) {
  const SiteId site = site_of(statement);
  const MetricDefinition& definition = metric.definition();
  check_devices(statement, frame, metric);
  check_scale(statement, metric, *inputs.predictions);
  std::vector<MetricObject> replica;
  if (interpreter_.names().in_replica()) {
    interpreter_.log().add(
        {"LS308", site,
         fmt::format("the metric `{}` is updated on a replica, which is thrown away after the step",
                     definition.name),
         "return what it is given, and update it in the hook of the step's end "
         "(`validation_step_end`), or use ddp"});
    for (const MetricObject& object : metric.objects()) {
      replica.emplace_back(object.definition());
    }
  } else {
    note_update(statement, metric);
    if (!statement.result) {
      metric.update(inputs);
    }
  }
  if (!statement.result) {
    co_return;
  }
  std::vector<MetricObject>& objects = replica.empty() ? metric.objects() : replica;
  const std::vector<StateSites>& sites = program_.metric_sites.of(site, definition.name);
  std::vector<Value> results;
  for (size_t i = 0; i < objects.size(); ++i) {
    Value value = co_await objects[i].forward(&inputs, exchange_.where_distributed(), &sites[i]);
    results.push_back(std::move(value));
  }
  bind(statement, frame, definition, results);
}

namespace {

// utilities/compute.py, normalize_logits_if_needed; scores of classes are compared, not scaled.
bool scales_logits(const std::string& class_name) {
  constexpr std::array<std::string_view, 11> of_scores = {
      "ROC",           "AveragePrecision", "EER",           "LogAUC",
      "Curve",         "AtFixedPrecision", "AtFixedRecall", "AtSpecificity",
      "AtSensitivity", "CalibrationError", "HingeLoss"};
  const bool is_curve = std::ranges::any_of(
      of_scores, [&](std::string_view ending) { return class_name.ends_with(ending); });
  return class_name.starts_with("Binary") || class_name.starts_with("Multilabel") ||
         (class_name.starts_with("Multiclass") && is_curve);
}

}  // namespace

void MetricStatements::check_scale(const Statement& statement, const MetricInstance& metric,
                                   const Tensor& predictions) {
  const MetricDefinition& definition = metric.definition();
  const MetricDefinition& scored =
      definition.is_collection() ? definition.members.front() : definition;
  if (!scales_logits(scored.class_name) || !is_floating(predictions.values.dtype()) ||
      predictions.values.size() == 0) {
    return;
  }
  Scales& scales = scales_[&metric];
  if (scales.told) {
    return;
  }
  const bool outside = !are_probabilities(numbers_of<float>(predictions.values));
  (outside ? scales.logits : scales.probabilities) = true;
  if (scales.logits && scales.probabilities) {
    scales.told = true;
    interpreter_.log().add(
        {"LS311", site_of(statement),
         fmt::format("the metric `{}` ({}) takes some batches as logits, as scores lie outside of "
                     "[0, 1], and others as probabilities",
                     definition.name, definition.class_name),
         "give it probabilities (sigmoid or softmax), and look for scores that are out of range"});
  }
}

void MetricStatements::begin_pass(Stage stage) {
  stage_ = stage;
  ++passes_[stage];
}

void MetricStatements::note_update(const Statement& statement, const MetricInstance& metric) {
  Pass& oldest = oldest_[&metric];
  if (metric.objects().front().updates() == 0) {
    oldest = {stage_, passes_[stage_]};
  }
  const bool mixes = (oldest.stage == Stage::fit) != (stage_ == Stage::fit);
  if (mixes && !std::exchange(oldest.told, true)) {
    const std::string& name = metric.definition().name;
    interpreter_.log().add(
        {"LS312", site_of(statement),
         fmt::format("the metric `{}` counts batches of training and of evaluation together", name),
         "declare a metric object for each: train_" + name + ", val_" + name});
  }
}

// Lightning resets a metric that is logged as an object, but not one that is computed by hand.
void MetricStatements::check_reset(const Statement& statement, const MetricInstance& metric) {
  const auto oldest = oldest_.find(&metric);
  const bool counts = oldest != oldest_.end() && metric.objects().front().updates() > 0;
  if (!counts || oldest->second.number == passes_[oldest->second.stage]) {
    return;
  }
  const std::string& name = metric.definition().name;
  interpreter_.log().add(
      {"LS312", site_of(statement),
       fmt::format("the metric `{}` still counts batches of an earlier epoch, or of the sanity "
                   "check: nothing has reset it",
                   name),
       fmt::format("add `- reset: {}` after this, or log the object itself, which Lightning "
                   "resets",
                   name)});
}

bool MetricStatements::is_elsewhere(const Given<Expression>& given, Frame& frame) {
  if (!given || !interpreter_.settings().on_gpus) {
    return false;  // columns of the batch come to the device with it
  }
  const Location location = interpreter_.locations().of_result(given->value, frame);
  return location.device == host_device || location.other_gpu >= 0;
}

// Metrics are moved with the module (metric.py, _apply). A sum over all that it is given adds to a
// state of another device where it is a single number; one by classes or thresholds does not.
void MetricStatements::check_devices(const Statement& statement, Frame& frame,
                                     MetricInstance& metric) {
  const bool elsewhere = is_elsewhere(statement.preds, frame);
  const MetricInputKind kind = metric.objects().front().definition().metric->input_kind();
  const bool differ =
      kind != MetricInputKind::value && elsewhere != is_elsewhere(statement.target, frame);
  if (!elsewhere && !differ) {
    return;
  }
  for (MetricObject& object : metric.objects()) {
    const MetricDefinition& definition = object.definition();
    bool adds_up = true;
    for (const MetricStateSpec& state : definition.metric->states()) {
      adds_up = adds_up && (state.is_list || state.initial.values.size() <= 1);
    }
    if (differ || !adds_up) {
      fail_device_at(
          interpreter_.log(), site_of(statement),
          fmt::format("Encountered different devices in metric calculation: `{}` ({}) is on the "
                      "GPU, and {} it is given is not",
                      definition.name, definition.class_name, differ ? "a part of what" : "what"),
          "move it first: {copy: {tensor: NAME, to: device}}");
    }
    object.note_host_inputs();
  }
}

Program MetricStatements::compute(const Statement& statement, Frame& frame,
                                  MetricInstance* metric) {
  const SiteId site = site_of(statement);
  const MetricDefinition& definition = metric->definition();
  const std::vector<StateSites>& sites = program_.metric_sites.of(site, definition.name);
  check_reset(statement, *metric);
  std::vector<Value> results;
  try {
    for (size_t i = 0; i < metric->objects().size(); ++i) {
      Value value = co_await metric->objects()[i].compute(exchange_.where_distributed(), &sites[i]);
      results.push_back(std::move(value));
    }
  } catch (const OperationError& error) {
    fail(site, definition, error);
  }
  bind(statement, frame, definition, results);
}

void MetricStatements::bind(const Statement& statement, Frame& frame,
                            const MetricDefinition& definition, const std::vector<Value>& values) {
  if (!statement.result) {
    return;
  }
  if (!definition.is_collection()) {
    const Value& value = values.front();
    interpreter_.names().bind(statement.result->value,
                              value.is(Value::Kind::tensor)
                                  ? Variable{interpreter_.expressions().tensor_from(value)}
                                  : Variable{value},
                              frame);
    return;
  }
  Map by_key;
  for (size_t i = 0; i < values.size(); ++i) {
    by_key.emplace_back(definition.key_of(definition.members[i]), values[i]);
  }
  interpreter_.names().bind(statement.result->value, Variable{Value(std::move(by_key))}, frame);
}

}  // namespace lockstep
