#include "model/user_program/expression_values.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "model/core/random.hpp"
#include "model/expression/arithmetic.hpp"
#include "model/expression/tensor.hpp"
#include "model/metric/functional.hpp"
#include "model/user_program/rank_names.hpp"
#include "model/user_program/sites.hpp"
#include "model/user_program/statement_failure.hpp"

namespace lockstep {

/// What an expression sees on one rank at one moment.
class RankScope final : public Environment {
 public:
  RankScope(ExpressionValues& values, Frame& frame, const ExpressionValues::NamedValues& resolved,
            const Place& place)
      : values_(values), frame_(frame), resolved_(resolved), place_(place) {}

  std::optional<Value> lookup(std::string_view name) override {
    const auto resolved = resolved_.find(name);
    if (resolved != resolved_.end()) {
      return resolved->second;
    }
    if (const Variable* variable = values_.names_.find(name, frame_)) {
      return bound(*variable, name);
    }
    if (const std::optional<Value> own = name_of_rank(name, place_)) {
      return own;
    }
    return values_.trainer_ == nullptr ? std::nullopt : values_.trainer_->lookup(name);
  }

  double random(const SourcePlace& place) override {
    const SiteId site = site_of(place);
    const uint64_t turn = values_.random_turns_[site]++;
    const uint64_t of_rank = random_key(values_.settings_.seed, place_.rank.value);
    return random_unit(random_key(of_rank, site.value), turn);
  }

  std::optional<Value> call(std::string_view name, std::span<const Value> arguments) override {
    if (name == parameter_function) {
      return parameter(arguments);
    }
    return is_metric_function(name) ? std::optional(call_metric_function(name, arguments))
                                    : std::nullopt;
  }

  bool unknown(const SourcePlace& place) override {
    return values_.rank_.choose(unknown_site_of(place), ChoiceKind::unknown, 2, 0) == 1;
  }

 private:
  Value parameter(std::span<const Value> arguments) const {
    if (arguments.size() != 1 || !arguments[0].is(Value::Kind::text)) {
      throw OperationError("`parameter` takes the name of one", "write parameter('fc.weight')");
    }
    const std::optional<Value> value = values_.trainer_ == nullptr
                                           ? std::nullopt
                                           : values_.trainer_->parameter(arguments[0].text());
    if (!value) {
      throw OperationError(fmt::format("the model has no parameter {}", text_of(arguments[0])),
                           "names are those of named_parameters(): layer.weight");
    }
    return *value;
  }

  std::optional<Value> bound(const Variable& variable, std::string_view name) const {
    if (const Value* value = std::get_if<Value>(&variable.content)) {
      return *value;
    }
    if (std::holds_alternative<Group>(variable.content)) {
      return Value(Handle{Handle::Kind::group, std::string(name)});
    }
    if (std::holds_alternative<std::shared_ptr<PendingWork>>(variable.content)) {
      throw OperationError(fmt::format("`{}` is work to wait for, not a value", name),
                           "use the name of the tensor that it writes");
    }
    throw OperationError(fmt::format("`{}` is a tensor, and no tensor can be used here", name),
                         "copy its value first: {item: x, as: y}");
  }

  ExpressionValues& values_;
  Frame& frame_;
  const ExpressionValues::NamedValues& resolved_;
  const Place& place_;
};

namespace {

// Names whose values are computed with. `len` and `shape` ask for no values, so nobody waits.
void names_computed(const ExpressionNode& node, std::vector<std::string>& names) {
  const bool only_shape =
      node.kind == ExpressionNode::Kind::call && (node.name == "len" || node.name == "shape");
  if (node.kind == ExpressionNode::Kind::name) {
    names.push_back(node.name);
  }
  for (const ExpressionNodePointer& part : node.parts) {
    if (!only_shape || part->kind != ExpressionNode::Kind::name) {
      names_computed(*part, names);
    }
  }
}

constexpr int64_t most_elements_for_shape = int64_t{1} << 26;

}  // namespace

ExpressionValues::ExpressionValues(const StatementContext& context, ModuleNames& names,
                                   GradientTape& tape, const Device& device)
    : rank_(context.rank),
      settings_(context.settings),
      log_(context.log),
      trainer_(context.trainer),
      names_(names),
      tape_(tape),
      tensors_(device.tensors),
      streams_(device.streams),
      checks_(device.checks),
      locations_(device.locations) {}

Task<Value> ExpressionValues::read_tensor(TensorPointer tensor, const std::string& name,
                                          SiteId site) {
  checks_.read(*tensor, name, site);
  checks_.arrival(*tensor, name, site);
  if (tensor->is_borrowed) {
    tensor->ready = streams_.tail_of_compute(site);
  }
  if (tensor->ready) {
    co_await streams_.settle(tensor->ready, tensor->ready_on);
  }
  const bool sized = tensor->slice.buffer == no_buffer;
  Values values = sized ? Values() : rank_.read(tensor->slice);
  if (values.empty() && tensor->slice.elements > 0) {
    fail_at(log_, site, fmt::format("`{}` has no values, only a size", name),
            "give its values: {tensor: full(n, x)}");
  }
  Tensor read{tensor->shape, std::move(values)};
  co_return Value(std::move(read));
}

Task<Value> ExpressionValues::read(const Variable& variable, const std::string& name, SiteId site) {
  if (const TensorPointer* tensor = std::get_if<TensorPointer>(&variable.content)) {
    co_return co_await read_tensor(*tensor, name, site);
  }
  if (const Variable::List* list = std::get_if<Variable::List>(&variable.content)) {
    List items;
    for (const Variable& item : *list) {
      Value value = co_await read(item, name, site);
      items.push_back(std::move(value));
    }
    co_return Value(std::move(items));
  }
  const Value* value = std::get_if<Value>(&variable.content);
  if (value == nullptr) {
    fail_at(log_, site, fmt::format("`{}` is not a value", name), "");
  }
  co_return *value;
}

Program ExpressionValues::resolve(const Expression& expression, Frame& frame, SiteId site,
                                  NamedValues& values) {
  locations_.check_same_device(expression, frame, site);
  if (std::ranges::count(expression.functions(), parameter_function) != 0) {
    co_await streams_.synchronize(compute_stream, site);  // what was last put there writes them
  }
  std::vector<std::string> computed;
  names_computed(expression.root(), computed);
  for (const std::string& name : expression.names()) {
    names_.check_lost(name, site);
    Variable* variable = names_.find(name, frame);
    if (variable == nullptr && trainer_ != nullptr && name == "callback_metrics") {
      co_await trainer_->refresh_callback_metrics();
    }
    if (variable == nullptr) {
      continue;
    }
    const TensorPointer* tensor = std::get_if<TensorPointer>(&variable->content);
    const bool is_list = std::holds_alternative<Variable::List>(variable->content);
    if (tensor == nullptr && !is_list) {
      continue;
    }
    const bool needed = std::find(computed.begin(), computed.end(), name) != computed.end();
    if (needed) {
      names_.note_read_list(*variable, name, site);
    }
    if (needed || is_list) {
      Value value = co_await read(*variable, name, site);
      values.emplace(name, std::move(value));
      continue;
    }
    if ((*tensor)->slice.elements > most_elements_for_shape) {
      fail_at(log_, site, fmt::format("`{}` is too large for an expression", name), "");
    }
    Tensor shape_only{(*tensor)->shape, Values(DType::uint8, (*tensor)->slice.elements)};
    values.emplace(name, Value(std::move(shape_only)));
  }
}

Value ExpressionValues::evaluated(const Expression& expression, Frame& frame, SiteId site,
                                  const NamedValues& resolved) {
  try {
    RankScope scope(*this, frame, resolved, rank_.place());
    return evaluate(expression, scope);
  } catch (const UnboundNameError& error) {
    log_.add({"unbound", site, error.message(), error.remedy()});
    throw ProgramException(site, error.message() + "; " + error.remedy());
  } catch (const EvaluationError& error) {
    fail_at(log_, site, error.message(), error.remedy());
  }
}

ExpressionValues::NamedValues ExpressionValues::values_of_names(const Expression& expression,
                                                                Frame& frame, SiteId site,
                                                                const NamedValues& resolved) {
  NamedValues values;
  for (const std::string& name : expression.names()) {
    const auto known = resolved.find(name);
    values.emplace(name,
                   known != resolved.end()
                       ? known->second
                       : evaluated(Expression(expression_of_name(name), name), frame, site, {}));
  }
  return values;
}

Task<Value> ExpressionValues::value_of(const Expression& expression, Frame& frame, SiteId site) {
  NamedValues resolved;
  co_await resolve(expression, frame, site, resolved);
  co_return evaluated(expression, frame, site, resolved);
}

Task<bool> ExpressionValues::condition_of(const Expression& expression, Frame& frame, SiteId site) {
  NamedValues resolved;
  co_await resolve(expression, frame, site, resolved);
  const Value value = evaluated(expression, frame, site, resolved);
  try {
    co_return lockstep::condition_of(value);
  } catch (const OperationError& error) {
    fail_at(log_, site, error.what(), error.remedy());
  }
}

Task<int64_t> ExpressionValues::integer_of(const Expression& expression, Frame& frame, SiteId site,
                                           std::string_view what) {
  const Value value = co_await value_of(expression, frame, site);
  try {
    co_return lockstep::integer_of(value, what);
  } catch (const OperationError& error) {
    fail_at(log_, site, error.what(), error.remedy());
  }
}

int64_t ExpressionValues::integer_at(const Place& place, const Expression& expression, Frame& frame,
                                     SiteId site, std::string_view what) {
  const NamedValues nothing;
  RankScope scope(*this, frame, nothing, place);
  try {
    return evaluate_integer(expression, scope, what);
  } catch (const EvaluationError& error) {
    fail_at(log_, site, error.message(), error.remedy());
  }
}

Task<double> ExpressionValues::number_of(const Expression& expression, Frame& frame, SiteId site,
                                         std::string_view what) {
  const Value value = co_await value_of(expression, frame, site);
  if (value.is_number()) {
    co_return value.number();
  }
  if (!value.is(Value::Kind::tensor) || value.tensor().values.size() != 1) {
    fail_at(log_, site, fmt::format("{} is a {}, not a number", what, type_of(value)), "");
  }
  co_return value.tensor().values.number(0);
}

// A bare name keeps naming the same tensor; a list written out holds what its names name.
Task<Variable> ExpressionValues::variable_of(const Expression& expression, Frame& frame,
                                             SiteId site) {
  const ExpressionNode& root = expression.root();
  if (root.kind == ExpressionNode::Kind::name) {
    names_.check_lost(root.name, site);
    if (const Variable* variable = names_.find(root.name, frame)) {
      names_.note_read_list(*variable, root.name, site);
      co_return *variable;
    }
  }
  if (root.kind == ExpressionNode::Kind::list) {
    Variable::List items;
    for (const ExpressionNodePointer& part : root.parts) {
      const Expression item(part, expression.text());
      Variable variable = co_await variable_of(item, frame, site);
      items.push_back(std::move(variable));
    }
    co_return Variable{std::move(items)};
  }
  NamedValues resolved;
  co_await resolve(expression, frame, site, resolved);
  const Value value = evaluated(expression, frame, site, resolved);
  const int64_t elements = value.is(Value::Kind::tensor) ? value.tensor().values.size() : 1;
  GradientPointer gradient;
  if (tape_.flows_through(expression, frame)) {
    gradient = tape_.record(expression, elements, frame, site,
                            values_of_names(expression, frame, site, resolved));
  }
  if (value.is(Value::Kind::tensor)) {
    co_return Variable{tensor_from(value, locations_.of_result(expression, frame)),
                       std::move(gradient)};
  }
  co_return Variable{value, std::move(gradient)};
}

Task<TensorPointer> ExpressionValues::tensor_value(const Expression& expression, Frame& frame,
                                                   SiteId site) {
  const Variable variable = co_await variable_of(expression, frame, site);
  if (const TensorPointer* tensor = std::get_if<TensorPointer>(&variable.content)) {
    const bool is_name = expression.root().kind == ExpressionNode::Kind::name;
    checks_.read(**tensor, is_name ? expression.root().name : "", site);
    co_return *tensor;
  }
  const Value value = co_await read(variable, expression.text(), site);
  try {
    co_return tensor_from(value, locations_.of_result(expression, frame));
  } catch (const OperationError& error) {
    fail_at(log_, site, error.what(), error.remedy());
  }
}

TensorPointer ExpressionValues::tensor_from(const Value& value, Location location) {
  const Tensor tensor = tensor_of(value);
  TensorPointer made = tensors_.make(tensor.values.dtype(), tensor.shape, location.device);
  made->other_gpu = location.other_gpu;
  if (made->slice.elements > 0) {
    rank_.write(made->slice, tensor.values);
  }
  made->value_of_host = made->ready;
  return made;
}

}  // namespace lockstep
